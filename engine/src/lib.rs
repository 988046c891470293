//! The cluster's state machine. `decide` turns a command into events and a reply or a typed refusal; `fold` applies
//! events; effects are data for the daemon to perform after the events are durable. Pure: no clock, no file, no
//! network, no randomness; ordered maps only. See ARCHITECTURE.md.

pub mod command;
pub mod effect;
pub mod event;
pub mod job;
pub mod node;
pub mod reject;
pub mod state;

pub use command::Command;
pub use effect::Effect;
pub use event::Event;
pub use job::{Job, PastRun, Phase, Run};
pub use reject::Reject;
pub use state::State;
