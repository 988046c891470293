//! The supervisor with real processes: started on a spool folder, watched through its socket and its last word.

#[path = "supervisor/bench.rs"]
mod bench;
#[path = "supervisor/clients.rs"]
mod clients;
#[path = "supervisor/ends.rs"]
mod ends;
#[path = "supervisor/launch.rs"]
mod launch;
