//! Reads: from the published snapshot and the history, streamed in chunks, never through the owner.

use super::{Streamed, status, target, unreadable_history};
use crate::context::Context;
use crate::owner::wall_clock;
use crate::parallel;
use crate::records::{self, Detail};
use crate::store::HistoryQuery;
use crate::view::Remarks;
use bytes::Bytes;
use sluice_engine::command::{Caller, JobTarget, Role};
use sluice_engine::job::{ArrayRole, Outcome, Phase};
use sluice_engine::{Job, Reject, State};
use sluice_model::{JobId, JobState, NodeName, Reason, Time};
use sluice_proto::v1;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// Records in one message of a list.
const CHUNK: usize = 1000;

/// Which records a reader wants. Empty lists mean all.
struct Filter {
    jobs: Vec<JobTarget>,
    users: BTreeSet<String>,
    /// None: all.
    states: Option<Vec<JobState>>,
    partitions: Vec<String>,
    accounts: Vec<String>,
    names: Vec<Bytes>,
    nodes: Vec<NodeName>,
    qos: Vec<String>,
}

impl Filter {
    fn names_job(&self, job: &Job) -> bool {
        self.jobs.is_empty() || self.jobs.iter().any(|t| names(t, job))
    }

    fn admits(&self, job: &Job) -> bool {
        let spec = &job.spec;
        let has = |list: &[String], value: &str| list.is_empty() || list.iter().any(|v| v == value);
        self.names_job(job)
            && (self.users.is_empty()
                || self.users.contains(spec.user.as_str())
                || self.users.contains(&spec.uid.to_string()))
            && self.states.as_ref().is_none_or(|s| shown_among(s, job.state()))
            && (self.partitions.is_empty()
                || match &job.partition {
                    Some(p) => self.partitions.contains(p),
                    None => job.partitions.iter().any(|p| self.partitions.contains(p)),
                })
            && has(&self.accounts, spec.account.as_deref().unwrap_or_default())
            && has(&self.qos, spec.qos.as_deref().unwrap_or("normal"))
            && (self.names.is_empty() || self.names.iter().any(|n| n == spec.name.as_bytes()))
            && (self.nodes.is_empty()
                || job.run().is_some_and(|run| run.allocation.names().any(|n| self.nodes.contains(n))))
    }
}

/// SPECIAL_EXIT is a pending job with something to it: who asks for PENDING sees it too.
fn shown_among(asked: &[JobState], state: JobState) -> bool {
    asked.contains(&state) || (state.is_waiting() && asked.contains(&JobState::Pending))
}

/// Whether the target names this record: by its own id, its array's, or its task index.
fn names(target: &JobTarget, job: &Job) -> bool {
    match (target, &job.array) {
        (JobTarget::Job(id), _) => job.id == *id || job.array_id() == Some(*id),
        (JobTarget::Tasks(id, wanted), ArrayRole::Task { array, index }) => array == id && wanted.contains(*index),
        (JobTarget::Tasks(id, wanted), ArrayRole::Pending { indices, .. } | ArrayRole::Block { indices, .. }) => {
            job.array_id() == Some(*id) && !wanted.is_disjoint(indices)
        }
        (JobTarget::Tasks(..), ArrayRole::None) => false,
    }
}

fn states(names: &[String]) -> Result<Option<Vec<JobState>>, Status> {
    if names.iter().any(|n| n.eq_ignore_ascii_case("all")) {
        return Ok(None);
    }
    if names.is_empty() {
        use JobState::{Completing, Pending, Running, Suspended};
        return Ok(Some(vec![Pending, Running, Suspended, Completing]));
    }
    let parse = |n: &String| {
        JobState::parse(n).ok_or_else(|| Status::invalid_argument(format!("Invalid job state specified: {n}")))
    };
    names.iter().map(parse).collect::<Result<_, _>>().map(Some)
}

fn targets(list: Vec<v1::JobTarget>) -> Result<Vec<JobTarget>, Status> {
    list.into_iter().map(|t| target(Some(t))).collect()
}

/// Candidates for a filter: only the named jobs when it names some, so that a one-job query costs one look-up.
fn candidates<'a>(state: &'a State, filter: &'a Filter) -> Box<dyn Iterator<Item = &'a Arc<Job>> + 'a> {
    if filter.jobs.is_empty() {
        return Box::new(state.jobs.values());
    }
    let mut ids = BTreeSet::new();
    for target in &filter.jobs {
        let (JobTarget::Job(id) | JobTarget::Tasks(id, _)) = target;
        ids.insert(*id);
        ids.extend(sluice_engine::query::array_members(state, *id));
    }
    Box::new(ids.into_iter().filter_map(|id| state.jobs.get(&id)))
}

