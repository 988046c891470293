//! Which account, QOS and association a job gets, and who is refused under AccountingStorageEnforce.

use super::accounting::{add_account, add_qos, add_user, limit, modify_account, modify_user, names, set};
use super::world::*;
use crate::command::{Command, JobChange, JobTarget};
use crate::reject::Reject;
use sluice_model::JobSpec;
use sluice_model::accounting::{AccountingRequest, AssocChange, CountLimit, Enforce, ListEdit, QosChange, UserChange};
use sluice_model::config::{AccountingConfig, ClusterConfig};

fn enforcing(words: &[&str]) -> ClusterConfig {
    let enforce = Enforce::parse(words.iter().copied()).unwrap();
    ClusterConfig { accounting: AccountingConfig { enforce }, ..config() }
}

fn in_account(name: &str) -> JobSpec {
    JobSpec { account: Some(name.to_owned()), ..job() }
}
fn with_qos(name: &str) -> JobSpec {
    JobSpec { qos: Some(name.to_owned()), ..job() }
}

#[test]
fn without_enforcement_everybody_is_accepted_and_keeps_what_was_asked_for() {
    let mut w = World::new();
    let id = w.submit(JobSpec { qos: Some("any".to_owned()), ..in_account("whatever") });
    let job = w.job(id);
    assert_eq!((job.spec.account.as_deref(), job.spec.qos.as_deref()), (Some("whatever"), Some("any")));
    assert_eq!(job.association, None);
    let id = w.submit(job_of(1700));
    assert_eq!((w.job(id).spec.account.as_deref(), w.job(id).association), (None, None));
}

fn job_of(uid: u32) -> JobSpec {
    JobSpec { uid, user: format!("user{uid}").into(), ..job() }
}

#[test]
fn a_known_user_has_their_default_account_and_its_association_also_without_enforcement() {
    let mut w = World::with_accounts(config());
    let id = w.submit(job());
    let chem = w.state.accounting.find("chem", Some("user1500"), None).unwrap().id;
    assert_eq!((w.job(id).spec.account.as_deref(), w.job(id).association), (Some("chem"), Some(chem)));
    let id = w.submit(in_account("PHYS"));
    assert_eq!(w.job(id).spec.account.as_deref(), Some("phys"));
    w.assert_replays();
}

#[test]
fn with_associations_enforced_strangers_and_foreign_accounts_are_refused() {
    let mut w = World::with_accounts(enforcing(&["associations"]));
    assert_eq!(w.refused(in_account("science")), Reject::InvalidAccount { name: "science".to_owned() });
    assert_eq!(w.refused(in_account("nosuch")), Reject::InvalidAccount { name: "nosuch".to_owned() });
    assert!(matches!(w.refused(job_of(1700)), Reject::InvalidAccount { .. }));
    w.submit(in_account("phys"));
    assert_eq!(
        w.refused(in_account("science")).message(),
        "Invalid account or account/partition combination specified"
    );
}

#[test]
fn an_association_of_one_partition_holds_there_alone() {
    let mut c = enforcing(&["associations"]);
    c.partitions.push(partition("other", &["n2"], false));
    let mut w = World::with_accounts(c);
    w.account(AccountingRequest::AddUsers {
        names: names(&["user1700"]),
        accounts: names(&["chem"]),
        partitions: names(&["other"]),
        user: UserChange::default(),
        assoc: AssocChange::default(),
    });
    let on = |p: &[&str]| JobSpec { partitions: names(p).into(), ..job_of(1700) };
    assert!(matches!(w.refused(on(&["main"])), Reject::InvalidAccount { .. }));
    assert!(matches!(w.refused(on(&["other", "main"])), Reject::InvalidAccount { .. }));
    let id = w.submit(on(&["other"]));
    let partition = w.state.accounting.association(w.job(id).association.unwrap()).unwrap().partition.clone();
    assert_eq!(partition.as_deref(), Some("other"));
}

#[test]
fn a_qos_is_given_by_default_and_others_are_refused_when_enforced() {
    let mut w = World::with_accounts(enforcing(&["qos"]));
    w.account(add_qos("high", QosChange::default()));
    assert_eq!(w.refused(with_qos("high")), Reject::InvalidQos { name: "high".to_owned() });
    assert_eq!(w.refused(with_qos("nosuch")).message(), "Invalid qos specification");
    let change = AssocChange {
        qos: vec![ListEdit::Add(set(&["high"]))],
        default_qos: Some(Some("high".to_owned())),
        ..AssocChange::default()
    };
    w.account(modify_user("user1500", change));
    let id = w.submit(job());
    assert_eq!(w.job(id).spec.qos.as_deref(), Some("high"));
    let id = w.submit(with_qos("normal"));
    assert_eq!(w.job(id).spec.qos.as_deref(), Some("normal"));
    // The only one that may be used is the default.
    let only = AssocChange { qos: vec![ListEdit::Set(set(&["high"]))], ..AssocChange::default() };
    w.account(modify_account("phys", only));
    let id = w.submit(JobSpec { account: Some("phys".to_owned()), ..job_of(1600) });
    assert_eq!(w.job(id).spec.qos.as_deref(), Some("high"));
}

