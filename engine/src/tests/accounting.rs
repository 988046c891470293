//! What sacctmgr asks of the engine: additions, changes, removals, and who may.

use super::world::*;
use crate::command::{Caller, Command, Reply, Role};
use crate::reject::Reject;
use sluice_model::accounting::{
    AccountChange, AccountingReport, AccountingRequest, AdminLevel, AssocChange, AssocFilter, CountLimit, ListEdit,
    QosChange, Shares, TresLimit, UserChange, parse_change,
};
use std::collections::BTreeSet;

pub fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|n| (*n).to_owned()).collect()
}
pub fn set(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(|n| (*n).to_owned()).collect()
}

pub fn add_account(name: &str, parent: &str) -> AccountingRequest {
    let account = AccountChange { parent: Some(parent.to_owned()), ..AccountChange::default() };
    AccountingRequest::AddAccounts { names: names(&[name]), account, assoc: AssocChange::default() }
}
pub fn add_user(name: &str, account: &str) -> AccountingRequest {
    AccountingRequest::AddUsers {
        names: names(&[name]),
        accounts: names(&[account]),
        partitions: Vec::new(),
        user: UserChange::default(),
        assoc: AssocChange::default(),
    }
}
pub fn add_qos(name: &str, qos: QosChange) -> AccountingRequest {
    AccountingRequest::AddQos { names: names(&[name]), qos }
}
pub fn modify_user(name: &str, assoc: AssocChange) -> AccountingRequest {
    let filter = AssocFilter { users: names(&[name]), ..AssocFilter::default() };
    AccountingRequest::ModifyUsers { filter, user: UserChange::default(), assoc }
}
pub fn modify_account(name: &str, assoc: AssocChange) -> AccountingRequest {
    AccountingRequest::ModifyAccounts { names: names(&[name]), account: AccountChange::default(), assoc }
}
pub fn limit(limit: CountLimit, value: u32) -> AssocChange {
    let mut c = AssocChange::default();
    c.limits.counts.insert(limit, Some(value));
    c
}

