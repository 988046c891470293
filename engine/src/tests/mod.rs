//! Scenarios: a cluster, what happens to it, what must follow.

mod accounting;
mod admission;
mod arrays;
mod conservation;
mod control;
mod dependencies;
mod ends;
mod fairshare;
mod lifecycle;
mod nodes;
mod order;
mod placement;
mod preemption;
mod requeue;
mod submission;
mod time;
mod updates;
mod why;
mod world;
