//! Files that pictures are written to.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A file for a picture.
#[derive(Clone, Debug)]
pub(super) struct PlotFile {
    path: PathBuf,
}

impl PlotFile {
    /// The file that this option names. Fails if a picture obviously cannot be written there,
    /// before hours of simulation.
    pub(super) fn new(option: &str, path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default();
        if !extension.eq_ignore_ascii_case("svg") {
            bail!(
                "{option} {}: pictures are written as SVG; use a name that ends with .svg",
                path.display()
            );
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            bail!(
                "cannot write the picture to '{}': no folder '{}'",
                path.display(),
                folder.display()
            );
        }
        if path.is_dir() {
            bail!(
                "cannot write the picture to '{}': it is a folder",
                path.display()
            );
        }
        Ok(PlotFile {
            path: path.to_owned(),
        })
    }

    /// Writes the picture, given as SVG.
    pub(super) fn write(&self, svg: &str) -> Result<()> {
        std::fs::write(&self.path, svg)
            .with_context(|| format!("cannot write the picture to '{}'", self.path.display()))
    }
}
