//! Why a job waits, as far as the state alone says. Resources and Priority are the scheduler's to say.

use super::scheduling::array_room;
use crate::dependency::singleton_blocked;
use crate::index::wants_singleton;
use crate::job::{Hold, Job, Phase};
use crate::state::State;
use sluice_model::partition::PartitionState;
use sluice_model::{Reason, Time, TimeLimit};

/// None when nothing but the scheduler's choice is in the way, or when the job is not pending.
pub fn wait_reason(job: &Job, state: &State, now: Time) -> Option<Reason> {
    if !matches!(job.phase, Phase::Pending) {
        return None;
    }
    if let Some(held) = hold_reason(job) {
        return Some(held);
    }
    if job.dependency_failed {
        return Some(Reason::DependencyNeverSatisfied);
    }
    if job.waiting_on.is_some() || (wants_singleton(job) && singleton_blocked(state, job)) {
        return Some(Reason::Dependency);
    }
    if job.not_before.is_some_and(|t| t > now) || job.eligible.is_none() {
        return Some(Reason::BeginTime);
    }
    if array_room(state, job) == Some(0) {
        return Some(Reason::JobArrayTaskLimit);
    }
    partitions(job, state)
}

/// Why the job is held; a running one will be once it is back in the queue.
pub fn hold_reason(job: &Job) -> Option<Reason> {
    match job.hold {
        Hold::User => Some(Reason::JobHeldUser),
        Hold::Admin => Some(Reason::JobHeldAdmin),
        Hold::Requeued(reason) => Some(reason),
        Hold::SpecialExit => Some(Reason::JobRequeuedHeld),
        Hold::No => None,
    }
}

/// A reason that all of its partitions give.
fn partitions(job: &Job, state: &State) -> Option<Reason> {
    let mut first = None;
    for name in &job.partitions {
        let partition = state.partitions.get(name)?;
        let reason = match partition.state {
            PartitionState::Down => Reason::PartitionDown,
            PartitionState::Inactive => Reason::PartitionInactive,
            PartitionState::Up | PartitionState::Drain => {
                let need = job.spec.time_min.or(job.spec.time_limit).unwrap_or(TimeLimit::Minutes(0));
                if need <= partition.max_time {
                    return None;
                }
                Reason::PartitionTimeLimit
            }
        };
        first = first.or(Some(reason));
    }
    first
}
