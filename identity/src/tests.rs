//! Forged, expired, foreign and replayed statements are refused; true ones are believed.

mod connections;
mod credentials;
mod joining;
mod keys;
mod tokens;

use crate::{ClusterKeys, HostKeys, Roles};
use std::sync::Arc;
use tempfile::TempDir;

const LOGIN: Roles = Roles { login: true, compute: false };
const COMPUTE: Roles = Roles { login: false, compute: true };

/// A cluster with its keys on disk.
struct Fixture {
    dir: TempDir,
    keys: Arc<ClusterKeys>,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture::named("test")
    }
    fn named(name: &str) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let keys = Arc::new(ClusterKeys::create(&dir.path().join("keys"), name).unwrap());
        Fixture { dir, keys }
    }
    fn host(&self, name: &str, roles: Roles) -> Arc<HostKeys> {
        Arc::new(self.keys.issue_host(name, roles).unwrap())
    }
}
