//! The name of a holder that `soloist lock` gives if the user gives none.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Maximum length of an owner in bytes.
const BYTES_MAX: usize = 256;

/// User, host, program and process id, such as `ann@web1: backup.sh, process 4711`. Arguments of
/// the program are left out, because they may be secret.
pub(super) fn default(program: &OsStr) -> String {
    let user = user(rustix::process::getuid().as_raw());
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let program = Path::new(program).file_name().unwrap_or(program);
    let program = program.to_string_lossy();
    let process = format!(", process {}", std::process::id());
    let mut owner = format!("{user}@{host}: {program}").replace(char::is_control, "?");
    let mut end = owner.len().min(BYTES_MAX - process.len());
    while !owner.is_char_boundary(end) {
        end -= 1;
    }
    owner.truncate(end);
    owner + &process
}

/// The name of a user in `/etc/passwd`, or the number.
fn user(id: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id.to_string()).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_name_the_program_and_are_never_too_long() {
        let owner = default(OsStr::new("/usr/bin/backup.sh"));
        assert!(owner.contains(": backup.sh, process "), "{owner}");
        let long = default(OsStr::new(&"\u{e9}\n".repeat(300)));
        assert!(
            long.len() <= BYTES_MAX && long.contains(", process "),
            "{long}"
        );
        assert!(!long.contains('\n'));
        assert_eq!(user(0), "root");
        assert_eq!(user(u32::MAX - 7), (u32::MAX - 7).to_string());
    }
}
