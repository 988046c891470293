//! The simulated users and operators: what they were told, and so may rely on.

use super::load::{Behaviour, operator, submission, user};
use super::rng::Rng;
use sluice_engine::command::{
    Caller, Command, JobChange, JobTarget, NodeChange, NodeStateChange, PartitionChange, Reply, SignalFlags,
};
use sluice_engine::job::Phase;
use sluice_engine::{Reject, State, query};
use sluice_model::config::ClusterConfig;
use sluice_model::index_set::IndexSet;
use sluice_model::partition::PartitionState;
use sluice_model::state::ExitStatus;
use sluice_model::{JobId, JobState, NodeName, Reason, SubmissionKey, Time, TimeLimit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A client gives up asking after so long: well within the time for which an ended job is kept.
const RESENT_WITHIN_MS: i64 = 20_000;

#[derive(Default)]
pub struct Clients {
    /// As the cluster was set up; changes of it are tried, and in the end it holds again.
    pub config: Option<Arc<ClusterConfig>>,
    /// Acknowledged submissions.
    pub submitted: Vec<JobId>,
    /// The latest submission, and when it was sent first.
    last_sent: Option<(Time, Command)>,
    keys: BTreeMap<SubmissionKey, JobId>,
    /// Submissions that became two jobs.
    doubled: Vec<String>,
    /// Jobs of which somebody was told that they are cancelled, and that nobody requeued since.
    pub cancelled: BTreeSet<JobId>,
    /// Records in the history, the last of each.
    pub history: BTreeMap<JobId, JobState>,
}

impl Clients {
    /// Something that a person does now, judged by what they can see.
    pub fn act(&mut self, rng: &mut Rng, now: Time, seen: &State, submissions_left: bool) -> Option<Command> {
        if submissions_left && rng.percent(60) {
            let spec = submission(rng, now, &self.submitted);
            // The last one again, as if its answer had been lost, or a new one.
            let lately = |sent: &(Time, Command)| now.0 - sent.0.0 < RESENT_WITHIN_MS;
            if let Some((_, command)) = self.last_sent.clone().filter(lately).filter(|_| rng.percent(15)) {
                return Some(command);
            }
            let key = Some(SubmissionKey(std::array::from_fn(|_| rng.below(256) as u8)));
            let command = Command::Submit { caller: user(spec.uid), spec: Box::new(spec), key };
            self.last_sent = Some((now, command.clone()));
            return Some(command);
        }
        let jobs: Vec<JobId> = seen.jobs.keys().copied().collect();
        let job = *rng.pick(&jobs)?;
        let record = seen.jobs.get(&job)?;
        let owner = user(record.spec.uid);
        let somebody = if rng.percent(10) { user(1999) } else { owner.clone() };
        let target = match record.array_id().filter(|_| rng.percent(50)) {
            // One task, or several of them together.
            Some(array) if rng.percent(25) => JobTarget::Tasks(array, IndexSet::single(rng.below(8) as u32)),
            Some(array) if rng.percent(50) => {
                let (from, step) = (rng.below(6) as u32, rng.between(1, 3) as u32);
                JobTarget::Tasks(array, IndexSet::range_step(from, from + rng.below(6) as u32, step))
            }
            Some(array) => JobTarget::Job(array),
            None => JobTarget::Job(job),
        };
        Some(match rng.below(15) {
            0..=3 => Command::Cancel { caller: somebody, target },
            4 => Command::Hold { caller: operator_or(rng, somebody), target, user_hold: rng.percent(20) },
            5 => Command::Release { caller: operator_or(rng, somebody), target },
            6..=7 => Command::Requeue { caller: somebody, target, hold: rng.percent(20) },
            8 => Command::Suspend { caller: operator(), target },
            9 => Command::Resume { caller: operator(), target },
            10 => {
                let caller = operator_or(rng, somebody);
                update(rng, now, caller, target)
            }
            11 => node_change(rng, seen)?,
            13 => Command::Configure { config: reconfigured(rng, self.config.as_deref()?) },
            12 => Command::Signal {
                caller: somebody,
                target,
                step: None,
                signal: if rng.percent(30) { 9 } else { 15 },
                flags: SignalFlags { batch: rng.percent(30), full: false },
            },
            _ => {
                let states = [PartitionState::Up, PartitionState::Up, PartitionState::Down, PartitionState::Drain];
                let change = PartitionChange { state: rng.pick(&states).copied(), ..PartitionChange::default() };
                let name = if rng.percent(50) { "main" } else { "short" };
                Command::UpdatePartition { caller: operator(), name: name.to_owned(), change: Box::new(change) }
            }
        })
    }

    /// An outcome that the controller let out.
    pub fn told(&mut self, command: &Command, outcome: &Result<Reply, Reject>) {
        match (command, outcome) {
            (Command::Submit { key: Some(key), .. }, Ok(Reply::Submitted { job })) => {
                match self.keys.insert(*key, *job) {
                    None => self.submitted.push(*job),
                    Some(first) if first == *job => {}
                    Some(first) => self.doubled.push(format!("job {first} was submitted again and became {job}")),
                }
            }
            (Command::Cancel { .. }, Ok(Reply::Affected { jobs })) => self.cancelled.extend(jobs),
            (Command::Requeue { .. }, Ok(Reply::Affected { jobs })) => {
                for job in jobs {
                    self.cancelled.remove(job);
                }
            }
            _ => {}
        }
    }

    /// The client of an allocation: when its work is done it says so, and again until it is heard.
    pub fn finish_allocations(seen: &State, now: Time) -> Vec<Command> {
        let mut commands = Vec::new();
        for job in seen.index.active.iter().filter_map(|id| seen.jobs.get(id)) {
            let Phase::Running(run) = &job.phase else { continue };
            let behaviour = Behaviour::of(&job.spec);
            if matches!(job.spec.kind, sluice_model::job::JobKind::Allocation)
                && run.started.0 + behaviour.runs_for <= now.0
            {
                commands.push(Command::CompleteAllocation {
                    caller: user(job.spec.uid),
                    job: job.id,
                    exit: ExitStatus { code: behaviour.exit, signal: 0 },
                });
            }
        }
        commands
    }

    /// What operators do so that everything can end: open, resume, release; and end what never will.
    pub fn tidy(&self, seen: &State, now: Time) -> Vec<Command> {
        let mut commands = Vec::new();
        commands.extend(self.config.clone().map(|config| Command::Configure { config }));
        // Accepted, but beyond what its partitions give: as in Slurm it would wait for a change of the limits for ever.
        let plan = sluice_sched::plan(&query::scheduler_input(seen, now));
        for (job, reason) in plan.reasons {
            if matches!(reason, Reason::PartitionTimeLimit | Reason::PartitionNodeLimit | Reason::BadConstraints) {
                commands.push(Command::Cancel { caller: operator(), target: JobTarget::Job(job) });
            }
        }
        for (name, partition) in &seen.partitions {
            if partition.state != PartitionState::Up {
                let change = PartitionChange { state: Some(PartitionState::Up), ..PartitionChange::default() };
                commands.push(Command::UpdatePartition {
                    caller: operator(),
                    name: name.clone(),
                    change: Box::new(change),
                });
            }
        }
        for (name, node) in &seen.nodes {
            if node.flags.drain || node.flags.fail || (node.flags.down && !node.flags.not_responding) {
                let change = NodeChange { state: Some(NodeStateChange::Resume), ..NodeChange::default() };
                commands.push(Command::UpdateNode { caller: operator(), nodes: vec![name.clone()], change });
            }
        }
        for job in seen.jobs.values() {
            let target = JobTarget::Job(job.id);
            let pending = matches!(job.phase, Phase::Pending);
            // A plain id of an array record means the whole array.
            if pending && job.dependency_failed {
                let target = match &job.array {
                    sluice_engine::job::ArrayRole::Task { array, index } => {
                        JobTarget::Tasks(*array, IndexSet::single(*index))
                    }
                    _ => target.clone(),
                };
                commands.push(Command::Cancel { caller: operator(), target });
            } else if job.hold != sluice_engine::job::Hold::No && !matches!(job.phase, Phase::Ended { .. }) {
                commands.push(Command::Release { caller: operator(), target: target.clone() });
            }
            if job.state() == JobState::Suspended {
                commands.push(Command::Resume { caller: operator(), target });
            }
        }
        commands
    }

    /// Everything that was acknowledged has come to its end.
    pub fn unfinished(&self, state: &State) -> Vec<String> {
        let mut problems = self.doubled.clone();
        for id in &self.submitted {
            match (state.jobs.get(id), self.history.get(id)) {
                (Some(job), _) if !matches!(job.phase, Phase::Ended { .. }) => {
                    problems.push(format!(
                        "job {id} has not ended: {:?}, reason {:?}, hold {:?}, eligible {:?}, waits for {:?}",
                        job.state(),
                        query::wait_reason(job, state, Time(i64::MAX)),
                        job.hold,
                        job.eligible,
                        job.waiting_on
                    ));
                }
                (None, None) => problems.push(format!("job {id} was acknowledged and is lost")),
                _ => {}
            }
        }
        for job in state.jobs.values().filter(|j| !matches!(j.phase, Phase::Ended { .. })) {
            problems.push(format!("job {} is {:?}", job.id, job.state()));
        }
        for id in &self.cancelled {
            let end = state.jobs.get(id).map(|j| j.state()).or_else(|| self.history.get(id).copied());
            if end.is_some_and(|e| e == JobState::Completed || e == JobState::Failed) {
                problems.push(format!("job {id} was acknowledged as cancelled and is recorded as {end:?}"));
            }
        }
        problems
    }
}

fn update(rng: &mut Rng, now: Time, caller: Caller, target: JobTarget) -> Command {
    let mut change = JobChange::default();
    match rng.below(5) {
        0 => change.time_limit = Some(TimeLimit::Minutes(rng.between(1, 5) as u32)),
        1 => change.nice = Some(rng.between(0, 100) as i32),
        2 => change.begin = Some(Time(now.0 + rng.between(0, 60_000))),
        3 => change.dependency = Some(None),
        _ => change.comment = Some("changed".into()),
    }
    Command::UpdateJob { caller, target, change: Box::new(change) }
}

/// Another grace period, and a node of another size: refused when that size is in use.
fn reconfigured(rng: &mut Rng, base: &ClusterConfig) -> Arc<ClusterConfig> {
    let mut config = base.clone();
    config.timing.kill_wait_secs = rng.between(0, 8) as u32;
    let at = rng.below(config.nodes.len() as u64) as usize;
    if rng.percent(50) {
        config.nodes[at].cpus = rng.between(1, i64::from(config.nodes[at].cpus)) as u32;
    }
    Arc::new(config)
}

fn operator_or(rng: &mut Rng, caller: Caller) -> Caller {
    if rng.percent(40) { operator() } else { caller }
}

fn node_change(rng: &mut Rng, seen: &State) -> Option<Command> {
    let names: Vec<NodeName> = seen.nodes.keys().cloned().collect();
    let name = rng.pick(&names)?.clone();
    let states = [NodeStateChange::Drain, NodeStateChange::Resume, NodeStateChange::Resume, NodeStateChange::Down];
    let state = rng.pick(&states).copied();
    let change = NodeChange { state, reason: Some("simulated".to_owned()), ..NodeChange::default() };
    Some(Command::UpdateNode { caller: operator(), nodes: vec![name], change })
}
