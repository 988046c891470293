//! The node daemon of Sluice, and the supervisor of its steps.
//!
//! `sluice-noded run` holds the link to the controller, launches jobs and steps, and keeps what it must report until
//! the controller has it. Each step on a node is held by a supervisor process of its own (`sluice-noded supervise`),
//! which the daemon may die without.

pub mod admitted;
pub mod cgroup;
pub mod frame;
pub mod hardware;
pub mod launch;
pub mod link;
pub mod logging;
pub mod notify;
pub mod owner;
pub mod part;
pub mod placing;
pub mod procs;
pub mod run;
pub mod service;
pub mod sock;
pub mod spool;
pub mod store;
pub mod supervise;