pub fn list_jobs(
    context: &Context,
    request: Request<v1::ListJobsRequest>,
) -> Result<Response<Streamed<v1::JobList>>, Status> {
    let caller = context.caller(&request)?;
    let request = request.into_inner();
    let (full, steps, estimates) = (request.detail, request.steps, request.start_estimates);
    let detail = Detail { full, steps, estimates, ..Detail::default() };
    let filter = Filter {
        jobs: targets(request.jobs)?,
        users: request.users.into_iter().collect(),
        states: states(&request.states)?,
        partitions: request.partitions,
        accounts: request.accounts,
        names: request.names,
        nodes: request.nodes.iter().map(NodeName::new).collect(),
        qos: request.qos,
    };
    let (state, remarks) = (context.published.state(), context.published.remarks());
    let (sender, receiver) = mpsc::channel(4);
    let work = move || {
        let now = wall_clock();
        let unknown_id = filter.jobs.iter().any(|t| !candidates_known(&state, t));
        let mut list = v1::JobList { now: now.0, unknown_id, ..v1::JobList::default() };
        let jobs: Vec<&Arc<Job>> = candidates(&state, &filter).collect();
        let record = |job: &&Arc<Job>| {
            filter.admits(job).then(|| {
                let mut record = records::job(job, &state, &remarks, now, detail);
                hide_from_others(&mut record, &caller);
                record
            })
        };
        let sent = parallel::in_order(&jobs, CHUNK, record, |_, record| {
            list.jobs.extend(record);
            if list.jobs.len() < CHUNK {
                return Ok(());
            }
            let next = v1::JobList { now: now.0, jobs: Vec::with_capacity(CHUNK), ..v1::JobList::default() };
            sender.blocking_send(Ok(std::mem::replace(&mut list, next)))
        });
        if sent.is_err() {
            return;
        }
        // A reader that went away needs nothing more.
        let _ = sender.blocking_send(Ok(list));
    };
    tokio::task::spawn_blocking(work);
    Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
}

/// A command line may carry what only its user should read (`--export=TOKEN=…`, `--wrap`): others see its program alone.
/// The script itself is refused to them, too.
fn hide_from_others(record: &mut v1::JobRecord, caller: &Caller) {
    if record.uid == caller.uid || caller.role >= Role::Operator {
        return;
    }
    let program = |line: &bytes::Bytes| {
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        line.slice(..end)
    };
    if let Some(spec) = record.spec.as_mut() {
        spec.submit_line = program(&spec.submit_line);
        spec.args.clear();
    }
    for step in &mut record.steps {
        step.submit_line = program(&step.submit_line);
    }
}

fn candidates_known(state: &State, target: &JobTarget) -> bool {
    let (JobTarget::Job(id) | JobTarget::Tasks(id, _)) = target;
    state.jobs.contains_key(id) || !sluice_engine::query::array_members(state, *id).is_empty()
}

pub fn list_nodes(context: &Context, request: Request<v1::ListNodesRequest>) -> Result<Response<v1::NodeList>, Status> {
    context.caller(&request)?;
    let wanted = request.into_inner().nodes;
    let (state, remarks) = (context.published.state(), context.published.remarks());
    let record = |node: &Arc<sluice_engine::node::Node>| {
        records::node(node, &state, &remarks, context.links.health(&node.spec.name))
    };
    let order = state.config.as_ref().map(|c| c.nodes.as_slice()).unwrap_or_default();
    let nodes = if wanted.is_empty() {
        order.iter().filter_map(|spec| state.nodes.get(&spec.name)).map(record).collect()
    } else {
        let find = |name: &String| {
            let name = NodeName::new(name);
            state.nodes.get(&name).ok_or_else(|| status(&Reject::InvalidNodeName { name: name.to_string() }))
        };
        wanted.iter().map(|n| find(n).map(record)).collect::<Result<_, _>>()?
    };
    Ok(Response::new(v1::NodeList { nodes, now: wall_clock().0 }))
}

pub fn list_partitions(context: &Context, request: Request<v1::Empty>) -> Result<Response<v1::PartitionList>, Status> {
    context.caller(&request)?;
    let state = context.published.state();
    let order = state.config.as_ref().map(|c| c.partitions.as_slice()).unwrap_or_default();
    let partitions =
        order.iter().filter_map(|p| state.partitions.get(&p.name)).map(|p| records::partition(p, &state)).collect();
    Ok(Response::new(v1::PartitionList { partitions, now: wall_clock().0 }))
}