impl World {
    pub fn try_account(&mut self, caller: Caller, request: AccountingRequest) -> Result<AccountingReport, Reject> {
        match self.try_command(Command::Accounting { caller, request: Box::new(request) })? {
            Reply::Accounting { report } => Ok(*report),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn account(&mut self, request: AccountingRequest) -> AccountingReport {
        let shown = format!("{request:?}");
        self.try_account(operator(), request).unwrap_or_else(|e| panic!("{shown} was refused: {e:?}"))
    }

    /// The accounts science > chem, phys, with user1500 in both and user1600 in phys.
    pub fn with_accounts(config: sluice_model::config::ClusterConfig) -> World {
        let mut w = World::with(config);
        w.account(add_account("science", "root"));
        w.account(add_account("chem", "science"));
        w.account(add_account("phys", "science"));
        w.account(add_user("user1500", "chem"));
        w.account(add_user("user1500", "phys"));
        w.account(add_user("user1600", "phys"));
        w
    }
}

#[test]
fn a_new_cluster_has_root_and_normal_and_nothing_else() {
    let w = World::new();
    let a = &w.state.accounting;
    assert_eq!(a.accounts.keys().collect::<Vec<_>>(), ["root"]);
    assert_eq!(a.qos.keys().collect::<Vec<_>>(), ["normal"]);
    assert_eq!(a.associations.values().map(|x| x.user.clone()).collect::<Vec<_>>(), [None, Some("root".to_owned())]);
}

#[test]
fn what_exists_is_not_added_twice_and_a_users_first_account_is_the_default() {
    let mut w = World::with_accounts(config());
    assert!(w.account(add_account("CHEM", "science")).is_empty());
    assert!(w.account(add_user("user1500", "chem")).is_empty());
    assert_eq!(w.state.accounting.users["user1500"].default_account.as_deref(), Some("chem"));
    let report = w.account(add_user("new", "chem"));
    assert_eq!((report.users, report.associations.len()), (names(&["new"]), 1));
    w.assert_replays();
}

#[test]
fn unknown_parents_accounts_and_qos_are_named() {
    let mut w = World::with_accounts(config());
    for request in [
        add_account("x", "nosuch"),
        add_user("x", "nosuch"),
        modify_user("user1500", AssocChange { default_qos: Some(Some("nosuch".to_owned())), ..AssocChange::default() }),
        modify_user("user1500", AssocChange { qos: vec![ListEdit::Add(set(&["nosuch"]))], ..AssocChange::default() }),
    ] {
        let Err(Reject::Accounting { detail }) = w.try_account(operator(), request) else { panic!("accepted") };
        assert!(detail.contains("nosuch"), "{detail}");
    }
    assert!(w.try_account(operator(), add_account("a,b", "root")).is_err());
    assert!(w.try_account(operator(), add_account("", "root")).is_err());
}

#[test]
fn limits_and_qos_come_down_the_tree_until_something_is_set() {
    let mut w = World::with_accounts(config());
    w.account(add_qos("high", QosChange::default()));
    let mut change = limit(CountLimit::MaxJobs, 5);
    change.limits.counts.insert(CountLimit::GrpJobs, Some(9));
    change.limits.tres.insert(TresLimit::MaxPerJob, parse_change("cpu=4,node=2").unwrap());
    change.qos = vec![ListEdit::Add(set(&["high"]))];
    change.default_qos = Some(Some("high".to_owned()));
    w.account(modify_account("science", change));
    let mut own = AssocChange::default();
    own.limits.tres.insert(TresLimit::MaxPerJob, parse_change("cpu=8").unwrap());
    own.qos = vec![ListEdit::Remove(set(&["normal"]))];
    w.account(modify_account("chem", own));
    let a = &w.state.accounting;
    let id = a.find("chem", Some("user1500"), None).unwrap().id;
    let limits = a.limits(id);
    assert_eq!((limits.count(CountLimit::MaxJobs), limits.count(CountLimit::GrpJobs)), (Some(5), None));
    assert_eq!(limits.tres(TresLimit::MaxPerJob), Some(&own_counts("cpu=8,node=2")));
    assert_eq!(a.allowed_qos(id), set(&["high"]));
    assert_eq!(a.default_qos(id).as_deref(), Some("high"));
    assert_eq!(a.allowed_qos(a.of_account("phys").unwrap().id), set(&["high", "normal"]));
}

fn own_counts(text: &str) -> sluice_model::accounting::TresCounts {
    parse_change(text).unwrap().into_iter().filter_map(|(k, n)| Some((k, n?))).collect()
}

#[test]
fn a_default_qos_must_stay_usable() {
    let mut w = World::with_accounts(config());
    w.account(add_qos("high", QosChange::default()));
    let default = AssocChange { default_qos: Some(Some("high".to_owned())), ..AssocChange::default() };
    assert!(w.try_account(operator(), modify_user("user1500", default.clone())).is_err());
    let both = AssocChange { qos: vec![ListEdit::Add(set(&["high"]))], ..default };
    w.account(modify_user("user1500", both));
    let gone = AssocChange { qos: vec![ListEdit::Remove(set(&["high"]))], ..AssocChange::default() };
    assert!(w.try_account(operator(), modify_user("user1500", gone)).is_err());
    let Err(Reject::Accounting { detail }) =
        w.try_account(operator(), AccountingRequest::RemoveQos { names: names(&["high"]) })
    else {
        panic!("removed")
    };
    assert!(detail.contains("DefQOS = high"), "{detail}");
}

#[test]
fn an_account_moves_with_all_below_it_but_never_below_itself() {
    let mut w = World::with_accounts(config());
    let to = |parent: &str, name: &str| AccountingRequest::ModifyAccounts {
        names: names(&[name]),
        account: AccountChange { parent: Some(parent.to_owned()), ..AccountChange::default() },
        assoc: AssocChange::default(),
    };
    assert!(w.try_account(operator(), to("chem", "science")).is_err());
    assert!(w.try_account(operator(), to("chem", "chem")).is_err());
    assert!(w.try_account(operator(), to("science", "root")).is_err());
    let id = w.submit(job());
    assert_eq!(w.job(id).spec.account.as_deref(), Some("chem"));
    w.account(to("root", "chem"));
    let above: Vec<&str> = {
        let a = &w.state.accounting;
        let id = a.find("chem", Some("user1500"), None).unwrap().id;
        a.chain(id).into_iter().map(|x| x.account.as_str()).collect()
    };
    assert_eq!(above, ["chem", "chem", "root"]);
    w.assert_replays();
}

#[test]
fn an_account_goes_with_all_below_it_and_users_keep_another_default() {
    let mut w = World::with_accounts(config());
    let report = w.account(AccountingRequest::RemoveAccounts { names: names(&["chem"]) });
    assert_eq!(report.accounts, ["chem"]);
    assert_eq!(w.state.accounting.users["user1500"].default_account.as_deref(), Some("phys"));
    let report = w.account(AccountingRequest::RemoveAccounts { names: names(&["science"]) });
    assert_eq!(report.accounts, ["science", "phys"]);
    assert_eq!(w.state.accounting.users["user1500"].default_account, None);
    assert!(w.account(AccountingRequest::RemoveAccounts { names: names(&["science"]) }).is_empty());
    assert!(w.try_account(operator(), AccountingRequest::RemoveAccounts { names: names(&["root"]) }).is_err());
    w.assert_replays();
}

#[test]
fn what_live_jobs_are_charged_to_is_not_removed() {
    let mut w = World::with_accounts(config());
    let id = w.submit(job());
    let remove = || AccountingRequest::RemoveAccounts { names: names(&["science"]) };
    let Err(Reject::Accounting { detail }) = w.try_account(operator(), remove()) else { panic!("removed") };
    assert!(detail.contains(&id.to_string()), "{detail}");
    w.run(id, OK);
    w.account(remove());
}

#[test]
fn a_qos_that_is_removed_leaves_every_list() {
    let mut w = World::with_accounts(config());
    w.account(add_qos("high", QosChange { preempt: vec![ListEdit::Set(set(&["normal"]))], ..QosChange::default() }));
    w.account(add_qos("top", QosChange { preempt: vec![ListEdit::Set(set(&["high"]))], ..QosChange::default() }));
    let change = AssocChange { qos: vec![ListEdit::Set(set(&["high", "normal"]))], ..AssocChange::default() };
    w.account(modify_account("chem", change));
    w.account(AccountingRequest::RemoveQos { names: names(&["high"]) });
    let a = &w.state.accounting;
    assert_eq!(a.allowed_qos(a.of_account("chem").unwrap().id), set(&["normal"]));
    assert!(a.qos["top"].preempt.is_empty());
    assert!(w.try_account(operator(), AccountingRequest::RemoveQos { names: names(&["normal"]) }).is_err());
    // Its number is not given again.
    w.account(add_qos("later", QosChange::default()));
    assert_eq!(w.state.accounting.qos["later"].id, 4);
}

#[test]
fn a_qos_can_neither_preempt_itself_nor_have_limits_of_associations() {
    let mut w = World::new();
    w.account(add_qos("high", QosChange::default()));
    let modify = |qos| AccountingRequest::ModifyQos { names: names(&["high"]), qos };
    let own = QosChange { preempt: vec![ListEdit::Set(set(&["high"]))], ..QosChange::default() };
    assert!(w.try_account(operator(), modify(own)).is_err());
    let mut c = QosChange::default();
    c.limits.counts.insert(CountLimit::MaxSubmit, Some(3));
    assert!(w.try_account(operator(), modify(c)).is_err());
    assert!(w.try_account(operator(), modify_user("root", limit(CountLimit::MaxJobsPerUser, 3))).is_err());
}

#[test]
fn users_may_only_choose_their_own_defaults() {
    let mut w = World::with_accounts(config());
    let mine = |name: &str, user: UserChange| AccountingRequest::ModifyUsers {
        filter: AssocFilter { users: names(&[name]), ..AssocFilter::default() },
        user,
        assoc: AssocChange::default(),
    };
    let default = UserChange { default_account: Some("phys".to_owned()), ..UserChange::default() };
    w.try_account(user(1500), mine("user1500", default.clone())).unwrap();
    assert_eq!(w.state.accounting.users["user1500"].default_account.as_deref(), Some("phys"));
    assert!(matches!(w.try_account(user(1600), mine("user1500", default)), Err(Reject::AccessDenied { .. })));
    let level = UserChange { admin_level: Some(AdminLevel::Operator), ..UserChange::default() };
    assert!(matches!(w.try_account(user(1500), mine("user1500", level)), Err(Reject::AccessDenied { .. })));
    for request in [
        add_account("x", "root"),
        add_user("x", "chem"),
        add_qos("x", QosChange::default()),
        modify_user("user1500", AssocChange { shares: Some(Some(Shares::Number(99))), ..AssocChange::default() }),
        AccountingRequest::ModifyCluster { assoc: limit(CountLimit::MaxJobs, 1) },
        AccountingRequest::RemoveQos { names: names(&["normal"]) },
        AccountingRequest::RemoveAccounts { names: names(&["chem"]) },
    ] {
        let what = format!("{request:?}");
        assert!(matches!(w.try_account(user(1500), request), Err(Reject::AccessDenied { .. })), "{what}");
    }
}

#[test]
fn only_administrators_make_administrators() {
    let mut w = World::with_accounts(config());
    let level = |level| AccountingRequest::ModifyUsers {
        filter: AssocFilter { users: names(&["user1500"]), ..AssocFilter::default() },
        user: UserChange { admin_level: Some(level), ..UserChange::default() },
        assoc: AssocChange::default(),
    };
    assert!(matches!(w.try_account(operator(), level(AdminLevel::Administrator)), Err(Reject::AccessDenied { .. })));
    w.try_account(operator(), level(AdminLevel::Operator)).unwrap();
    let administrator = Caller { role: Role::Administrator, ..user(0) };
    w.try_account(administrator, level(AdminLevel::Administrator)).unwrap();
}

#[test]
fn a_coordinator_manages_the_accounts_below_and_the_jobs_there() {
    let mut w = World::with_accounts(config());
    let coordinators =
        AccountingRequest::AddCoordinators { accounts: names(&["science"]), users: names(&["user1600"]) };
    assert_eq!(w.account(coordinators.clone()).coordinators.len(), 1);
    assert!(w.account(coordinators).is_empty());
    w.try_account(user(1600), add_account("bio", "science")).unwrap();
    w.try_account(user(1600), add_user("new", "bio")).unwrap();
    w.try_account(user(1600), modify_account("chem", limit(CountLimit::MaxJobs, 3))).unwrap();
    assert!(w.try_account(user(1600), add_account("own", "root")).is_err());
    assert!(w.try_account(user(1600), modify_account("root", limit(CountLimit::MaxJobs, 3))).is_err());
    let id = w.submit(job());
    w.cancel(user(1600), id).unwrap();
    let gone = AccountingRequest::RemoveCoordinators { accounts: Vec::new(), users: names(&["user1600"]) };
    assert_eq!(w.account(gone).coordinators, [("user1600".to_owned(), "science".to_owned())]);
    let id = w.submit(job());
    assert!(w.cancel(user(1600), id).is_err());
}

#[test]
fn removing_a_user_takes_all_of_theirs_or_only_what_is_named() {
    let mut w = World::with_accounts(config());
    let remove = |accounts: &[&str]| AccountingRequest::RemoveUsers {
        filter: AssocFilter { users: names(&["user1500"]), accounts: names(accounts), partitions: Vec::new() },
    };
    let report = w.account(remove(&["chem"]));
    assert_eq!((report.users.len(), report.associations.len()), (0, 1));
    assert_eq!(w.state.accounting.users["user1500"].default_account.as_deref(), Some("phys"));
    let report = w.account(remove(&[]));
    assert_eq!((report.users, report.associations.len()), (names(&["user1500"]), 1));
    assert!(w.account(remove(&[])).is_empty());
    let all = AccountingRequest::RemoveUsers { filter: AssocFilter::default() };
    assert!(w.try_account(operator(), all).is_err());
}

#[test]
fn several_changes_at_once_are_all_made_or_none() {
    let mut w = World::with_accounts(config());
    let before = w.state.accounting.clone();
    let bad = AccountingRequest::All { requests: vec![add_account("a", "root"), add_account("b", "nosuch")] };
    assert!(w.try_account(operator(), bad).is_err());
    assert_eq!(w.state.accounting, before);
    let good = AccountingRequest::All {
        requests: vec![add_account("a", "root"), add_account("b", "a"), add_user("user1600", "b")],
    };
    let report = w.account(good.clone());
    assert_eq!((report.accounts, report.associations.len()), (names(&["a", "b"]), 3));
    let nested = AccountingRequest::All { requests: vec![good] };
    assert!(w.try_account(operator(), nested).is_err());
    w.assert_replays();
}
