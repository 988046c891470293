//! Which nodes share a line, and the order of lines.
//!
//! A line holds the nodes that agree in every column that parts them (`Grouping::Apart`, with `--exact` also
//! `Grouping::Range`); with `--Node` it holds one node of one partition. Partitions left without any node still show a
//! line of zero nodes, as Slurm does.

use super::fields::{Field, Grouping, Info};
use super::settings::Settings;
use super::values;
use crate::view::node::{self, Base};
use sluice_proto::v1;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// One line: nodes of a partition. Without a column of the partition, `partition` is the first one seen.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    pub partition: &'a v1::PartitionRecord,
    /// Place of the partition in the configuration.
    pub place: usize,
    pub nodes: Vec<&'a v1::NodeRecord>,
}

/// Parts the nodes of all wanted partitions into lines.
pub fn group<'a>(
    settings: &Settings,
    columns: &[&'static Info],
    context: &values::Context<'_>,
    partitions: &'a [v1::PartitionRecord],
    nodes: &'a [v1::NodeRecord],
) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    // A node of several partitions counts once where partitions are not told apart.
    let mut seen: BTreeSet<(usize, &str)> = BTreeSet::new();
    for (place, partition) in partitions.iter().enumerate().filter(|(_, p)| settings.shows_partition(p)) {
        let names: BTreeSet<&str> = partition.nodes.iter().map(String::as_str).collect();
        let mut empty = true;
        for member in nodes.iter().filter(|n| names.contains(n.name.as_str()) && settings.shows_node(n)) {
            empty = false;
            let alone = Group { partition, place, nodes: vec![member] };
            let key = key(settings, columns, context, &alone);
            match places.get(&key) {
                Some(&at) => {
                    if seen.insert((at, &member.name)) {
                        groups[at].nodes.push(member);
                    }
                }
                None => {
                    places.insert(key, groups.len());
                    seen.insert((groups.len(), &member.name));
                    groups.push(alone);
                }
            }
        }
        if empty && !settings.per_node && !settings.list_reasons {
            groups.push(Group { partition, place, nodes: Vec::new() });
        }
    }
    groups
}

fn key(
    settings: &Settings,
    columns: &[&'static Info],
    context: &values::Context<'_>,
    alone: &Group<'_>,
) -> Vec<String> {
    let mut key = Vec::new();
    if settings.per_node {
        key.push(alone.nodes.first().map(|n| n.name.clone()).unwrap_or_default());
        key.push(alone.partition.name.clone());
    }
    for info in columns {
        let parts = match info.grouping {
            Grouping::Apart => true,
            Grouping::Range => settings.exact,
            Grouping::Sum => false,
        };
        if parts {
            key.push(context.text(info.field, alone));
        }
    }
    key
}

/// One key of a sort list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    field: Field,
    descending: bool,
    /// `#P`: partitions in the order of the configuration.
    configured: bool,
}

/// `#P,-t`; an unknown letter is the error.
pub fn parse_sort(text: &str) -> Result<Vec<Key>, char> {
    let mut keys = Vec::new();
    let (mut descending, mut configured) = (false, false);
    for letter in text.chars() {
        match letter {
            ',' | '+' | ' ' | '%' => {}
            '-' => descending = true,
            '#' => configured = true,
            letter => {
                let field = super::fields::by_letter(letter).ok_or(letter)?.field;
                keys.push(Key { field, descending, configured });
                (descending, configured) = (false, false);
            }
        }
    }
    Ok(keys)
}

pub fn sort(groups: &mut [Group<'_>], keys: &[Key], context: &values::Context<'_>) {
    groups.sort_by(|a, b| {
        for key in keys {
            let order = compare(*key, a, b, context);
            let order = if key.descending { order.reverse() } else { order };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    });
}

fn compare(key: Key, a: &Group<'_>, b: &Group<'_>, context: &values::Context<'_>) -> Ordering {
    let first = |g: &Group<'_>| g.nodes.first().map(|n| n.name.clone()).unwrap_or_default();
    let least = |g: &Group<'_>, f: fn(&v1::NodeRecord) -> u64| g.nodes.iter().map(|n| f(n)).min().unwrap_or(0);
    let by = |f: fn(&v1::NodeRecord) -> u64| least(a, f).cmp(&least(b, f));
    match key.field {
        Field::Partition | Field::PartitionName if key.configured => a.place.cmp(&b.place),
        Field::Partition | Field::PartitionName => a.partition.name.cmp(&b.partition.name),
        Field::NodeList | Field::HostNames | Field::NodeAddr => {
            node::natural_order(&first(a), &first(b)).then(a.place.cmp(&b.place))
        }
        Field::StateShort | Field::StateLong => rank(a).cmp(&rank(b)),
        Field::Nodes => a.nodes.len().cmp(&b.nodes.len()),
        Field::Cpus => by(|n| n.cpus.into()),
        Field::Memory => by(|n| n.memory_mb),
        Field::Disk => by(|n| n.tmp_disk_mb),
        Field::Weight => by(|n| n.weight.into()),
        Field::Sockets => by(|n| n.sockets.into()),
        Field::Cores => by(|n| n.cores_per_socket.into()),
        Field::Threads => by(|n| n.threads_per_core.into()),
        Field::FreeMem => by(|n| n.free_memory_mb.unwrap_or(0)),
        Field::CpuLoad => by(|n| n.cpu_load_hundredths.unwrap_or(0).into()),
        Field::TimeStamp => by(|n| u64::try_from(n.reason_time.unwrap_or(0)).unwrap_or(0)),
        Field::PriorityTier => a.partition.priority_tier.cmp(&b.partition.priority_tier),
        Field::PriorityJobFactor => a.partition.priority_job_factor.cmp(&b.partition.priority_job_factor),
        field => context.text(field, a).cmp(&context.text(field, b)),
    }
}

/// Larger for what needs more attention: flags before use.
fn rank(group: &Group<'_>) -> (bool, bool, bool, bool, u8) {
    let Some(node) = group.nodes.first() else { return (false, false, false, false, 0) };
    let base = match node::base(node) {
        Base::Unknown => 0,
        Base::Down => 1,
        Base::Idle => 2,
        Base::Allocated => 3,
        Base::Mixed => 4,
    };
    (node.not_responding, node.fail, node.completing, node.drain, base)
}
