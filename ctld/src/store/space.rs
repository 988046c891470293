//! How much room is left below the state directory.

use super::StoreError;
use std::path::{Path, PathBuf};

/// Keeps a reserve: below it users' changes are refused, so that reports of what already runs still find room.
pub struct SpaceWatch {
    path: PathBuf,
    /// Bytes; None: 64 MiB, or 1% of a file system smaller than 6.4 GB.
    floor: Option<u64>,
}

impl SpaceWatch {
    pub fn new(path: &Path, floor: Option<u64>) -> SpaceWatch {
        SpaceWatch { path: path.to_owned(), floor }
    }

    /// One statvfs(3), about a microsecond on a local file system.
    pub fn check(&self) -> Result<(), StoreError> {
        let stat = nix::sys::statvfs::statvfs(&self.path).map_err(|e| StoreError::Io {
            what: "ask for the free space of",
            path: self.path.clone(),
            source: e.into(),
        })?;
        let unit = stat.fragment_size() as u64;
        let free = stat.blocks_available() as u64 * unit;
        let floor = self.floor.unwrap_or_else(|| (64 << 20).min(stat.blocks() as u64 * unit / 100));
        if free < floor {
            let detail = format!("{} KiB are free, {} KiB are kept in reserve", free >> 10, floor >> 10);
            return Err(StoreError::Full { path: self.path.clone(), detail });
        }
        if stat.files() > 0 && stat.files_available() == 0 {
            return Err(StoreError::Full { path: self.path.clone(), detail: "no inode is free".to_owned() });
        }
        Ok(())
    }
}
