//! The figures for people (`table`), for programs (`json`), and as plots (`svg`).

mod json;
mod svg;
mod table;

pub use json::json;
pub use svg::svg;
pub use table::table;

use crate::metrics::Metrics;
use crate::replay::Replay;

/// One policy's replay.
#[derive(Clone, Debug)]
pub struct Entry {
    pub policy: String,
    pub metrics: Metrics,
    pub replay: Replay,
}
