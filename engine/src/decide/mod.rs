//! What a command leads to: events, effects and a reply, or a typed refusal. Reads only; the same state, time and
//! command always give the same decision.
//!
//! A decision often rests on its own first events (a job ends, so another becomes eligible). `Cx` keeps a scratch copy
//! of the state, made only when needed (O(1), persistent maps), to which each event is applied as it is decided.

mod accounting;
mod admission;
mod attempt;
mod cancel;
mod config;
mod control;
mod ending;
mod mailing;
mod node;
pub(crate) mod plan;
mod register;
mod settle;
pub(crate) mod submit;
mod target;
mod tick;
mod update;

use crate::command::{Caller, Command, Reply, Role};
use crate::effect::Effect;
use crate::event::Event;
use crate::fold::fold;
use crate::job::Job;
use crate::reject::Reject;
use crate::state::State;
use sluice_model::{JobId, Time};

/// What is to be made durable, then performed, then answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    pub reply: Reply,
}

/// Decides one command at one moment.
pub fn decide(state: &State, now: Time, cmd: &Command) -> Result<Decision, Reject> {
    let mut cx = Cx::new(state, now);
    let cx_ref = &mut cx;
    let reply = match cmd {
        Command::Submit { caller, spec, key } => submit::submit(cx_ref, caller, spec, *key),
        Command::Cancel { caller, target } => cancel::cancel(cx_ref, caller, target),
        Command::Signal { caller, target, step, signal, flags } => {
            cancel::signal(cx_ref, caller, target, *step, *signal, *flags)
        }
        Command::Hold { caller, target, user_hold } => control::hold(cx_ref, caller, target, *user_hold),
        Command::Release { caller, target } => control::release(cx_ref, caller, target),
        Command::Requeue { caller, target, hold } => control::requeue(cx_ref, caller, target, *hold),
        Command::Suspend { caller, target } => control::suspend(cx_ref, caller, target),
        Command::Resume { caller, target } => control::resume(cx_ref, caller, target),
        Command::UpdateJob { caller, target, change } => update::update_job(cx_ref, caller, target, change),
        Command::UpdateNode { caller, nodes, change } => node::update_node(cx_ref, caller, nodes, change),
        Command::UpdatePartition { caller, name, change } => config::update_partition(cx_ref, caller, name, change),
        Command::CompleteAllocation { caller, job, exit } => attempt::complete_allocation(cx_ref, caller, *job, *exit),
        Command::NodeRegister { node, report, holds } => register::register(cx_ref, node, report, holds),
        Command::NodeSilent { node } => node::silent(cx_ref, node),
        Command::AttemptConfirmed { node, job, attempt } => attempt::confirmed(cx_ref, node, *job, *attempt),
        Command::BatchEnded { node, job, attempt, exit, usage, failure } => {
            attempt::batch_ended(cx_ref, node, *job, *attempt, *exit, *usage, failure.as_ref())
        }
        Command::AttemptGone { node, job, attempt } => attempt::gone(cx_ref, node, *job, *attempt),
        Command::StepReport { node, step } => attempt::step_report(cx_ref, node, step),
        Command::ApplyPlan { starts } => plan::apply_plan(cx_ref, starts),
        Command::Accounting { caller, request } => accounting::request(cx_ref, caller, request),
        Command::Configure { config } => config::configure(cx_ref, config),
        Command::Archived { jobs } => tick::archived(cx_ref, jobs),
        Command::ResetUsage => {
            let at = cx_ref.now;
            cx_ref.emit(Event::UsageCleared { owners: None, at });
            Ok(Reply::Done)
        }
        Command::Tick => tick::tick(cx_ref),
    }?;
    settle::settle(&mut cx);
    Ok(Decision { events: cx.events, effects: cx.effects, reply })
}

/// A decision in the making.
pub(crate) struct Cx<'a> {
    base: &'a State,
    scratch: Option<State>,
    pub(crate) now: Time,
    pub(crate) events: Vec<Event>,
    pub(crate) effects: Vec<Effect>,
    /// Jobs that started, ended or were forgotten: those that wait for them are looked at before the decision is out.
    pub(crate) moved: Vec<JobId>,
}

impl std::ops::Deref for Cx<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        self.scratch.as_ref().unwrap_or(self.base)
    }
}

impl<'a> Cx<'a> {
    pub(crate) fn new(base: &'a State, now: Time) -> Self {
        Cx { base, scratch: None, now, events: Vec::new(), effects: Vec::new(), moved: Vec::new() }
    }

    /// Decides on an event; what is read from here on includes it.
    pub(crate) fn emit(&mut self, event: Event) {
        fold(self.scratch.get_or_insert_with(|| self.base.clone()), &event);
        self.events.push(event);
    }

    /// Decides on the last event of a decision: nothing reads the state after it.
    pub(crate) fn emit_last(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn perform(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// The job's record as decided so far.
    pub(crate) fn job_now(&self, id: JobId) -> Option<std::sync::Arc<Job>> {
        self.jobs.get(&id).cloned()
    }
}

/// The owner, who may act on everybody's jobs, or a coordinator of the job's account.
pub(crate) fn may_touch(state: &State, caller: &Caller, job: &Job) -> Result<(), Reject> {
    if caller.uid == job.spec.uid || caller.role >= Role::Operator {
        return Ok(());
    }
    let account = job.association.and_then(|id| state.accounting.association(id)).map(|a| &a.account);
    if account.is_some_and(|account| state.accounting.coordinates(&caller.user, account)) {
        return Ok(());
    }
    Err(Reject::AccessDenied { what: format!("job {} belongs to {}", job.id, job.spec.user) })
}

pub(crate) fn operators_only(caller: &Caller, what: &str) -> Result<(), Reject> {
    if caller.role >= Role::Operator {
        return Ok(());
    }
    Err(Reject::AccessDenied { what: format!("{what} is for operators and administrators") })
}
