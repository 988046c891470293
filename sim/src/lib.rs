//! The trace simulator: replays a workload through the real engine and the real scheduler in virtual time, and says how
//! users and machine fared.
//!
//! Owns reading and making traces, the loop over virtual time, and the figures. Decides nothing about jobs: every start
//! comes from `sluice_sched` over what `sluice_engine` shows it, and goes back to the engine as the controller would send
//! it, where it is checked again. Promises equal results for equal input. See docs/simulator.md.

pub mod arguments;
pub mod cluster;
pub mod generate;
pub mod metrics;
pub mod policy;
pub mod random;
pub mod replay;
pub mod report;
pub mod run;
pub mod trace;
pub mod whatif;
