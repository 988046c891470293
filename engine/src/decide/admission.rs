//! To which association, QOS and wckey a job belongs, and whether it may enter the queue under them
//! (AccountingStorageEnforce; Slurm's `resource_limits`: submit limits).
//!
//! Without enforcement nobody is refused: what is asked for is kept, and a job has an association when there is one.

use crate::reject::Reject;
use crate::state::State;
use crate::submitted::SubmitKey;
use sluice_model::accounting::{AssocId, CountLimit, Enforce, NORMAL_QOS};

/// What a job asks for.
pub(super) struct Asked<'a> {
    pub user: &'a str,
    pub account: Option<&'a str>,
    pub qos: Option<&'a str>,
    pub wckey: Option<&'a str>,
    /// Default applied.
    pub partitions: &'a [String],
}

/// What it gets. A QOS of None is `normal`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Admission {
    pub association: Option<AssocId>,
    pub account: Option<String>,
    pub qos: Option<String>,
    pub wckey: Option<String>,
}

pub(super) fn enforced(state: &State) -> Enforce {
    state.config.as_ref().map(|c| c.accounting.enforce).unwrap_or_default()
}

pub(super) fn admit(state: &State, asked: &Asked<'_>) -> Result<Admission, Reject> {
    let enforce = enforced(state);
    let a = &state.accounting;
    let user = a.users.get(asked.user);
    // Names of accounts and QOS are kept in lower case.
    let given = asked.account.map(|name| {
        let folded = name.to_lowercase();
        if a.accounts.contains_key(&folded) { folded } else { name.to_owned() }
    });
    let account = given.or_else(|| user.and_then(|u| u.default_account.clone()));
    let mut association = None;
    for (n, partition) in asked.partitions.iter().enumerate() {
        let found = account.as_ref().and_then(|account| a.for_job(account, asked.user, partition)).map(|x| x.id);
        if found.is_none() && enforce.associations {
            return Err(Reject::InvalidAccount { name: account.unwrap_or_default() });
        }
        if n == 0 {
            association = found;
        }
    }
    let qos = qos(state, enforce, association, asked.qos)?;
    let wckey = asked.wckey.map(str::to_owned).or_else(|| user.and_then(|u| u.default_wckey.clone()));
    if enforce.wckeys {
        let known = user.zip(wckey.as_ref()).is_some_and(|(u, key)| u.wckeys.contains(key));
        if !known {
            return Err(Reject::InvalidWckey { name: wckey.unwrap_or_default() });
        }
    }
    Ok(Admission { association, account, qos, wckey })
}

fn qos(
    state: &State,
    enforce: Enforce,
    association: Option<AssocId>,
    asked: Option<&str>,
) -> Result<Option<String>, Reject> {
    let a = &state.accounting;
    let name = match asked {
        None => a.qos_for_job(association),
        Some(name) => {
            let folded = name.to_lowercase();
            if a.qos.contains_key(&folded) { folded } else { name.to_owned() }
        }
    };
    if enforce.qos && !association.is_some_and(|id| a.allowed_qos(id).contains(&name)) {
        return Err(Reject::InvalidQos { name });
    }
    // `normal` is what None means; an explicit wish is kept as it was said.
    Ok(Some(name).filter(|n| asked.is_some() || n != NORMAL_QOS))
}

/// Refuses `jobs` more (an array's tasks count one by one) when a submit limit would be passed. As everywhere, a limit
/// that the QOS sets stands in for the associations' limit of the same kind.
pub(super) fn check_submit(state: &State, admission: &Admission, user: &str, jobs: u64) -> Result<(), Reject> {
    let Some(id) = admission.association.filter(|_| enforced(state).limits) else { return Ok(()) };
    let a = &state.accounting;
    let qos_name = admission.qos.as_deref().unwrap_or(NORMAL_QOS);
    let of_qos = |limit| a.qos.get(qos_name).and_then(|q| q.limits.count(limit));
    let check = |what: &str, limit: Option<u32>, key: SubmitKey| {
        let now = state.index.submitted.get(&key).copied().unwrap_or(0);
        match limit {
            Some(limit) if now.saturating_add(jobs) > u64::from(limit) => {
                let more = if jobs == 1 { "one more" } else { "more" };
                Err(Reject::AccountingPolicy {
                    detail: format!("{what} is {limit}; {now} are in the queue, and {more} ({jobs}) would pass it"),
                })
            }
            _ => Ok(()),
        }
    };
    let (q, u) = (qos_name.to_owned(), user.to_owned());
    let account = admission.account.clone().unwrap_or_default();
    let group = of_qos(CountLimit::GrpSubmit);
    check(&format!("GrpSubmit of QOS {q}"), group, SubmitKey::Qos(q.clone()))?;
    let per_user = of_qos(CountLimit::MaxSubmitPerUser);
    check(&format!("MaxSubmitPU of QOS {q}"), per_user, SubmitKey::QosUser(q.clone(), u))?;
    let per_account = of_qos(CountLimit::MaxSubmitPerAccount);
    check(&format!("MaxSubmitPA of QOS {q}"), per_account, SubmitKey::QosAccount(q, account.clone()))?;
    if per_user.is_none() {
        let what = format!("MaxSubmit of user {user} in account {account}");
        check(&what, a.limits(id).count(CountLimit::MaxSubmit), SubmitKey::Association(id))?;
    }
    if group.is_none() {
        for above in a.chain(id) {
            let what = format!("GrpSubmit of account {}", above.account);
            check(&what, above.limits.count(CountLimit::GrpSubmit), SubmitKey::Association(above.id))?;
        }
    }
    Ok(())
}
