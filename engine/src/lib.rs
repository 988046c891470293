//! The cluster's state machine. `decide` turns a command into events and a reply or a typed refusal; `fold` applies
//! events; effects are data for the daemon to perform after the events are durable. Pure: no clock, no file, no
//! network, no randomness; ordered maps only. See ARCHITECTURE.md.

pub mod accounting;
pub mod audit;
pub mod command;
pub mod decide;
mod dependency;
pub mod effect;
pub mod event;
mod fold;
pub mod habits;
mod hardware;
mod index;
pub mod job;
pub mod node;
pub mod query;
pub mod reject;
pub mod state;
mod submitted;
pub mod usage;

pub use audit::audit;
pub use command::Command;
pub use decide::{Decision, advance, decide};
pub use effect::Effect;
pub use event::Event;
pub use fold::fold;
pub use hardware::Hardware;
pub use index::{ArrayEntry, Indexes, NameClass, SchedKey};
pub use job::{Job, PastRun, Phase, Run};
pub use reject::Reject;
pub use state::State;
pub use submitted::SubmitKey;

#[cfg(test)]
mod tests;
