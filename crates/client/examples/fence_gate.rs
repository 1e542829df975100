//! A resource that checks fences: a holder that comes back late does no harm.
//!
//! ```sh
//! cargo run -p soloist-client --example fence_gate
//! ```

use std::error::Error;
use std::fs;
use std::path::Path;

use soloist_client::Fence;
use soloist_client::gate::{FileGate, GateError};

/// A file that several processes write, one at a time.
struct Orders<'f> {
    folder: &'f Path,
    gate: FileGate,
}

impl<'f> Orders<'f> {
    fn open(folder: &'f Path) -> Result<Self, GateError> {
        let gate = FileGate::open(&folder.join("orders.gate"))?;
        Ok(Orders { folder, gate })
    }

    /// Checks the fence and writes, before any other fence is admitted.
    fn write(&self, fence: Fence, text: &str) -> Result<(), Box<dyn Error>> {
        let written = self
            .gate
            .run(fence, || fs::write(self.folder.join("orders.csv"), text))?;
        Ok(written?)
    }

    fn read(&self) -> Result<String, Box<dyn Error>> {
        Ok(fs::read_to_string(self.folder.join("orders.csv"))?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let orders = Orders::open(folder.path())?;

    // Fences come with the lock: `guard.fence()`, or the argument of the work in `lock.with`.
    let (first, second) = (Fence::from_number(33), Fence::from_number(34));
    orders.write(first, "of the first holder")?;
    // The first holder is paused, its hold expires, and the lock is granted to the second one.
    orders.write(second, "of the second holder")?;
    // The first holder wakes up, and does not know yet.
    let late = orders.write(first, "overwritten").unwrap_err();
    println!("{late}");
    println!("the orders are {:?}", orders.read()?);
    assert_eq!(orders.read()?, "of the second holder");
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
