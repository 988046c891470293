//! The controller daemon: owns the cluster's state, keeps it on disk, serves commands and nodes. Behaviour lives in the
//! engine and the scheduler; this crate carries it out. See ARCHITECTURE.md for the loop.

pub mod config_file;
pub mod context;
pub mod keys;
pub mod logging;
pub mod nodelink;
pub mod notify;
pub mod owner;
mod parallel;
pub mod perform;
pub mod pool;
pub mod records;
pub mod rpc;
pub mod run;
pub mod scheduling;
pub mod store;
pub mod throttle;
pub mod view;
