use super::*;
use crate::CONTROLLER;
use crate::error::Refused;
use crate::server::{Claim, Peer, Verifier};
use crate::token::{LIFETIME_MS, SKEW_MS, SignedToken, Statement, sign, verify};
use prost::Message;
use sluice_proto::v1;

fn user(uid: u32, job: Option<u32>) -> Statement {
    Statement::User { uid, gid: 100, job }
}

fn token(keys: &HostKeys, statement: Statement, now: i64) -> SignedToken {
    sign(keys, statement, CONTROLLER, now).unwrap()
}

/// User 1000 has job 7 on node1.
fn controller(f: &Fixture) -> Verifier {
    f.keys.verifier().admitting(|c| *c == Claim { host: "node1", uid: 1000, gid: 100, job: 7 })
}

fn now() -> i64 {
    crate::now_ms()
}

#[test]
fn a_login_host_vouches_for_any_user() {
    let f = Fixture::new();
    for uid in [0, 1000] {
        let t = token(&f.host("login", LOGIN), user(uid, None), now());
        let peer = verify(&t.token, &f.keys.verifier(), now()).unwrap();
        assert_eq!(peer, Peer::User { uid, gid: 100, host: "login".into(), job: None });
    }
}

#[test]
fn a_compute_host_vouches_only_for_users_with_a_job_there() {
    let f = Fixture::new();
    let node = f.host("node1", COMPUTE);
    let judge = |statement| verify(&token(&node, statement, now()).token, &controller(&f), now());
    assert!(judge(user(1000, Some(7))).is_ok());
    assert!(matches!(judge(user(1000, Some(8))), Err(Refused::NoSuchJob { job: 8, .. })));
    assert!(matches!(judge(user(1001, Some(7))), Err(Refused::NoSuchJob { uid: 1001, .. })));
    assert!(matches!(judge(user(1000, None)), Err(Refused::Role { .. })));
    let other = token(&f.host("node2", COMPUTE), user(1000, Some(7)), now());
    assert!(matches!(verify(&other.token, &controller(&f), now()), Err(Refused::NoSuchJob { .. })));
}

#[test]
fn a_compute_host_never_vouches_for_root() {
    let f = Fixture::new();
    let t = token(&f.host("node1", COMPUTE), user(0, Some(7)), now());
    let trusting = f.keys.verifier().admitting(|_| true);
    assert!(matches!(verify(&t.token, &trusting, now()), Err(Refused::Role { .. })));
}

#[test]
fn without_a_judge_compute_hosts_vouch_for_nobody() {
    let f = Fixture::new();
    let t = token(&f.host("node1", COMPUTE), user(1000, Some(7)), now());
    assert!(matches!(verify(&t.token, &f.keys.verifier(), now()), Err(Refused::NoSuchJob { .. })));
}

#[test]
fn only_compute_hosts_speak_for_nodes_and_only_for_their_own() {
    let f = Fixture::new();
    let t = token(&f.host("node1", COMPUTE), Statement::Node, now());
    assert_eq!(verify(&t.token, &f.keys.verifier(), now()), Ok(Peer::Node { host: "node1".into() }));
    let t = token(&f.host("login", LOGIN), Statement::Node, now());
    assert!(matches!(verify(&t.token, &f.keys.verifier(), now()), Err(Refused::Role { .. })));
}

#[test]
fn a_host_without_a_role_can_say_nothing() {
    let f = Fixture::new();
    let bare = f.keys.issue_controller().unwrap();
    let trusting = f.keys.verifier().admitting(|_| true);
    for statement in [Statement::Node, user(1000, Some(7)), user(1000, None)] {
        let t = token(&bare, statement, now());
        assert!(matches!(verify(&t.token, &trusting, now()), Err(Refused::Role { .. })), "{statement:?}");
    }
}

#[test]
fn a_token_of_another_cluster_is_refused_even_when_it_has_the_same_name() {
    let (f, other) = (Fixture::new(), Fixture::new());
    let t = token(&other.host("login", LOGIN), user(1000, None), now());
    assert_eq!(verify(&t.token, &f.keys.verifier(), now()), Err(Refused::BadSignature { what: "host credential" }));
}

