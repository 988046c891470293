//! The vocabulary of Sluice: what a job, a node, a partition, a step and their resources are.
//!
//! Owns the types that every other crate speaks, and the one parser and one printer of each textual form (time,
//! memory, host lists, index sets, TRES, dependencies, file-name patterns, configuration). Pure: knows no clock, no
//! file, no network, no randomness, and uses ordered maps only.

pub mod accounting;
pub mod alloc;
pub mod array;
pub mod config;
pub mod constraint;
pub mod dependency;
pub mod directive;
pub mod env_block;
pub mod error;
pub mod filename;
pub mod gres;
pub mod hostlist;
pub mod ids;
pub mod index_set;
pub mod job;
pub mod job_target;
pub mod layout;
pub mod licenses;
pub mod mail;
pub mod memory;
pub mod node;
pub mod node_count;
pub mod pace;
pub mod partition;
pub mod reason;
pub mod request;
pub mod shared;
pub mod sharing;
pub mod signal;
pub mod state;
pub mod step;
pub mod text;
pub mod time;
pub mod tres;
pub mod tres_weights;

#[cfg(test)]
mod properties;

pub use alloc::{Allocation, GresAlloc, NodeAlloc};
pub use error::ParseError;
pub use ids::{BlobId, JobId, NodeName, StepId, StepKey, SubmissionKey};
pub use index_set::IndexSet;
pub use job::JobSpec;
pub use node::NodeSpec;
pub use partition::PartitionSpec;
pub use reason::Reason;
pub use request::ResourceRequest;
pub use shared::Shared;
pub use state::JobState;
pub use text::OsBytes;
pub use time::{Time, TimeLimit};
