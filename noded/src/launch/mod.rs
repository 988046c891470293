//! From the controller's and srun's orders to what a supervisor is told to do: environments, files, tasks.
//!
//! Everything here is a function of its arguments: it reads no clock, starts nothing and writes nothing.

pub mod batch;
pub mod env;
pub mod step;
