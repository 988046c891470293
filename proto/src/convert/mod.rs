//! The only conversions between wire messages and model types.
//!
//! Owns `From<&model type>` for each shared message and the strict way back, `TryFrom<message>`. Promises that what was
//! encoded decodes to an equal value, and that a decoded value keeps the invariants that its model type documents: a
//! message from another host can't bring in a node name with a slash, a job with id 0 or a list of a billion items.
//! It must not interpret: whether a request makes sense on this cluster is for the engine to say.

mod accounting;
mod accounting_request;
mod alloc;
mod dependency;
mod error;
mod index_set;
mod job;
pub mod limits;
mod node;
mod request;
mod scalar;
mod step;
#[cfg(test)]
mod tests;

pub use accounting::assoc_id;
pub use accounting_request::accounting_request_to_wire;
pub use error::ConvertError;
pub use request::{exclusive_from_wire, exclusive_to_wire};
pub use scalar::{job_id, job_state, node_name, node_names, os_bytes, submit_key, text, time, to_bytes};
