//! What people look at: tables and pictures.

mod plot;
mod table;

pub use plot::{PlotError, plot};
pub use table::Table;
