//! Where everything of a local cluster lies.

use super::{LocalError, Result, at};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Paths below the cluster's folder, which is absolute and resolved: daemons bear it on their command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// The folder of a cluster that was started before.
    pub(super) fn existing(dir: &Path) -> Result<Layout> {
        let none = |dir: &Path| {
            let (dir, sluice) = (dir.display(), super::called_as());
            LocalError::Said(format!("there is no cluster in {dir}; start one with: {sluice} local up --dir {dir}"))
        };
        let resolved = match dir.canonicalize() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(none(dir)),
            other => other.map_err(at(dir))?,
        };
        let layout = Layout { dir: resolved };
        if !layout.settings().exists() {
            return Err(none(&layout.dir));
        }
        Ok(layout)
    }

    /// Makes the folder and its parts, readable by everybody: users of the machine run the commands in it.
    pub(super) fn create(dir: &Path) -> Result<Layout> {
        if dir.is_dir() && !dir.join("etc/local.toml").exists() {
            let mut entries = std::fs::read_dir(dir).map_err(at(dir))?;
            // A first start that failed half-way left these.
            let ours = |name: &std::ffi::OsStr| ["bin", "etc", "run", "log", "ctld"].iter().any(|n| name == *n);
            if entries.any(|e| e.is_ok_and(|e| !ours(&e.file_name()))) {
                let dir = dir.display();
                return Err(LocalError::Said(format!(
                    "{dir} holds other files; give a new folder, or that of a local cluster"
                )));
            }
        }
        let make = |dir: &Path| -> Result<()> {
            std::fs::DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(at(dir))
        };
        make(dir)?;
        let layout = Layout { dir: dir.canonicalize().map_err(at(dir))? };
        if layout.dir.to_str().is_none() {
            return Err(LocalError::Said(format!("{}: the folder's path must be valid UTF-8", layout.dir.display())));
        }
        for part in ["bin", "etc", "run", "log"] {
            let part = layout.dir.join(part);
            make(&part)?;
            std::fs::set_permissions(&part, std::fs::Permissions::from_mode(0o755)).map_err(at(&part))?;
        }
        Ok(layout)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
    pub(super) fn bin(&self) -> PathBuf {
        self.dir.join("bin")
    }
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.dir.join("bin").join(name)
    }
    /// The cluster's configuration.
    pub(super) fn cluster_file(&self) -> PathBuf {
        self.dir.join("etc/sluice.toml")
    }
    /// The commands' configuration.
    pub(super) fn client_file(&self) -> PathBuf {
        self.dir.join("etc/client.toml")
    }
    /// What `sluice local` remembers.
    pub(super) fn settings(&self) -> PathBuf {
        self.dir.join("etc/local.toml")
    }
    pub(super) fn ca(&self) -> PathBuf {
        self.dir.join("etc/ca.pem")
    }
    /// Sockets and process ids. Locked by `up` and `down`, so that they don't mix.
    pub(super) fn run(&self) -> PathBuf {
        self.dir.join("run")
    }
    /// State of a daemon: `ctld` or a node's name.
    pub(super) fn state(&self, daemon: &str) -> PathBuf {
        self.dir.join(daemon)
    }
    pub(super) fn socket(&self, daemon: &str) -> PathBuf {
        self.dir.join(format!("run/{daemon}.sock"))
    }
    pub(super) fn pid_file(&self, daemon: &str) -> PathBuf {
        self.dir.join(format!("run/{daemon}.pid"))
    }
    pub(super) fn log(&self, daemon: &str) -> PathBuf {
        self.dir.join(format!("log/{daemon}.log"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_other_files_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("thesis.tex"), "").unwrap();
        let error = Layout::create(dir.path()).unwrap_err().to_string();
        assert!(error.contains("holds other files"), "{error}");
    }

    #[test]
    fn a_half_made_folder_is_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let first = Layout::create(dir.path()).unwrap();
        assert_eq!(Layout::create(dir.path()).unwrap(), first);
        assert!(Layout::existing(dir.path()).is_err(), "nothing was started there yet");
        let error = Layout::existing(&dir.path().join("nowhere")).unwrap_err().to_string();
        assert!(error.contains("there is no cluster in"), "{error}");
    }
}
