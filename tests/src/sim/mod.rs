//! A whole cluster in one thread and in virtual time: the real engine and the real scheduler, fake nodes with a durable
//! memory of their own, clients, and faults. Everything follows from one seed.
//!
//! What is checked, after every single command: the engine's own audit; that replaying the journal gives the live state
//! (at every crash and at the end, from the journal and from a snapshot). On the side of the nodes, which know nothing
//! of the controller's books: no core is used by two attempts at once, no script is started twice for one attempt. On
//! the side of the clients: every acknowledged submission ends, or is in the history, under its own id; what was
//! acknowledged as cancelled is recorded so.
//!
//! Faults: the controller dies at any moment and comes back with what was durable then (more than it had acknowledged,
//! perhaps); links break with messages under way; messages arrive twice and out of order; nodes fall silent for longer
//! or shorter than the time-out; nodes reboot; launches fail by the job's fault and the node's.

mod checks;
mod clients;
mod controller;
mod faults;
mod load;
mod node;
mod rng;
mod world;

pub use rng::Rng;
pub use world::{Report, run};