#[test]
fn a_token_is_worthless_to_whom_it_was_not_meant_for() {
    let f = Fixture::new();
    let node = f.host("node1", COMPUTE);
    // node1 shows the controller what a user showed to node1.
    let t = sign(&f.host("login", LOGIN), user(1000, None), "node1", now()).unwrap();
    assert!(verify(&t.token, &node.verifier(), now()).is_ok());
    let refused = verify(&t.token, &f.keys.verifier(), now());
    assert_eq!(refused, Err(Refused::OtherAudience { audience: "node1".into() }));
}

#[test]
fn tokens_last_a_minute_and_clocks_may_differ_by_one() {
    let f = Fixture::new();
    // Later than the host's own papers.
    let made = now() + 1000;
    let t = token(&f.host("login", LOGIN), user(1000, None), made);
    let at = |t_ms: i64| verify(&t.token, &f.keys.verifier(), t_ms);
    assert_eq!(t.expires_at, made + LIFETIME_MS);
    assert!(at(made + LIFETIME_MS + SKEW_MS).is_ok());
    assert_eq!(at(made + LIFETIME_MS + SKEW_MS + 1), Err(Refused::Expired { what: "token" }));
    assert!(at(made - SKEW_MS).is_ok());
    assert_eq!(at(made - SKEW_MS - 1), Err(Refused::NotYetValid { what: "token" }));
}

/// Takes a token apart, changes its body, and puts it together with the old signature.
fn tampered(t: &SignedToken, change: impl FnOnce(&mut v1::TokenBody)) -> Vec<u8> {
    let mut outer = v1::Token::decode(t.token.clone()).unwrap();
    let mut body = v1::TokenBody::decode(outer.body.clone()).unwrap();
    change(&mut body);
    outer.body = body.encode_to_vec().into();
    outer.encode_to_vec()
}

#[test]
fn a_changed_body_is_refused() {
    let f = Fixture::new();
    let t = token(&f.host("login", LOGIN), user(1000, None), now());
    let changes: [fn(&mut v1::TokenBody); 5] =
        [|b| b.uid = 0, |b| b.node = true, |b| b.expires_at += 1, |b| b.audience = "node1".into(), |b| b.job = 3];
    for change in changes {
        let refused = verify(&tampered(&t, change), &f.keys.verifier(), now());
        assert_eq!(refused, Err(Refused::BadSignature { what: "token" }));
    }
}

#[test]
fn one_hosts_signature_under_another_hosts_credential_is_refused() {
    let f = Fixture::new();
    let (node, login) = (f.host("node1", COMPUTE), f.host("login", LOGIN));
    let mut outer = v1::Token::decode(token(&node, user(1000, None), now()).token).unwrap();
    outer.host = Some(login.credential().clone());
    let refused = verify(&outer.encode_to_vec(), &f.keys.verifier(), now());
    assert_eq!(refused, Err(Refused::BadSignature { what: "token" }));
}

#[test]
fn a_credential_with_a_role_added_is_refused() {
    let f = Fixture::new();
    let node = f.host("node1", COMPUTE);
    let mut outer = v1::Token::decode(token(&node, user(1000, None), now()).token).unwrap();
    let mut credential = node.credential().clone();
    let mut body = v1::HostCredentialBody::decode(credential.body.clone()).unwrap();
    body.login = true;
    credential.body = body.encode_to_vec().into();
    outer.host = Some(credential);
    let refused = verify(&outer.encode_to_vec(), &f.keys.verifier(), now());
    assert_eq!(refused, Err(Refused::BadSignature { what: "host credential" }));
}

#[test]
fn noise_is_refused_without_a_panic() {
    let f = Fixture::new();
    let t = token(&f.host("login", LOGIN), user(1000, None), now());
    assert!(verify(b"", &f.keys.verifier(), now()).is_err());
    for cut in 0..t.token.len() {
        assert!(verify(&t.token[..cut], &f.keys.verifier(), now()).is_err(), "{cut} bytes");
    }
    for at in 0..t.token.len() {
        let mut bytes = t.token.to_vec();
        bytes[at] ^= 0x10;
        assert!(verify(&bytes, &f.keys.verifier(), now()).is_err(), "byte {at} changed");
    }
}
