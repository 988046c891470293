//! Making the cluster's keys and provisioning hosts on this machine.

use sluice_identity::join::JoinTokens;
use sluice_identity::{ClusterKeys, Roles};
use std::error::Error;
use std::path::{Path, PathBuf};

/// The folder of keys below the state directory.
pub fn dir(state: &Path) -> PathBuf {
    state.join("keys")
}

/// The folder of open join tokens below the state directory.
pub fn join_dir(state: &Path) -> PathBuf {
    state.join("join")
}

/// Makes the keys; refuses when there are some.
pub fn init(state: &Path, cluster: &str) -> Result<(), Box<dyn Error>> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(state)
        .map_err(|e| format!("{}: {e}", state.display()))?;
    ClusterKeys::create(&dir(state), cluster)?;
    println!("keys of cluster {cluster} are in {}", dir(state).display());
    println!("commands on other hosts need its certificate authority: {}", dir(state).join("ca.pem").display());
    Ok(())
}

/// Makes a host's keys and papers here, for a host that shares this file system or gets the folder by hand.
pub fn issue_host(state: &Path, host: &str, login: bool, compute: bool, out: &Path) -> Result<(), Box<dyn Error>> {
    if !login && !compute {
        return Err("a host is --login, --compute, or both".into());
    }
    let keys = ClusterKeys::load(&dir(state))?;
    keys.issue_host(host, Roles { login, compute })?.save(out)?;
    Ok(())
}

/// Prints a new one-time join token.
pub fn join_token(
    state: &Path,
    host: Option<&str>,
    login: bool,
    compute: bool,
    valid: std::time::Duration,
) -> Result<(), Box<dyn Error>> {
    if !login && !compute {
        return Err("a host is --login, --compute, or both".into());
    }
    let keys = ClusterKeys::load(&dir(state))?;
    let tokens = JoinTokens::open(&join_dir(state))?;
    println!("{}", tokens.make(&keys, Roles { login, compute }, host, valid)?);
    Ok(())
}