#[test]
fn submit_limits_count_the_tasks_of_arrays_and_what_is_over_no_longer() {
    let mut w = World::with_accounts(enforcing(&["limits"]));
    w.account(modify_user("user1500", limit(CountLimit::MaxSubmit, 3)));
    assert!(matches!(w.refused(array("0-3")), Reject::AccountingPolicy { .. }));
    let tasks = w.submit(array("0-1"));
    let last = w.submit(job());
    assert_eq!(
        w.refused(job()).message(),
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
    );
    // Another account has a count of its own.
    w.submit(in_account("phys"));
    w.cancel(user(1500), last).unwrap();
    w.submit(job());
    w.cancel(user(1500), tasks).unwrap();
    w.submit(array("0-1"));
    w.assert_replays();
}

#[test]
fn a_groups_submit_limit_counts_everybody_below_and_follows_an_account_that_moves() {
    let mut w = World::with_accounts(enforcing(&["limits"]));
    w.account(modify_account("science", limit(CountLimit::GrpSubmit, 2)));
    w.submit(job());
    w.submit(JobSpec { account: Some("phys".to_owned()), ..job_of(1600) });
    assert!(matches!(w.refused(job()), Reject::AccountingPolicy { .. }));
    w.account(AccountingRequest::ModifyAccounts {
        names: names(&["phys"]),
        account: sluice_model::accounting::AccountChange { parent: Some("root".to_owned()), ..Default::default() },
        assoc: AssocChange::default(),
    });
    w.submit(job());
    assert!(matches!(w.refused(job()), Reject::AccountingPolicy { .. }));
}

#[test]
fn a_limit_of_the_qos_stands_in_for_that_of_the_association() {
    let mut w = World::with_accounts(enforcing(&["limits"]));
    w.account(modify_user("user1500", limit(CountLimit::MaxSubmit, 1)));
    let mut qos = QosChange::default();
    qos.limits.counts.insert(CountLimit::MaxSubmitPerUser, Some(2));
    qos.limits.counts.insert(CountLimit::MaxSubmitPerAccount, Some(3));
    w.account(AccountingRequest::ModifyQos { names: names(&["normal"]), qos });
    w.submit(job());
    w.submit(job());
    assert!(matches!(w.refused(job()), Reject::AccountingPolicy { .. }));
    w.account(add_user("user1700", "chem"));
    w.submit(job_of(1700));
    assert!(matches!(w.refused(job_of(1700)), Reject::AccountingPolicy { .. }), "three of account chem");
}

#[test]
fn without_limits_enforced_a_limit_is_only_kept() {
    let mut w = World::with_accounts(enforcing(&["associations"]));
    w.account(modify_user("user1500", limit(CountLimit::MaxSubmit, 0)));
    w.submit(job());
}

#[test]
fn a_wckey_must_be_the_users_when_enforced() {
    let mut w = World::with_accounts(enforcing(&["wckeys"]));
    assert!(matches!(w.refused(job()), Reject::InvalidWckey { .. }));
    w.account(AccountingRequest::ModifyUsers {
        filter: sluice_model::accounting::AssocFilter { users: names(&["user1500"]), ..Default::default() },
        user: UserChange { default_wckey: Some("k".to_owned()), ..UserChange::default() },
        assoc: AssocChange::default(),
    });
    let id = w.submit(job());
    assert_eq!(w.job(id).spec.wckey.as_deref(), Some("k"));
    assert!(matches!(w.refused(JobSpec { wckey: Some("x".to_owned()), ..job() }), Reject::InvalidWckey { .. }));
}

#[test]
fn a_pending_job_may_change_its_account_and_qos_within_what_is_allowed() {
    let mut w = World::with_accounts(enforcing(&["qos", "limits"]));
    w.account(add_account("bio", "science"));
    let id = w.submit(job());
    let update = |w: &mut World, account: Option<&str>, qos: Option<&str>| {
        let change =
            JobChange { account: account.map(str::to_owned), qos: qos.map(str::to_owned), ..JobChange::default() };
        w.try_command(Command::UpdateJob { caller: user(1500), target: JobTarget::Job(id), change: Box::new(change) })
    };
    assert_eq!(update(&mut w, Some("bio"), None), Err(Reject::InvalidAccount { name: "bio".to_owned() }));
    assert_eq!(update(&mut w, None, Some("x")), Err(Reject::InvalidQos { name: "x".to_owned() }));
    update(&mut w, Some("phys"), None).unwrap();
    let phys = w.state.accounting.find("phys", Some("user1500"), None).unwrap().id;
    assert_eq!((w.job(id).spec.account.as_deref(), w.job(id).association), (Some("phys"), Some(phys)));
    w.account(modify_account("chem", limit(CountLimit::GrpSubmit, 0)));
    assert!(matches!(update(&mut w, Some("chem"), None), Err(Reject::AccountingPolicy { .. })));
    w.schedule();
    assert_eq!(update(&mut w, Some("chem"), None), Err(Reject::JobNotPending));
    w.assert_replays();
}
