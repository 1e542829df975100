//! The file of the Unix socket.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixSocket, UnixStream};

use super::listen::ApiError;
use crate::config::SocketAccess;
use soloist_transport::BACKLOG;

/// Maximum length of a socket's path in bytes: the system's limit, excluding the terminating zero.
const PATH_MAX: usize = 107;

/// A socket's file, removed on drop.
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode number, so that a file that another process has put in its place is not
    /// removed.
    identity: (u64, u64),
}

impl SocketFile {
    /// Binds the socket and starts to listen. A socket left behind by a dead process is replaced.
    pub(super) async fn bind(
        path: &Path,
        access: &SocketAccess,
    ) -> Result<(Self, UnixListener), ApiError> {
        let length = path.as_os_str().len();
        if length > PATH_MAX {
            return Err(ApiError::SocketPath {
                path: path.to_owned(),
                length,
                max: PATH_MAX,
            });
        }
        let group = access.group.as_deref().map(group_id).transpose()?;
        make_room(path).await?;
        let failed = |source| ApiError::Socket {
            path: path.to_owned(),
            source,
        };
        let socket = UnixSocket::new_stream().map_err(failed)?;
        socket.bind(path).map_err(failed)?;
        // Nobody can connect before it listens, so group and mode are set in time.
        if let Some(group) = group {
            chown(path, None, Some(group)).map_err(failed)?;
        }
        let mode = std::fs::Permissions::from_mode(access.mode);
        std::fs::set_permissions(path, mode).map_err(failed)?;
        let identity = identity(path).map_err(failed)?;
        let file = SocketFile {
            path: path.to_owned(),
            identity,
        };
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        Ok((file, listener))
    }

    /// Removes the file, if it is still the same one.
    pub(super) fn remove(&self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The number of a group, which may be given as a number or as a name in `/etc/group`.
fn group_id(group: &str) -> Result<u32, ApiError> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let number = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let number = fields.nth(1)?;
        (name == group).then(|| number.parse().ok())?
    });
    number.ok_or_else(|| ApiError::SocketGroup(group.to_owned()))
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Removes the socket of a dead process.
async fn make_room(path: &Path) -> Result<(), ApiError> {
    let failed = |source| ApiError::Socket {
        path: path.to_owned(),
        source,
    };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(ApiError::NotASocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(ApiError::SocketInUse(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // Its queue is full, so a process is listening.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(ApiError::SocketInUse(path.to_owned()))
        }
        Err(error) => Err(failed(error)),
    }
}
