//! The command line of the simulator.

use crate::generate::Recipe;
use crate::policy::Policy;
use crate::replay::Estimates;
use crate::trace::{LimitSteps, Window};
use crate::whatif::WhatIf;
use clap::Parser;
use std::path::PathBuf;

#[derive(Parser, Debug)]
#[command(
    name = "sluice-sim",
    version,
    about = "Replay a workload through Sluice's engine and scheduler in virtual time",
    after_help = after_help()
)]
pub struct Arguments {
    /// Standard Workload Format, or a table (TSV, CSV) with a header; gzip or plain
    #[arg(long, value_name = "FILE", required_unless_present = "generate", conflicts_with = "generate")]
    pub trace: Option<PathBuf>,
    /// The trace's name in titles, instead of its file's
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Make a workload up: jobs=N,seed=N,procs=N[,load=X]
    #[arg(long, value_name = "RECIPE", value_parser = Recipe::parse)]
    pub generate: Option<Recipe>,
    /// Write the workload as Standard Workload Format, as far as that can say it
    #[arg(long, value_name = "FILE")]
    pub write_trace: Option<PathBuf>,
    /// The machine, as a cluster's configuration file; without it, the trace's processors as a plain count
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// Processors of the machine, instead of the trace's header's
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=16_000_000), conflicts_with = "cluster")]
    pub procs: Option<u32>,
    /// A policy's name or file
    #[arg(long, value_name = "NAME|FILE", default_value = "default", conflicts_with = "compare")]
    pub policy: String,
    /// Several policies, side by side
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub compare: Vec<String>,
    /// Also with changes: nodes+=4, procs+=64, scheduling.queue_depth=100, partition.max_time="1-0" …
    #[arg(long, value_name = "CHANGES", value_parser = WhatIf::parse, conflicts_with = "starts")]
    pub what_if: Option<WhatIf>,
    /// What the scheduler is told of run times
    #[arg(long, value_name = "configured|limit|predicted|exact", default_value = "configured", value_parser = Estimates::parse)]
    pub estimates: Estimates,
    /// Only jobs submitted at this second or later
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(0..))]
    pub from: Option<i64>,
    /// Only jobs submitted at this second or earlier
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(0..))]
    pub to: Option<i64>,
    /// Requested times: the smallest of these that covers the run, as in 1h,4h,12h,1d
    #[arg(long, value_name = "TIMES", value_parser = LimitSteps::parse)]
    pub round_limits: Option<LimitSteps>,
    /// Columns of a table that are not to be used
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub ignore_columns: Vec<String>,
    /// Write `job<TAB>start` lines, seconds from the trace's origin, in the file's order
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub starts: Option<PathBuf>,
    /// Write plots: queue and utilisation over time, distribution of waits
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
}

impl Arguments {
    pub fn window(&self) -> Window {
        Window { from: self.from, to: self.to }
    }
    pub fn policies(&self) -> Vec<&str> {
        if self.compare.is_empty() { vec![&self.policy] } else { self.compare.iter().map(String::as_str).collect() }
    }
}

fn after_help() -> String {
    format!(
        "Policies:\n{}  FILE              sections of a cluster's configuration: [scheduling] …\n\n\
         Columns of a table: {}.\nSee docs/simulator.md for other names of columns and for the definitions.",
        Policy::list(),
        crate::trace::known_columns()
    )
}
