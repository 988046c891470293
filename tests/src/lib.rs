//! What tests of several crates share.

pub mod cluster;
pub mod sim;
