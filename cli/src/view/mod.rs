//! From the wire's records to what people read: the facts and words that several commands share.
//!
//! Owns derived facts of jobs, nodes and partitions (display ids, state words, TRES strings, times) and column layouts.
//! It performs no call and prints nothing: records, the time and the time zone are arguments.

pub mod asked;
pub mod clock;
pub mod columns;
pub mod io_paths;
pub mod job;
pub mod jobs_json;
pub mod node;
pub mod nodes_json;
pub mod partition;
pub mod partitions_json;
pub mod tres;

#[cfg(test)]
pub mod fixture;
#[cfg(test)]
pub mod recorded;
