use super::*;
use crate::IdentityError;
use crate::error::Refused;
use crate::join::{JoinToken, JoinTokens};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn tokens(f: &Fixture) -> JoinTokens {
    JoinTokens::open(&f.dir.path().join("join")).unwrap()
}

fn refused(result: Result<Roles, IdentityError>) -> Refused {
    match result {
        Err(IdentityError::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_join_token_is_good_once() {
    let f = Fixture::new();
    let t = tokens(&f);
    let text = t.make(&f.keys, COMPUTE, None, HOUR).unwrap();
    assert_eq!(t.redeem(&text, "test", "node1", crate::now_ms()).unwrap(), COMPUTE);
    let again = refused(t.redeem(&text, "test", "node1", crate::now_ms()));
    assert_eq!(again.to_string(), "the join token is unknown here, has expired or was used before");
}

#[test]
fn open_tokens_outlive_the_controller_and_their_secrets_are_not_on_its_disk() {
    let f = Fixture::new();
    let text = tokens(&f).make(&f.keys, LOGIN, None, HOUR).unwrap();
    let payload = text.strip_prefix("sluice-join-1.").unwrap();
    for entry in std::fs::read_dir(f.dir.path().join("join")).unwrap() {
        assert!(!std::fs::read_to_string(entry.unwrap().path()).unwrap().contains(payload));
    }
    assert_eq!(tokens(&f).redeem(&text, "test", "login", crate::now_ms()).unwrap(), LOGIN);
}

#[test]
fn a_bound_token_admits_its_host_alone() {
    let f = Fixture::new();
    let t = tokens(&f);
    let text = t.make(&f.keys, COMPUTE, Some("node1"), HOUR).unwrap();
    let other = refused(t.redeem(&text, "test", "node2", crate::now_ms()));
    assert_eq!(other, Refused::JoinToken { problem: "is for another host" });
    assert!(t.redeem(&text, "test", "node1", crate::now_ms()).is_ok());
}

#[test]
fn an_expired_or_foreign_or_damaged_token_is_refused() {
    let f = Fixture::new();
    let t = tokens(&f);
    let text = t.make(&f.keys, COMPUTE, None, HOUR).unwrap();
    assert!(t.redeem(&text, "test", "node1", crate::now_ms() + 3_600_001).is_err());
    assert!(matches!(refused(t.redeem(&text, "other", "node1", crate::now_ms())), Refused::OtherCluster { .. }));
    for cut in 0..text.len() {
        assert!(t.redeem(&text[..cut], "test", "node1", crate::now_ms()).is_err(), "{cut}");
    }
    assert!(JoinToken::parse("hello").is_err());
    assert!(t.redeem(&text, "test", "node1", crate::now_ms()).is_ok());
}
