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
mod preempt;
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
    let reply = dispatch(&mut cx, cmd)?;
    Ok(Decision { events: cx.events, effects: cx.effects, reply })
}

/// Decides and folds in one go, for those who need no copy of the state from before and make nothing durable (the trace
/// simulator): most commands change the state in place, each event once. The same decision and the same state as `decide`
/// and `fold`; after a refusal the state is as before.
pub fn advance(state: &mut State, now: Time, cmd: &Command) -> Result<Decision, Reject> {
    // These refuse before their first event or not at all.
    let in_place = matches!(
        cmd,
        Command::Submit { .. }
            | Command::AttemptConfirmed { .. }
            | Command::BatchEnded { .. }
            | Command::AttemptGone { .. }
            | Command::ApplyPlan { .. }
            | Command::Archived { .. }
            | Command::Tick
    );
    if !in_place {
        let decision = decide(state, now, cmd)?;
        decision.events.iter().for_each(|event| fold(state, event));
        return Ok(decision);
    }
    let mut cx = Cx { held: Held::InPlace(state), now, events: Vec::new(), effects: Vec::new(), moved: Vec::new() };
    let reply = dispatch(&mut cx, cmd);
    debug_assert!(reply.is_ok() || cx.events.is_empty(), "refused after an event: {cmd:?}");
    Ok(Decision { events: cx.events, effects: cx.effects, reply: reply? })
}

fn dispatch(cx: &mut Cx, cmd: &Command) -> Result<Reply, Reject> {
    let cx_ref = &mut *cx;
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
        Command::ApplyPlan { starts, preemptions, lapsed } => plan::apply_plan(cx_ref, starts, preemptions, lapsed),
        Command::Accounting { caller, request } => accounting::request(cx_ref, caller, request),
        Command::Configure { config } => config::configure(cx_ref, config),
        Command::Archived { jobs } => tick::archived(cx_ref, jobs),
        Command::ResetUsage => {
            let at = cx_ref.now;
            cx_ref.emit(Event::UsageCleared { owners: None, at });
            Ok(Reply::Done)
        }
        Command::EndUsedUp => Ok(tick::end_used_up(cx_ref)),
        Command::Tick => tick::tick(cx_ref),
    }?;
    settle::settle(cx);
    preempt::give_back_cores(cx);
    Ok(reply)
}

/// A decision in the making.
pub(crate) struct Cx<'a> {
    held: Held<'a>,
    pub(crate) now: Time,
    pub(crate) events: Vec<Event>,
    pub(crate) effects: Vec<Effect>,
    /// Jobs that started, ended or were forgotten: those that wait for them are looked at before the decision is out.
    pub(crate) moved: Vec<JobId>,
}

/// The state that a decision rests on.
enum Held<'a> {
    /// As it was: nothing has been decided on.
    Before(&'a State),
    /// A copy with the events so far.
    Copy(Box<State>),
    /// The state itself changes with each event.
    InPlace(&'a mut State),
}

impl std::ops::Deref for Cx<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        match &self.held {
            Held::Before(state) => state,
            Held::Copy(state) => state,
            Held::InPlace(state) => state,
        }
    }
}

impl<'a> Cx<'a> {
    pub(crate) fn new(base: &'a State, now: Time) -> Self {
        Cx { held: Held::Before(base), now, events: Vec::new(), effects: Vec::new(), moved: Vec::new() }
    }

    /// Decides on an event; what is read from here on includes it.
    pub(crate) fn emit(&mut self, event: Event) {
        match &mut self.held {
            Held::Before(base) => {
                let mut copy = Box::new(base.clone());
                fold(&mut copy, &event);
                self.held = Held::Copy(copy);
            }
            Held::Copy(copy) => fold(copy, &event),
            Held::InPlace(state) => fold(state, &event),
        }
        self.events.push(event);
    }

    /// Decides on the last event of a decision: nothing reads the state after it.
    pub(crate) fn emit_last(&mut self, event: Event) {
        if let Held::InPlace(state) = &mut self.held {
            fold(state, &event);
        }
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
