//! Where the cluster is: the client configuration file.
//!
//! Owns finding and reading it. A command finds its cluster without any environment variable, because users' tools
//! clear theirs: a file beside the program's own folder binds a whole `bin` folder to one cluster.

use crate::error::CallError;
use std::path::{Path, PathBuf};

/// The client file, `client.toml`. Unknown keys are errors.
#[derive(Clone, PartialEq, Eq, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    pub cluster: String,
    /// The controller's Unix socket, when it runs on this host.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// `host:port` of the controller.
    #[serde(default)]
    pub controller: Option<String>,
    /// The local agent's Unix socket: says who we are.
    #[serde(default)]
    pub agent: Option<PathBuf>,
    /// PEM file with the cluster's own certificate authority.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// What `-V` says after `slurm `.
    #[serde(default)]
    pub slurm_version: Option<String>,
    /// The file it was read from.
    #[serde(skip)]
    pub path: PathBuf,
}

/// The places looked at, in this order: `$SLUICE_CONF` alone when set, else `../etc/client.toml` beside the program's
/// own resolved file, then `/etc/sluice/client.toml`.
pub fn candidates() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os("SLUICE_CONF").filter(|p| !p.is_empty()) {
        return vec![PathBuf::from(path)];
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.join("etc/client.toml")));
    beside.into_iter().chain([PathBuf::from("/etc/sluice/client.toml")]).collect()
}

/// Reads the first that exists.
pub fn load() -> Result<ClientConfig, CallError> {
    let looked_at = candidates();
    for path in &looked_at {
        match std::fs::read_to_string(path) {
            Ok(text) => return parse(&text, path),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(CallError::BadConfig { path: path.clone(), problem: e.to_string() }),
        }
    }
    Err(CallError::NoConfig { looked_at })
}

fn parse(text: &str, path: &Path) -> Result<ClientConfig, CallError> {
    let bad = |problem: String| CallError::BadConfig { path: path.to_owned(), problem };
    let mut config: ClientConfig = toml::from_str(text).map_err(|e| bad(e.to_string().replace('\n', " ")))?;
    if config.socket.is_none() && config.controller.is_none() {
        return Err(bad("neither `socket` nor `controller` is given".to_owned()));
    }
    config.path = path.to_owned();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_and_a_missing_controller_are_errors() {
        let path = Path::new("/x/client.toml");
        assert!(parse("cluster = \"c\"\nsocket = \"/run/s\"\nfoo = 1\n", path).is_err());
        assert!(parse("cluster = \"c\"\n", path).is_err());
        let config = parse("cluster = \"c\"\nsocket = \"/run/s\"\n", path).unwrap();
        assert_eq!(config.socket.as_deref(), Some(Path::new("/run/s")));
    }
}
