//! What a step used, as the Ave*, Max*, Min* and TRESUsage* fields show it.
//!
//! A record holds sums over the tasks of a step, and the largest memory of any one of them. What follows from these is
//! shown; the rest (the lightest of several tasks, say) stays empty rather than invented. A step that was over before
//! anything could be measured has no memory figure, and then Slurm shows no other either.
//!
//! Source: sacct(1); recorded outputs of Slurm 26.05.

use super::fields::{Figure, Quantity};
use super::units::Units;
use sluice_proto::v1;

/// What a step's record knows of one quantity.
struct Known {
    total: Option<u64>,
    maximum: Option<u64>,
}

fn measured(step: &v1::StepRecord) -> Option<&v1::Usage> {
    step.usage.as_ref().filter(|u| u.max_rss_bytes > 0)
}

fn single(step: &v1::StepRecord) -> bool {
    step.tasks <= 1
}

fn known(usage: &v1::Usage, quantity: Quantity, single: bool) -> Known {
    let summed = |total: u64| Known { total: Some(total), maximum: single.then_some(total) };
    let largest = |maximum: u64| Known { total: single.then_some(maximum), maximum: Some(maximum) };
    match quantity {
        Quantity::Cpu => summed(usage.user_cpu_us.saturating_add(usage.system_cpu_us)),
        Quantity::DiskRead => summed(usage.read_bytes),
        Quantity::DiskWrite => summed(usage.written_bytes),
        Quantity::Pages => summed(usage.major_faults),
        Quantity::Rss => largest(usage.max_rss_bytes),
        // No program runs in no memory: it was over before it could be looked at.
        Quantity::VmSize if usage.max_vmsize_bytes == 0 => Known { total: None, maximum: None },
        Quantity::VmSize => largest(usage.max_vmsize_bytes),
    }
}

/// Amount of a figure; None for what the record cannot tell.
fn amount(step: &v1::StepRecord, quantity: Quantity, figure: Figure) -> Option<u64> {
    let known = known(measured(step)?, quantity, single(step));
    match figure {
        Figure::Average => Some(known.total? / u64::from(step.tasks.max(1))),
        Figure::Total => known.total,
        Figure::Maximum => known.maximum,
        Figure::Minimum => known.maximum.filter(|_| single(step)),
        Figure::Node | Figure::Task => None,
    }
}

/// Where the extreme of what is known occurred.
fn place(step: &v1::StepRecord, figure: Figure) -> Option<String> {
    measured(step)?;
    match (figure, step.nodes.as_slice()) {
        (Figure::Node, [node]) => Some(node.clone()),
        (Figure::Task, _) if single(step) => Some("0".to_owned()),
        _ => None,
    }
}

/// One of the Ave*, Max* and Min* fields.
pub fn field(step: &v1::StepRecord, quantity: Quantity, figure: Figure, units: Units) -> String {
    if matches!(figure, Figure::Node | Figure::Task) {
        let known = amount(step, quantity, Figure::Maximum);
        return known.and_then(|_| place(step, figure)).unwrap_or_default();
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

/// One of the TRESUsage* fields.
pub fn tres(step: &v1::StepRecord, way: Way, figure: Figure, units: Units) -> String {
    let parts: Vec<String> = match figure {
        Figure::Node | Figure::Task => {
            let Some(place) = place(step, figure) else { return String::new() };
            amounts(step, way, Figure::Maximum)
                .into_iter()
                .filter(|(name, _)| figure == Figure::Node || *name != "energy")
                .map(|(name, _)| format!("{name}={place}"))
                .collect()
        }
        _ => amounts(step, way, figure)
            .into_iter()
            .map(|(name, amount)| match name {
                "cpu" => format!("{name}={}", cpu(amount)),
                "mem" | "vmem" => format!("{name}={}", units.bytes(amount)),
                _ => format!("{name}={amount}"),
            })
            .collect(),
    };
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
        assert_eq!(used(&step, Quantity::Rss, Figure::Node), "node0");
        assert_eq!(used(&step, Quantity::Rss, Figure::Task), "0");
        assert_eq!(used(&step, Quantity::Cpu, Figure::Minimum), "00:00:04");
        let total = "cpu=00:00:04,energy=0,fs/disk=6977,mem=1644K,pages=4,vmem=2920K";
        assert_eq!(listed(&step, Way::In, Figure::Total), total);
        assert_eq!(listed(&step, Way::In, Figure::Task), "cpu=0,fs/disk=0,mem=0,pages=0,vmem=0");
        assert_eq!(listed(&step, Way::Out, Figure::Node), "energy=node0,fs/disk=node0");
    }

    #[test]
    fn of_several_tasks_only_what_is_known_is_shown() {
        let step = step(2);
        assert_eq!(used(&step, Quantity::Rss, Figure::Maximum), "1644K");
        assert_eq!(used(&step, Quantity::Rss, Figure::Average), "");
        assert_eq!(used(&step, Quantity::Cpu, Figure::Average), "00:00:02");
        assert_eq!(used(&step, Quantity::Cpu, Figure::Maximum), "");
        assert_eq!(used(&step, Quantity::Rss, Figure::Task), "");
        assert_eq!(used(&step, Quantity::Cpu, Figure::Node), "");
        assert_eq!(listed(&step, Way::In, Figure::Maximum), "energy=0,mem=1644K,vmem=2920K");
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
