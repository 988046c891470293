//! The controller around the engine, reduced to its promises: what it decides becomes durable a little later; only then
//! replies, effects and readers' snapshots leave. It can die between any two of those.

use super::checks::Checks;
use sluice_engine::command::Reply;
use sluice_engine::{Command, Effect, Event, Reject, State, advance, decide, fold};
use sluice_model::Time;
use std::sync::Arc;

/// Who waits for an outcome.
#[derive(Clone, Debug)]
pub enum Waiting {
    Nobody,
    /// Somebody who asked for something.
    Client,
    /// A node's report: acknowledged when durable.
    Report {
        node: usize,
        link: u64,
        report: u64,
    },
}

/// An outcome that has left.
#[derive(Debug)]
pub struct Left {
    pub waiting: Waiting,
    pub outcome: Result<Reply, Reject>,
    pub command: Arc<Command>,
}

pub struct Controller {
    pub state: State,
    /// What readers and the scheduler see: durable.
    pub published: State,
    /// Decisions in order; a crash keeps a prefix of these.
    pub journal: Vec<Vec<Event>>,
    /// Decisions that are surely durable.
    pub durable: usize,
    /// A snapshot, and how many decisions it covers.
    pub snapshot: (State, usize),
    held: Vec<Left>,
    effects: Vec<Effect>,
    clock: Time,
}

impl Controller {
    pub fn new() -> Controller {
        Controller {
            state: State::default(),
            published: State::default(),
            journal: Vec::new(),
            durable: 0,
            snapshot: (State::default(), 0),
            held: Vec::new(),
            effects: Vec::new(),
            clock: Time(0),
        }
    }

    /// Decides and folds; outcome and effects are held back until the next flush.
    pub fn command(&mut self, now: Time, command: Command, waiting: Waiting, checks: &mut Checks) {
        self.clock = self.clock.max(now);
        let command = Arc::new(command);
        let mut in_place = self.state.clone();
        let advanced = advance(&mut in_place, self.clock, &command);
        let decided = decide(&self.state, self.clock, &command);
        if advanced != decided {
            checks.violation(format!("advance decides otherwise than decide: {command:?}"));
        }
        let outcome = match decided {
            Ok(decision) => {
                let before = self.state.clone();
                for event in &decision.events {
                    fold(&mut self.state, event);
                }
                checks.step(&before, &self.state, &command, &decision);
                checks.same(&in_place, &self.state, "advance");
                if !decision.events.is_empty() {
                    self.journal.push(decision.events);
                }
                self.effects.extend(decision.effects);
                Ok(decision.reply)
            }
            Err(reject) => {
                checks.same(&in_place, &self.state, "a refusal by advance");
                Err(reject)
            }
        };
        self.held.push(Left { waiting, outcome, command });
    }

    /// All decided so far is on the disk: it may be seen.
    pub fn flush(&mut self) -> (Vec<Left>, Vec<Effect>) {
        self.durable = self.journal.len();
        self.published = self.state.clone();
        (std::mem::take(&mut self.held), std::mem::take(&mut self.effects))
    }

    pub fn take_snapshot(&mut self) {
        self.snapshot = (self.published.clone(), self.durable);
    }

    /// It dies; `extra` says how many of the decisions that were not surely durable survive all the same.
    pub fn crash(&mut self, extra: usize, checks: &mut Checks) {
        let whole = self.journal.len();
        let kept = (self.durable + extra).min(whole);
        let died = std::mem::take(&mut self.state);
        self.journal.truncate(kept);
        self.held.clear();
        self.effects.clear();
        self.state = replay(State::default(), &self.journal);
        if kept == whole {
            checks.same(&self.state, &died, "replaying the journal");
        }
        let (snapshot, covered) = &self.snapshot;
        let mut loaded = snapshot.clone();
        // As after loading from disk: nothing but what is stored.
        loaded.index = Default::default();
        loaded.archive_ordered = None;
        loaded.rebuild_indexes();
        let mut from_snapshot = replay(loaded, &self.journal[*covered..]);
        // Not stored: it may differ when nothing was purged since.
        from_snapshot.archive_ordered = self.state.archive_ordered;
        checks.same(&from_snapshot, &self.state, "replaying a snapshot and the journal after it");
        self.durable = kept;
        self.published = self.state.clone();
    }
}

pub fn replay(mut state: State, journal: &[Vec<Event>]) -> State {
    for event in journal.iter().flatten() {
        fold(&mut state, event);
    }
    state
}