/// Sends the job's record now and at each change of its state, until it is finished. Of a whole array also the record of
/// each task whose script could not be started, once: the array's own record says nothing of why.
pub fn watch_job(
    context: &Arc<Context>,
    request: Request<v1::WatchJobRequest>,
) -> Result<Response<Streamed<v1::JobRecord>>, Status> {
    let caller = context.caller(&request)?;
    let v1::WatchJobRequest { job, whole_array } = request.into_inner();
    let id = JobId(job);
    // Subscribed before the first look, so that no change falls between.
    let mut changes = context.job_changes.subscribe();
    if !context.published.state().jobs.contains_key(&id) {
        return Err(status(&Reject::InvalidJobId));
    }
    let context = Arc::clone(context);
    let (sender, receiver) = mpsc::channel(8);
    tokio::spawn(async move {
        let mut array = whole_array.then(ArrayWatch::default);
        // What to look at: one record, or (None) all of them.
        let mut changed = None;
        loop {
            let state = context.published.state();
            let Some(job) = state.jobs.get(&id) else { return };
            let record = |job: &Job| {
                let detail = Detail { full: true, ..Detail::default() };
                let mut record = records::job(job, &state, &context.published.remarks(), wall_clock(), detail);
                hide_from_others(&mut record, &caller);
                record
            };
            let mut due = Vec::new();
            let mut finished = job.state().is_finished();
            if let Some(array) = &mut array {
                finished &= state.index.arrays.get(&id).is_none_or(|entry| entry.open == 0);
                // The state runs ahead of the changes that announce it: at the end, some may not have been read yet.
                let which = changed.filter(|_| !finished);
                due.extend(array.look(&state, id, which).iter().filter(|j| j.id != id).map(|j| record(j)));
            }
            let mut own = record(job);
            if let Some(worst) = array.as_ref().and_then(|a| a.worse_than(job)) {
                own.outcome = Some(Box::new(records::outcome(&worst)));
            }
            due.push(own);
            for record in due {
                if sender.send(Ok(record)).await.is_err() {
                    return;
                }
            }
            if finished {
                return;
            }
            drop(state);
            changed = loop {
                tokio::select! {
                    changed = changes.recv() => match changed {
                        Ok(changed) if changed == id => break Some(changed),
                        Ok(changed) if whole_array && is_member(&context.published.state(), id, changed) => {
                            break Some(changed);
                        }
                        Ok(_) => {}
                        Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => break None,
                        Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
                    },
                    () = sender.closed() => return,
                    () = context.stopping() => return,
                }
            };
        }
    });
    Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
}

fn is_member(state: &State, array: JobId, job: JobId) -> bool {
    state.jobs.get(&job).is_some_and(|j| j.array_id() == Some(array))
}

/// What somebody who waits for a whole array has learned of its tasks.
#[derive(Default)]
struct ArrayWatch {
    /// The highest exit so far: tasks may be forgotten before the array is over.
    worst: Option<Outcome>,
    told: BTreeSet<JobId>,
}

impl ArrayWatch {
    /// Takes in the records that may have ended; gives those of which the reader must be told.
    fn look(&mut self, state: &State, array: JobId, changed: Option<JobId>) -> Vec<Arc<Job>> {
        let which = match changed {
            Some(one) => vec![one],
            None => sluice_engine::query::array_members(state, array),
        };
        let mut failed = Vec::new();
        for job in which.iter().filter_map(|id| state.jobs.get(id)) {
            let Phase::Ended { outcome, .. } = &job.phase else { continue };
            if self.worst.as_ref().is_none_or(|worst| rank(outcome) > rank(worst)) {
                self.worst = Some(outcome.clone());
            }
            if outcome.reason == Reason::JobLaunchFailure && self.told.insert(job.id) {
                failed.push(Arc::clone(job));
            }
        }
        failed
    }

    /// The end that counts for the array when it is not that of its own record. The words about it belong to the task.
    fn worse_than(&self, own: &Job) -> Option<Outcome> {
        let worst = self.worst.as_ref().filter(|worst| own.outcome().is_none_or(|own| rank(worst) > rank(own)))?;
        Some(Outcome { detail: None, ..worst.clone() })
    }
}

/// Ends in the order in which they count for an array.
fn rank(outcome: &Outcome) -> (u8, u8) {
    (outcome.exit.signal, outcome.exit.code)
}

/// A job's place in the window of sacct: eligible or submitted before its end, not over before its start.
fn in_window(job: &Job, start: Option<Time>, end: Option<Time>) -> bool {
    let begin = job.eligible.unwrap_or(job.submitted);
    end.is_none_or(|e| begin <= e) && start.is_none_or(|s| job.ended().is_none_or(|over| over >= s))
}

/// The runs after which a job went back to the queue, each as a job of its own (`sacct -D`).
fn earlier_runs(job: &Job) -> impl Iterator<Item = Job> {
    job.past_runs.iter().map(|past| Job {
        attempt: past.run.as_ref().map_or(job.attempt, |run| run.attempt),
        steps: past.steps.clone(),
        phase: Phase::Ended { run: past.run.clone(), outcome: past.outcome.clone(), ended: past.ended },
        claim: None,
        past_runs: Vec::new(),
        ..job.clone()
    })
}

