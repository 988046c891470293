//! The value of each field of a line: one partition, some of its nodes.
//!
//! Sources: sinfo(1); texts for what is absent as Slurm prints them.

use super::fields::Field;
use super::group::Group;
use crate::view::clock::Clock;
use crate::view::node::{self, Bucket};
use crate::view::{partition, tres};
use sluice_model::hostlist;
use sluice_proto::v1;

pub struct Context<'a> {
    pub clock: &'a Clock,
}

impl Context<'_> {
    pub fn text(&self, field: Field, group: &Group<'_>) -> String {
        let part = group.partition;
        match field {
            Field::Available => partition::available(part).to_owned(),
            Field::AllocNodes => "all".to_owned(),
            Field::Cluster => "N/A".to_owned(),
            Field::DefaultTime => partition::time(part.default_time.as_ref()),
            Field::Groups => partition::groups(part),
            Field::MaxCpusPerNode => part.max_cpus_per_node.map_or_else(|| "UNLIMITED".to_owned(), |n| n.to_string()),
            Field::OverSubscribe => partition::oversubscribe(part).to_owned(),
            Field::Partition => partition::marked_name(part),
            Field::PartitionName => part.name.clone(),
            Field::PreemptMode => partition::preempt_mode(part).to_owned(),
            Field::PriorityJobFactor => part.priority_job_factor.to_string(),
            Field::PriorityTier => part.priority_tier.to_string(),
            Field::Root => if part.root_only { "yes" } else { "no" }.to_owned(),
            Field::Size => partition::size(part),
            Field::Time => partition::time(part.max_time.as_ref()),
            Field::Nodes => group.nodes.len().to_string(),
            Field::NodeList => {
                let names: Vec<&str> = group.nodes.iter().map(|n| n.name.as_str()).collect();
                hostlist::fold(&names)
            }
            Field::NodeAi => {
                let (allocated, idle, _) = buckets(group);
                format!("{allocated}/{idle}")
            }
            Field::NodeAiot => {
                let (allocated, idle, other) = buckets(group);
                format!("{allocated}/{idle}/{other}/{}", allocated + idle + other)
            }
            Field::CpusState => {
                let (a, i, o) = group
                    .nodes
                    .iter()
                    .map(|n| node::cpus(n))
                    .fold((0, 0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1, sum.2 + n.2));
                format!("{a}/{i}/{o}/{}", a + i + o)
            }
            _ => self.node_text(field, group),
        }
    }

    fn node_text(&self, field: Field, group: &Group<'_>) -> String {
        let Some(first) = group.nodes.first() else {
            let state = matches!(field, Field::StateShort | Field::StateLong | Field::StateComplete);
            return if state { "n/a".to_owned() } else { String::new() };
        };
        let null = || "(null)".to_owned();
        match field {
            Field::StateShort => format!("{}{}", node::word(first).short, node::silent_mark(first)),
            Field::StateLong => format!("{}{}", node::word(first).long, node::silent_mark(first)),
            Field::StateComplete => node::flags(first).join("+").to_ascii_lowercase(),
            Field::Features | Field::ActiveFeatures => node::features(first).unwrap_or_else(null),
            Field::Gres => some_or(tres::gres_specs(&first.gres), "(null)"),
            Field::GresUsed => node::gres_used(first).unwrap_or_else(|| "gpu:0".to_owned()),
            Field::Reason => node::reason(first).unwrap_or("none").to_owned(),
            Field::User => node::reason_user(first).unwrap_or_else(|| "Unknown".to_owned()),
            Field::UserLong => match node::reason_user(first) {
                Some(user) => format!("{user}({})", first.reason_uid.unwrap_or(0)),
                None => "Unknown".to_owned(),
            },
            Field::TimeStamp => {
                self.clock.time_or(first.reason_time.filter(|_| node::reason(first).is_some()), "Unknown")
            }
            Field::Reservation => String::new(),
            Field::Comment => first.comment.clone().unwrap_or_else(null),
            Field::Extra => null(),
            Field::HostNames => node::hostname(first).to_owned(),
            Field::NodeAddr => node::address(first).0.to_owned(),
            Field::Port => node::address(first).1.to_owned(),
            Field::Version => some_or(first.report.as_ref().map(|r| r.version.clone()).unwrap_or_default(), "N/A"),
            Field::AllocMem => first.alloc_memory_mb.to_string(),
            Field::Cpus => least(group, |n| n.cpus.into()),
            Field::Disk => least(group, |n| n.tmp_disk_mb),
            Field::Memory => least(group, |n| n.memory_mb),
            Field::Weight => least(group, |n| n.weight.into()),
            Field::Sockets => least(group, |n| n.sockets.into()),
            Field::Cores => least(group, |n| n.cores_per_socket.into()),
            Field::Threads => least(group, |n| n.threads_per_core.into()),
            Field::SocketCoreThread => format!(
                "{}:{}:{}",
                least(group, |n| n.sockets.into()),
                least(group, |n| n.cores_per_socket.into()),
                least(group, |n| n.threads_per_core.into())
            ),
            Field::FreeMem => span(group, |n| n.free_memory_mb, |mb| mb.to_string()),
            Field::CpuLoad => span(
                group,
                |n| n.cpu_load_hundredths.map(u64::from),
                |load| format!("{}.{:02}", load / 100, load % 100),
            ),
            // The rest are fields of the partition or sums.
            _ => String::new(),
        }
    }
}

fn some_or(text: String, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text }
}

/// Nodes allocated, idle, other.
pub fn buckets(group: &Group<'_>) -> (u64, u64, u64) {
    let count = |wanted| group.nodes.iter().filter(|n| node::bucket(n) == wanted).count() as u64;
    (count(Bucket::Allocated), count(Bucket::Idle), count(Bucket::Other))
}

pub fn min_max(group: &Group<'_>, value: impl Fn(&v1::NodeRecord) -> u64) -> (u64, u64) {
    let values = || group.nodes.iter().map(|n| value(n));
    (values().min().unwrap_or(0), values().max().unwrap_or(0))
}

/// `4`, or `4+` when some node has more.
fn least(group: &Group<'_>, value: impl Fn(&v1::NodeRecord) -> u64) -> String {
    let (min, max) = min_max(group, value);
    format!("{min}{}", if max > min { "+" } else { "" })
}

/// `1.67`, `0.33-0.67`, `N/A`
fn span(group: &Group<'_>, value: impl Fn(&v1::NodeRecord) -> Option<u64>, print: impl Fn(u64) -> String) -> String {
    let values = || group.nodes.iter().filter_map(|n| value(n));
    match (values().min(), values().max()) {
        (Some(min), Some(max)) if min == max => print(min),
        (Some(min), Some(max)) => format!("{}-{}", print(min), print(max)),
        _ => "N/A".to_owned(),
    }
}
