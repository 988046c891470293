//! Scenarios: a cluster, what happens to it, what must follow.

mod arrays;
mod control;
mod dependencies;
mod ends;
mod lifecycle;
mod nodes;
mod submission;
mod time;
mod updates;
mod world;
