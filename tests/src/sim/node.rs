//! A fake node daemon: durable memory of attempts and an outbox that survive its restarts and reboots, processes that
//! do not survive a reboot. It believes nothing of the controller's books: it notices cores used twice and scripts
//! started twice by itself.

use super::load::Behaviour;
use sluice_engine::command::LaunchFailure;
use sluice_model::state::ExitStatus;
use sluice_model::step::StepRecord;
use sluice_model::{JobId, NodeAlloc, NodeName, NodeSpec, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

pub type Attempt = (JobId, u32);

/// From the controller.
#[derive(Clone, Debug)]
pub enum Order {
    /// `script` on the first node of a batch job.
    Launch {
        attempt: Attempt,
        part: NodeAlloc,
        script: Option<Behaviour>,
    },
    End {
        attempt: Attempt,
    },
    Signal {
        attempt: Attempt,
        signal: u8,
    },
    Suspend {
        attempt: Attempt,
        resume: bool,
    },
    /// The report of this number is durable.
    Ack {
        report: u64,
    },
}

/// To the controller; repeated until acknowledged.
#[derive(Clone, Debug)]
pub enum Word {
    Confirmed(Attempt),
    Ended { attempt: Attempt, exit: ExitStatus, failure: Option<LaunchFailure> },
    Gone(Attempt),
    Step(Box<StepRecord>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Script {
    /// This node is not the batch host.
    None,
    /// `token` tells a live timer from one that was overtaken.
    Running {
        ends: Time,
        token: u64,
    },
    Stopped {
        left: i64,
    },
    Over,
}

#[derive(Clone, Debug)]
pub struct Held {
    pub part: NodeAlloc,
    pub script: Script,
    pub behaviour: Option<Behaviour>,
    /// Told to end; its processes go away a little later.
    pub ending: bool,
    /// Nothing of it is left.
    pub gone: bool,
}

pub struct Node {
    pub name: NodeName,
    pub spec: Arc<NodeSpec>,
    pub boot: u32,
    /// The link's number while it is connected.
    pub link: Option<u64>,
    /// Since when, milliseconds.
    pub linked: i64,
    /// Unreachable until then.
    pub away_until: Time,
    /// What it has ever been told to run: durable.
    pub attempts: BTreeMap<Attempt, Held>,
    /// Reports not yet acknowledged: durable.
    pub outbox: BTreeMap<u64, Word>,
    next_report: u64,
    next_token: u64,
}

/// What an order set in motion.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Motion {
    /// The script will end then.
    Ends {
        attempt: Attempt,
        at: Time,
        token: u64,
    },
    /// Its processes are gone after so many milliseconds.
    Clears {
        attempt: Attempt,
        after: i64,
    },
    /// The node would have started a script.
    Started(Attempt),
    Broken(String),
}

impl Node {
    pub fn new(spec: Arc<NodeSpec>) -> Node {
        Node {
            name: spec.name.clone(),
            spec,
            boot: 1,
            link: None,
            linked: 0,
            away_until: Time(0),
            attempts: BTreeMap::new(),
            outbox: BTreeMap::new(),
            next_report: 1,
            next_token: 1,
        }
    }

    pub fn say(&mut self, word: Word) -> u64 {
        let id = self.next_report;
        self.next_report += 1;
        self.outbox.insert(id, word);
        id
    }

    /// What it will still report on, and so holds.
    pub fn holds(&self) -> Vec<Attempt> {
        self.attempts.iter().filter(|(_, h)| !h.gone).map(|(a, _)| *a).collect()
    }

    fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    pub fn launch(
        &mut self,
        now: Time,
        attempt: Attempt,
        part: NodeAlloc,
        script: Option<Behaviour>,
        node_fault: bool,
    ) -> Vec<Motion> {
        if let Some(held) = self.attempts.get(&attempt) {
            // Told before: the answer again, nothing else.
            let word = if held.gone { Word::Gone(attempt) } else { Word::Confirmed(attempt) };
            self.say(word);
            return Vec::new();
        }
        let mut motions = Vec::new();
        for (other, held) in self.attempts.iter().filter(|(_, h)| !h.gone) {
            let shares = |g: &sluice_model::GresAlloc| {
                held.part.gres.iter().any(|h| h.name == g.name && !h.indices.is_disjoint(&g.indices))
            };
            if !held.part.cpus.is_disjoint(&part.cpus) || part.gres.iter().any(shares) {
                motions.push(Motion::Broken(format!(
                    "{}: {attempt:?} was given cores or devices that {other:?} still uses",
                    self.name
                )));
            }
        }
        let mut held = Held { part, script: Script::None, behaviour: script, ending: false, gone: false };
        if let Some(behaviour) = script {
            if behaviour.fails_to_launch || node_fault {
                held.script = Script::Over;
                let kind = if node_fault {
                    sluice_engine::command::LaunchFailureKind::Node
                } else {
                    sluice_engine::command::LaunchFailureKind::Job
                };
                let failure = Some(LaunchFailure { kind, detail: "simulated".to_owned() });
                self.attempts.insert(attempt, held);
                self.say(Word::Ended { attempt, exit: ExitStatus { code: 1, signal: 0 }, failure });
                return motions;
            }
            let (ends, token) = (Time(now.0 + behaviour.runs_for), self.token());
            held.script = Script::Running { ends, token };
            motions.push(Motion::Started(attempt));
            motions.push(Motion::Ends { attempt, at: ends, token });
        }
        self.attempts.insert(attempt, held);
        self.say(Word::Confirmed(attempt));
        motions
    }

    /// The script's own timer; its exit code if it has ended now.
    pub fn script_ends(&mut self, attempt: Attempt, token: u64) -> Option<u8> {
        let held = self.attempts.get_mut(&attempt)?;
        if !matches!(held.script, Script::Running { token: t, .. } if t == token) {
            return None;
        }
        held.script = Script::Over;
        let exit = ExitStatus { code: held.behaviour.map_or(0, |b| b.exit), signal: 0 };
        self.say(Word::Ended { attempt, exit, failure: None });
        Some(exit.code)
    }

    pub fn signal(&mut self, now: Time, attempt: Attempt, signal: u8) -> Vec<Motion> {
        let token = self.token();
        let Some(held) = self.attempts.get_mut(&attempt) else { return Vec::new() };
        let stubborn = held.behaviour.is_some_and(|b| b.stubborn);
        match (&held.script, signal) {
            (Script::Running { .. }, 15) if !stubborn => {
                // It tidies up for a moment; how it leaves is its own affair.
                let at = Time(now.0 + 300);
                held.script = Script::Running { ends: at, token };
                vec![Motion::Ends { attempt, at, token }]
            }
            _ => Vec::new(),
        }
    }

    pub fn suspend(&mut self, now: Time, attempt: Attempt, resume: bool) -> Vec<Motion> {
        let token = self.token();
        let Some(held) = self.attempts.get_mut(&attempt) else { return Vec::new() };
        match held.script {
            Script::Running { ends, .. } if !resume => {
                held.script = Script::Stopped { left: (ends.0 - now.0).max(0) };
                Vec::new()
            }
            Script::Stopped { left } if resume => {
                let at = Time(now.0 + left);
                held.script = Script::Running { ends: at, token };
                vec![Motion::Ends { attempt, at, token }]
            }
            _ => Vec::new(),
        }
    }

    pub fn end(&mut self, attempt: Attempt, after: i64) -> Vec<Motion> {
        match self.attempts.get_mut(&attempt) {
            // Never heard of: remembered as over, so that a launch that is still under way starts nothing.
            None => {
                let part = NodeAlloc {
                    node: self.name.clone(),
                    cpus: Default::default(),
                    memory_mb: 0,
                    gres: Vec::new(),
                    tasks: 0,
                };
                let held = Held { part, script: Script::None, behaviour: None, ending: true, gone: true };
                self.attempts.insert(attempt, held);
                self.say(Word::Gone(attempt));
                Vec::new()
            }
            Some(held) if held.gone => {
                self.say(Word::Gone(attempt));
                Vec::new()
            }
            Some(held) if held.ending => Vec::new(),
            Some(held) => {
                held.ending = true;
                vec![Motion::Clears { attempt, after }]
            }
        }
    }

    /// The last process is gone.
    pub fn cleared(&mut self, attempt: Attempt) {
        let Some(held) = self.attempts.get_mut(&attempt).filter(|h| h.ending && !h.gone) else { return };
        held.gone = true;
        let killed = matches!(held.script, Script::Running { .. } | Script::Stopped { .. });
        held.script = Script::Over;
        if killed {
            self.say(Word::Ended { attempt, exit: ExitStatus { code: 0, signal: 9 }, failure: None });
        }
        self.say(Word::Gone(attempt));
    }

    /// Processes die; what was written down stays. A script whose end is on record is still reported on.
    pub fn reboot(&mut self) {
        self.boot += 1;
        self.link = None;
        let on_record: Vec<Attempt> = self
            .outbox
            .values()
            .filter_map(|w| match w {
                Word::Ended { attempt, .. } => Some(*attempt),
                _ => None,
            })
            .collect();
        for (attempt, held) in self.attempts.iter_mut().filter(|(_, h)| !h.gone) {
            if on_record.contains(attempt) {
                continue;
            }
            held.script = Script::Over;
            held.gone = true;
        }
    }
}
