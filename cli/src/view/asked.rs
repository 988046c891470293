//! What a job asked for, as words: dependency, licences, sharing. Needs the detailed record.

use sluice_model::dependency::Dependency;
use sluice_proto::v1;
use std::collections::BTreeMap;

/// `afterok:1(unfulfilled)`, `afterok:1(failed)`; None when the job waits for nothing.
pub fn dependency(job: &v1::JobRecord) -> Option<String> {
    let whole = job.spec.as_ref().and_then(|s| s.dependency.as_ref());
    // What can never be satisfied is shown whole (squeue(1), `%E`).
    let shown = if job.dependency_failed { whole.or(job.waiting_on.as_deref()) } else { job.waiting_on.as_deref() };
    let dependency = Dependency::try_from(shown?.clone()).ok().filter(|d| !d.terms.is_empty())?;
    let word = if job.dependency_failed { "failed" } else { "unfulfilled" };
    Some(dependency.with_states(|_| word))
}

/// Features as they would be written; None for none.
pub fn constraint(features: Option<&v1::Constraint>) -> Option<String> {
    Some(sluice_model::request::Constraint::try_from(features?.clone()).ok()?.to_string())
}

/// The number, or `*`.
pub fn or_any(n: Option<u32>) -> String {
    n.map_or_else(|| "*".to_owned(), |n| n.to_string())
}

/// `2@00:05:00`; without the time where the cluster's holds.
pub fn switches(asked: &v1::SwitchRequest) -> String {
    match asked.max_wait_secs {
        None => asked.count.to_string(),
        Some(secs) => {
            let wait = std::time::Duration::from_secs(u64::from(secs));
            format!("{}@{}", asked.count, sluice_model::time::format_elapsed_long(wait))
        }
    }
}

/// `NO`, `NODE`, `USER`
pub fn exclusive(job: &v1::JobRecord) -> &'static str {
    match job.spec.as_ref().and_then(|s| s.request.as_ref()).map_or(0, |r| r.exclusive) {
        0 => "NO",
        1 => "NODE",
        _ => "USER",
    }
}

/// `YES` when the job agreed to share its resources.
pub fn oversubscribe(job: &v1::JobRecord) -> &'static str {
    let shares = job.spec.as_ref().and_then(|s| s.request.as_ref()).is_some_and(|r| r.oversubscribe);
    if shares { "YES" } else { "NO" }
}

/// `ansys:2,fluent:1`
pub fn licenses(job: &v1::JobRecord) -> Option<String> {
    let asked: BTreeMap<String, u32> = job.spec.as_ref()?.licenses.clone().into_iter().collect();
    (!asked.is_empty()).then(|| sluice_model::licenses::format(&asked))
}

/// Licences that the job holds now.
pub fn licenses_held(job: &v1::JobRecord) -> Option<String> {
    let holds = matches!(job.state.as_str(), "RUNNING" | "SUSPENDED" | "COMPLETING");
    if holds { licenses(job) } else { None }
}

pub fn min_cpus_per_node(job: &v1::JobRecord) -> u32 {
    let request = job.spec.as_ref().and_then(|s| s.request.as_ref());
    let per_task = request.and_then(|r| r.cpus_per_task).unwrap_or(1);
    let tasks = request.and_then(|r| r.ntasks_per_node).unwrap_or(1);
    request.and_then(|r| r.min_cpus_per_node).unwrap_or(1).max(per_task.saturating_mul(tasks))
}

/// `*` stands for the default key.
pub fn wckey(job: &v1::JobRecord) -> &str {
    match job.spec.as_ref().and_then(|s| s.wckey.as_deref()) {
        None | Some("") => "*",
        Some(key) => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    fn waiting_for(text: &str, failed: bool) -> v1::JobRecord {
        let dependency = v1::Dependency::from(&sluice_model::dependency::parse(text).unwrap());
        let mut job = fixture::job(6);
        job.spec.as_mut().unwrap().dependency = Some(dependency.clone());
        job.waiting_on = (!failed).then_some(Box::new(dependency));
        job.dependency_failed = failed;
        job
    }

    #[test]
    fn dependencies_say_whether_they_can_still_be_met() {
        assert_eq!(super::dependency(&waiting_for("afterok:1", false)).unwrap(), "afterok:1(unfulfilled)");
        assert_eq!(super::dependency(&waiting_for("afterok:1", true)).unwrap(), "afterok:1(failed)");
        assert_eq!(super::dependency(&fixture::job(6)), None);
    }
}
