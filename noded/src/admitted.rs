//! Who has a job here: what the local agent and the judge of other hosts' tokens may ask at any moment.
//!
//! The owner replaces the whole table; readers hold it for an instant. Nothing here decides what a job may do.

use sluice_identity::agent::Caller;
use sluice_identity::server::Claim;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// A job with something on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub uid: u32,
    pub gid: u32,
    /// All hosts of its allocation: each of them may vouch for its user.
    pub hosts: Vec<String>,
}

#[derive(Clone)]
pub struct Admitted {
    jobs: Arc<RwLock<BTreeMap<u32, Job>>>,
    changed: watch::Sender<u64>,
}

impl Default for Admitted {
    fn default() -> Self {
        Admitted { jobs: Arc::default(), changed: watch::Sender::new(0) }
    }
}

impl Admitted {
    pub fn replace(&self, jobs: BTreeMap<u32, Job>) {
        *self.jobs.write().unwrap_or_else(PoisonError::into_inner) = jobs;
        self.changed.send_modify(|n| *n += 1);
    }

    /// Changes with each new table.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// A job of this user here (the newest), for the token that the agent signs.
    pub fn job_of(&self, caller: Caller) -> Option<u32> {
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        jobs.iter().rev().find(|(_, job)| job.uid == caller.uid).map(|(id, _)| *id)
    }

    /// Whether another host's word on a user counts here.
    pub fn admits(&self, claim: &Claim<'_>) -> bool {
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        jobs.get(&claim.job).is_some_and(|job| {
            job.uid == claim.uid
                && job.hosts.iter().any(|h| h == claim.host)
                && (job.gid == claim.gid || sluice_identity::users::is_member(claim.uid, claim.gid))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_job_vouch_and_only_for_its_user() {
        let admitted = Admitted::default();
        let job = Job { uid: 1000, gid: 1000, hosts: vec!["n1".into(), "n2".into()] };
        admitted.replace(BTreeMap::from([(7, job)]));
        let claim = |host, uid, job| Claim { host, uid, gid: 1000, job };
        assert!(admitted.admits(&claim("n2", 1000, 7)));
        assert!(!admitted.admits(&claim("n3", 1000, 7)));
        assert!(!admitted.admits(&claim("n1", 1001, 7)));
        assert!(!admitted.admits(&claim("n1", 1000, 8)));
        assert_eq!(admitted.job_of(Caller { uid: 1000, gid: 1, pid: None }), Some(7));
        assert_eq!(admitted.job_of(Caller { uid: 0, gid: 0, pid: None }), None);
    }
}
