//! What a step used, as the Ave*, Max*, Min* and TRESUsage* fields show it.
//!
//! A record holds sums over the tasks of a step, the largest memory of any one of them, and for several tasks how they
//! differ (from node daemons that tell). What follows from these is shown; the rest stays empty rather than invented. A
//! step that was over before anything could be measured has no memory figure, and then Slurm shows no other either.
//!
//! Source: sacct(1); recorded outputs of Slurm 26.05.

use super::fields::{Figure, Quantity};
use super::units::Units;
use sluice_model::step::Measure;
use sluice_proto::v1;

/// The most or the least of something, and where.
struct Extreme {
    amount: u64,
    node: Option<String>,
    task: Option<u32>,
}

/// What a step's record knows of one quantity.
#[derive(Default)]
struct Known {
    total: Option<u64>,
    /// Of which the total is.
    tasks: u32,
    largest: Option<Extreme>,
    smallest: Option<Extreme>,
}

fn measured(step: &v1::StepRecord) -> Option<&v1::Usage> {
    step.usage.as_ref().filter(|u| u.max_rss_bytes > 0)
}

fn measure(quantity: Quantity) -> Measure {
    match quantity {
        Quantity::Cpu => Measure::Cpu,
        Quantity::DiskRead => Measure::Read,
        Quantity::DiskWrite => Measure::Written,
        Quantity::Pages => Measure::MajorFaults,
        Quantity::Rss => Measure::Rss,
        Quantity::VmSize => Measure::VmSize,
    }
}

fn known(step: &v1::StepRecord, quantity: Quantity) -> Known {
    let Some(usage) = measured(step) else { return Known::default() };
    let measure = measure(quantity);
    if let Some(spread) = step.spread.iter().find(|s| s.measure == measure.number()) {
        let extreme = |e: Option<v1::UsageExtreme>| {
            let e = e.unwrap_or_default();
            Some(Extreme { amount: e.amount, node: step.nodes.get(e.node as usize).cloned(), task: Some(e.task) })
        };
        let (largest, smallest) = (extreme(spread.largest), extreme(spread.smallest));
        return Known { total: Some(spread.total), tasks: spread.tasks, largest, smallest };
    }
    let usage = sluice_model::step::Usage::try_from(*usage).unwrap_or_default();
    let Some(amount) = measure.of(&usage) else { return Known::default() };
    let single = step.tasks <= 1;
    let summed = !matches!(measure, Measure::Rss | Measure::VmSize);
    let node = match step.nodes.as_slice() {
        [node] => Some(node.clone()),
        _ => None,
    };
    let one = || Some(Extreme { amount, node: node.clone(), task: single.then_some(0) });
    Known {
        total: (single || summed).then_some(amount),
        tasks: step.tasks,
        largest: one().filter(|_| single || !summed),
        smallest: one().filter(|_| single),
    }
}

/// Amount of a figure; None for what the record cannot tell.
fn amount(step: &v1::StepRecord, quantity: Quantity, figure: Figure) -> Option<u64> {
    let known = known(step, quantity);
    match figure {
        Figure::Average => Some(known.total? / u64::from(known.tasks.max(1))),
        Figure::Total => known.total,
        Figure::Maximum => known.largest.map(|e| e.amount),
        Figure::Minimum => known.smallest.map(|e| e.amount),
        Figure::MaxNode | Figure::MaxTask | Figure::MinNode | Figure::MinTask => None,
    }
}

/// Where an extreme occurred: the node's name or the task's number.
fn place(step: &v1::StepRecord, quantity: Quantity, figure: Figure) -> Option<String> {
    let known = known(step, quantity);
    match figure {
        Figure::MaxNode => known.largest?.node,
        Figure::MinNode => known.smallest?.node,
        Figure::MaxTask => known.largest?.task.map(|t| t.to_string()),
        Figure::MinTask => known.smallest?.task.map(|t| t.to_string()),
        _ => None,
    }
}

