use super::*;
use crate::{CONTROLLER, HostDraft, IdentityError, server_name};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn cluster_keys_are_private_and_load_again() {
    let f = Fixture::new();
    let dir = f.dir.path().join("keys");
    assert_eq!(mode(&dir), 0o700);
    for entry in fs::read_dir(&dir).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    assert_eq!(ClusterKeys::load(&dir).unwrap().cluster(), f.keys.cluster());
}

#[test]
fn existing_keys_are_never_overwritten() {
    let f = Fixture::new();
    let dir = f.dir.path().join("keys");
    let again = ClusterKeys::create(&dir, "other");
    assert!(matches!(again, Err(IdentityError::Exists { .. })), "{again:?}");
    assert_eq!(ClusterKeys::load(&dir).unwrap().cluster().name, "test");
}

#[test]
fn a_secret_that_others_may_read_is_refused() {
    let f = Fixture::new();
    let dir = f.dir.path().join("keys");
    fs::set_permissions(dir.join("cluster.key"), fs::Permissions::from_mode(0o640)).unwrap();
    let error = ClusterKeys::load(&dir).unwrap_err().to_string();
    assert!(error.ends_with("has mode 0640; a secret must be 0600"), "{error}");
}

#[test]
fn host_keys_survive_the_disk() {
    let f = Fixture::new();
    let keys = f.host("node1", COMPUTE);
    let dir = f.dir.path().join("identity");
    keys.save(&dir).unwrap();
    let loaded = HostKeys::load(&dir).unwrap();
    assert_eq!((loaded.host(), loaded.roles(), loaded.cluster()), ("node1", COMPUTE, f.keys.cluster()));
    assert_eq!(mode(&dir), 0o700);
}

#[test]
fn papers_made_for_other_keys_are_not_accepted() {
    let f = Fixture::new();
    let mine = HostDraft::generate().unwrap();
    let other = HostDraft::generate().unwrap();
    let papers = f.keys.issue(&other.order("node1", COMPUTE)).unwrap();
    assert!(mine.accept(papers).is_err());
}

#[test]
fn no_host_can_bear_the_controllers_name_or_a_path() {
    let f = Fixture::new();
    for name in [CONTROLLER, "", "a/b", "..", "a b"] {
        assert!(matches!(f.keys.issue_host(name, LOGIN), Err(IdentityError::Name { .. })), "{name:?}");
    }
}

#[test]
fn cluster_names_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["", "two words", "a/b", &"x".repeat(64)] {
        let made = ClusterKeys::create(&dir.path().join("k"), name);
        assert!(matches!(made, Err(IdentityError::Name { .. })), "{name:?}");
    }
}

#[test]
fn names_that_dns_would_confuse_get_certificates_of_their_own() {
    assert_eq!(server_name("node1"), "node1.sluice");
    assert_eq!(server_name("gpu-3.east"), "gpu-3.east.sluice");
    assert_ne!(server_name("Node1").to_lowercase(), server_name("node1"));
    assert!(server_name(&"x".repeat(255)).len() < 64);
}

#[test]
fn secrets_do_not_show_in_debug_forms() {
    let f = Fixture::new();
    let host = f.host("node1", COMPUTE);
    assert_eq!(format!("{:?}", f.keys), r#"ClusterKeys { cluster: "test", .. }"#);
    assert!(!format!("{host:?}").contains("PRIVATE"));
}