pub fn list_history(
    context: &Context,
    request: Request<v1::HistoryRequest>,
) -> Result<Response<Streamed<v1::JobList>>, Status> {
    let caller = context.caller(&request)?;
    let request = request.into_inner();
    let states = if request.states.is_empty() { None } else { states(&request.states)? };
    let filter = Filter {
        jobs: targets(request.jobs)?,
        users: request.users.into_iter().collect(),
        states: None,
        partitions: request.partitions,
        accounts: request.accounts,
        names: request.names,
        nodes: request.nodes.iter().map(NodeName::new).collect(),
        qos: request.qos,
    };
    let (start, end) = (request.start.map(Time), request.end.map(Time));
    let published = Arc::clone(&context.published);
    let shelf = Arc::clone(&context.shelf);
    let (sender, receiver) = mpsc::channel(4);
    let work = move || {
        let admits = |job: &Job| {
            filter.admits(job)
                && in_window(job, start, end)
                && states
                    .as_ref()
                    .is_none_or(|s| s.contains(&job.state()) || job.outcome().is_some_and(|o| s.contains(&o.state)))
        };
        // The live state first: what is purged in between is then found in the history (written before it is purged).
        let state = published.state();
        let now = wall_clock();
        let detail = Detail { full: true, steps: true, estimates: false, brief: request.brief };
        let ids = |t: &JobTarget| match t {
            JobTarget::Job(id) | JobTarget::Tasks(id, _) => *id,
        };
        let query = HistoryQuery {
            ended_since: start,
            jobs: (!filter.jobs.is_empty()).then(|| filter.jobs.iter().map(ids).collect()),
            all_attempts: request.duplicates,
            ..HistoryQuery::default()
        };
        let mut records: Vec<Arc<Job>> = Vec::new();
        let read = shelf.history(&query, &mut |job| {
            // A job that is written to the history and not yet forgotten is in both; the live one counts.
            if admits(&job) && !state.jobs.contains_key(&job.id) {
                records.push(Arc::new(job));
            }
            if sender.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if let Err(error) = read {
            let _ = sender.blocking_send(Err(unreadable_history(&error)));
            return;
        }
        let live = candidates(&state, &filter).filter(|j| admits(j)).cloned();
        records.extend(live);
        records.sort_by_key(|j| (j.submitted, j.array_id().unwrap_or(j.id), j.id, j.attempt));
        let nobody = Remarks::default();
        let remarks = published.remarks();
        let empty = State::default();
        for chunk in records.chunks(CHUNK) {
            let mut jobs = Vec::with_capacity(chunk.len());
            for job in chunk {
                let live = state.jobs.contains_key(&job.id);
                let (state, remarks) = if live { (&*state, &*remarks) } else { (&empty, &nobody) };
                if request.duplicates {
                    jobs.extend(earlier_runs(job).map(|run| v1::JobRecord {
                        requeued_run: true,
                        ..records::job(&run, &empty, &nobody, now, detail)
                    }));
                }
                jobs.push(records::job(job, state, remarks, now, detail));
            }
            jobs.iter_mut().for_each(|record| hide_from_others(record, &caller));
            if sender.blocking_send(Ok(v1::JobList { jobs, now: now.0, unknown_id: false })).is_err() {
                return;
            }
        }
        if records.is_empty() {
            let _ = sender.blocking_send(Ok(v1::JobList { now: now.0, ..v1::JobList::default() }));
        }
    };
    tokio::task::spawn_blocking(work);
    Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(uid: u32, role: Role) -> Caller {
        Caller { uid, gid: uid, user: format!("u{uid}"), groups: Vec::new(), role }
    }

    fn line_seen_by(caller: &Caller) -> bytes::Bytes {
        let spec = v1::JobSpec { submit_line: "sbatch --export=KEY=secret job.sh".into(), ..v1::JobSpec::default() };
        let mut record = v1::JobRecord { uid: 1000, spec: Some(Box::new(spec)), ..v1::JobRecord::default() };
        hide_from_others(&mut record, caller);
        record.spec.expect("the spec stays").submit_line
    }

    #[test]
    fn a_command_line_is_shown_to_its_user_and_operators_and_to_others_by_its_program_alone() {
        assert_eq!(line_seen_by(&caller(1000, Role::User)), "sbatch --export=KEY=secret job.sh");
        assert_eq!(line_seen_by(&caller(0, Role::Administrator)), "sbatch --export=KEY=secret job.sh");
        assert_eq!(line_seen_by(&caller(1001, Role::User)), "sbatch");
    }
}