/// One of the Ave*, Max* and Min* fields.
pub fn field(step: &v1::StepRecord, quantity: Quantity, figure: Figure, units: Units) -> String {
    if matches!(figure, Figure::MaxNode | Figure::MaxTask | Figure::MinNode | Figure::MinTask) {
        return place(step, quantity, figure).unwrap_or_default();
    }
    amount(step, quantity, figure).map_or_else(String::new, |n| match quantity {
        Quantity::Cpu => cpu(n),
        Quantity::DiskRead | Quantity::DiskWrite => units.disk(n),
        Quantity::Pages => n.to_string(),
        Quantity::Rss | Quantity::VmSize => units.bytes(n),
    })
}

fn cpu(microseconds: u64) -> String {
    crate::view::clock::elapsed_long(i64::try_from(microseconds / 1000).unwrap_or(i64::MAX))
}

/// Reads (`TRESUsageIn*`) or writes (`TRESUsageOut*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    In,
    Out,
}

/// `cpu`, `fs/disk`, `mem`, `pages`, `vmem` with their amounts (microseconds, bytes), in Slurm's order by name.
/// Energy, which nothing here measures, is listed as 0 where Slurm lists it.
pub fn amounts(step: &v1::StepRecord, way: Way, figure: Figure) -> Vec<(&'static str, u64)> {
    let energy = match figure {
        Figure::Average | Figure::Total => step.end.is_some() || measured(step).is_some(),
        _ => measured(step).is_some(),
    };
    let get = |quantity| amount(step, quantity, figure);
    let parts = match way {
        Way::In => vec![
            ("cpu", get(Quantity::Cpu)),
            ("energy", energy.then_some(0)),
            ("fs/disk", get(Quantity::DiskRead)),
            ("mem", get(Quantity::Rss)),
            ("pages", get(Quantity::Pages)),
            ("vmem", get(Quantity::VmSize)),
        ],
        Way::Out => vec![("energy", energy.then_some(0)), ("fs/disk", get(Quantity::DiskWrite))],
    };
    parts.into_iter().filter_map(|(name, amount)| Some((name, amount?))).collect()
}

/// What `amounts` calls by these names.
const NAMED: [(&str, Way, Quantity); 6] = [
    ("cpu", Way::In, Quantity::Cpu),
    ("fs/disk", Way::In, Quantity::DiskRead),
    ("mem", Way::In, Quantity::Rss),
    ("pages", Way::In, Quantity::Pages),
    ("vmem", Way::In, Quantity::VmSize),
    ("fs/disk", Way::Out, Quantity::DiskWrite),
];

/// Where the extreme of what `amounts` names occurred. Energy, of which nothing is known, has the step's only node.
pub fn place_of(step: &v1::StepRecord, way: Way, name: &str, figure: Figure) -> Option<String> {
    match NAMED.iter().find(|(n, w, _)| *n == name && *w == way) {
        Some((_, _, quantity)) => place(step, *quantity, figure),
        None if matches!(figure, Figure::MaxTask | Figure::MinTask) => None,
        None => Some(step.nodes.first().filter(|_| step.nodes.len() == 1)?.clone()),
    }
}

