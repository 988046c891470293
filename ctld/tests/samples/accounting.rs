//! Accounts, users, associations and QOS.

use super::*;

pub fn account() -> Account {
    Account {
        name: "physics".to_owned(),
        description: "the physics department".to_owned(),
        organization: "science".to_owned(),
        parent: Some("root".to_owned()),
        coordinators: BTreeSet::from(["ada".to_owned()]),
    }
}

pub fn accounting_user() -> User {
    User {
        name: "ada".to_owned(),
        admin_level: AdminLevel::Operator,
        default_account: Some("physics".to_owned()),
        default_wckey: Some("wc".to_owned()),
        wckeys: BTreeSet::from(["wc".to_owned(), "other".to_owned()]),
    }
}

/// Every limit, with different values.
pub fn limits(of: impl Fn(CountLimit) -> bool, tres_of: impl Fn(TresLimit) -> bool) -> Limits {
    let mut limits = Limits::default();
    for limit in CountLimit::ALL.into_iter().filter(|l| of(*l)) {
        limits.set_count(limit, Some(100 + limit.code()));
    }
    for limit in TresLimit::ALL.into_iter().filter(|l| tres_of(*l)) {
        let text = format!("cpu={},mem=4G,gres/gpu:a100=0,license/matlab=2", limit.code());
        limits.change_tres(limit, &parse_change(&text).unwrap());
    }
    limits
}

pub fn association() -> Association {
    Association {
        partition: Some("gpu".to_owned()),
        shares: Shares::Parent,
        priority: Some(3),
        limits: limits(CountLimit::is_of_associations, TresLimit::is_of_associations),
        qos: QosAccess::Inherited {
            added: BTreeSet::from(["high".to_owned()]),
            removed: BTreeSet::from(["normal".to_owned()]),
        },
        default_qos: Some("high".to_owned()),
        comment: "for the summer".to_owned(),
        ..Association::new(AssocId(7), "physics", Some("ada"))
    }
}

pub fn qos() -> Qos {
    Qos {
        description: "first in line".to_owned(),
        priority: 1000,
        flags: QosFlag::ALL.into(),
        grace_secs: 60,
        preempt: BTreeSet::from(["normal".to_owned()]),
        preempt_mode: PreemptMode::Requeue,
        preempt_exempt_secs: Some(30),
        usage_factor: Factor(1_500_000),
        usage_threshold: Some(Factor(250_000)),
        limit_factor: Some(Factor(2_000_000)),
        limits: limits(CountLimit::is_of_qos, TresLimit::is_of_qos),
        ..Qos::new(2, "high")
    }
}

pub fn config_with_accounting() -> ClusterConfig {
    let enforce = Enforce { associations: true, limits: true, qos: true, safe: true, wckeys: true };
    ClusterConfig { accounting: AccountingConfig { enforce }, ..config() }
}