/// One of the TRESUsage* fields.
pub fn tres(step: &v1::StepRecord, way: Way, figure: Figure, units: Units) -> String {
    let side = match figure {
        Figure::MaxNode | Figure::MaxTask => Figure::Maximum,
        Figure::MinNode | Figure::MinTask => Figure::Minimum,
        other => other,
    };
    let one = |(name, amount): (&str, u64)| match name {
        _ if side != figure => Some(format!("{name}={}", place_of(step, way, name, figure)?)),
        "cpu" => Some(format!("{name}={}", cpu(amount))),
        "mem" | "vmem" => Some(format!("{name}={}", units.bytes(amount))),
        _ => Some(format!("{name}={amount}")),
    };
    let parts: Vec<String> = amounts(step, way, side).into_iter().filter_map(one).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    fn step(tasks: u32) -> v1::StepRecord {
        let mut step = fixture::job(1).steps[1].clone();
        step.tasks = tasks;
        step.usage = Some(v1::Usage {
            user_cpu_us: 3_000_000,
            system_cpu_us: 1_000_000,
            max_rss_bytes: 1644 << 10,
            max_vmsize_bytes: 2920 << 10,
            major_faults: 4,
            read_bytes: 6977,
            written_bytes: 2,
        });
        step
    }
    fn used(step: &v1::StepRecord, quantity: Quantity, figure: Figure) -> String {
        field(step, quantity, figure, Units::Auto)
    }
    fn listed(step: &v1::StepRecord, way: Way, figure: Figure) -> String {
        tres(step, way, figure, Units::Auto)
    }

    #[test]
    fn a_single_task_is_its_own_average_and_extreme() {
        let step = step(1);
        assert_eq!(used(&step, Quantity::Rss, Figure::Average), "1644K");
        assert_eq!(used(&step, Quantity::Rss, Figure::MaxNode), "node0");
        assert_eq!(used(&step, Quantity::Rss, Figure::MaxTask), "0");
        assert_eq!(used(&step, Quantity::Cpu, Figure::Minimum), "00:00:04");
        let total = "cpu=00:00:04,energy=0,fs/disk=6977,mem=1644K,pages=4,vmem=2920K";
        assert_eq!(listed(&step, Way::In, Figure::Total), total);
        assert_eq!(listed(&step, Way::In, Figure::MaxTask), "cpu=0,fs/disk=0,mem=0,pages=0,vmem=0");
        assert_eq!(listed(&step, Way::Out, Figure::MaxNode), "energy=node0,fs/disk=node0");
    }

    #[test]
    fn of_several_tasks_only_what_is_known_is_shown() {
        let step = step(2);
        assert_eq!(used(&step, Quantity::Rss, Figure::Maximum), "1644K");
        assert_eq!(used(&step, Quantity::Rss, Figure::Average), "");
        assert_eq!(used(&step, Quantity::Cpu, Figure::Average), "00:00:02");
        assert_eq!(used(&step, Quantity::Cpu, Figure::Maximum), "");
        assert_eq!(used(&step, Quantity::Rss, Figure::MaxTask), "");
        assert_eq!(used(&step, Quantity::Cpu, Figure::MinNode), "");
        assert_eq!(listed(&step, Way::In, Figure::Maximum), "energy=0,mem=1644K,vmem=2920K");
    }

    #[test]
    fn of_several_tasks_that_were_compared_all_is_shown() {
        use sluice_model::step::{Spread, Usage};
        let mut step = step(2);
        step.nodes = vec!["node0".into(), "node1".into()];
        let usage = |cpu: u64, rss: u64| Usage { user_cpu_us: cpu, max_rss_bytes: rss << 10, ..Usage::default() };
        let mut spread = Spread::of_task(0, &usage(3_000_000, 1000));
        Spread::join(&mut spread, Spread::of_task(1, &usage(1_000_000, 3000)).into_iter().map(|s| s.on_node(1)));
        step.spread = spread.iter().map(Into::into).collect();
        assert_eq!(used(&step, Quantity::Cpu, Figure::Minimum), "00:00:01");
        assert_eq!(used(&step, Quantity::Cpu, Figure::MinNode), "node1");
        assert_eq!(used(&step, Quantity::Cpu, Figure::MinTask), "1");
        assert_eq!(used(&step, Quantity::Rss, Figure::Average), "2000K");
        assert_eq!(used(&step, Quantity::Rss, Figure::MaxNode), "node1");
        assert_eq!(used(&step, Quantity::Rss, Figure::MaxTask), "1");
        assert_eq!(listed(&step, Way::In, Figure::MaxTask), "cpu=0,fs/disk=0,mem=1,pages=0");
        assert_eq!(listed(&step, Way::In, Figure::MinNode), "cpu=node1,fs/disk=node0,mem=node0,pages=node0");
    }

    #[test]
    fn a_step_that_was_not_measured_shows_energy_alone_once_it_is_over() {
        let mut step = step(1);
        step.usage = None;
        assert_eq!(used(&step, Quantity::Cpu, Figure::Average), "");
        assert_eq!(listed(&step, Way::In, Figure::Average), "energy=0");
        assert_eq!(listed(&step, Way::Out, Figure::Maximum), "");
        step.end = None;
        assert_eq!(listed(&step, Way::In, Figure::Average), "");
    }
}
