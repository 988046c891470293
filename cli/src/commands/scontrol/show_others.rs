//! `scontrol show node`, `partition`, `step`: one record for each.
//!
//! Keys and their order are Slurm 26.05's (`show-node.txt`, `show-partition.txt`, `show-step.txt`).

use super::record::{Record, yes};
use crate::view::clock::{self, Clock};
use crate::view::partition::all_or;
use crate::view::{job as facts, node as nodes, nodes_json, partition as partitions, tres};
use sluice_model::{StepId, hostlist};
use sluice_proto::v1;

pub fn node(node: &v1::NodeRecord, clock: &Clock, one_line: bool, out: &mut String) {
    let report = node.report.clone().unwrap_or_default();
    let (address, port) = nodes::address(node);
    let seconds = |secs: i64| if secs > 0 { clock.time(secs.saturating_mul(1000)) } else { "None".to_owned() };
    let features = nodes::features(node).unwrap_or_else(|| "(null)".to_owned());
    let gres = tres::gres_specs(&node.gres);
    let or_na = |n: Option<String>| n.unwrap_or_else(|| "N/A".to_owned());
    let arch = if report.arch.is_empty() { String::new() } else { format!("Arch={} ", report.arch) };
    let mut record = Record::default();
    record
        .line(format!("NodeName={} {arch}CoresPerSocket={} ", node.name, node.cores_per_socket))
        .line(format!(
            "CPUAlloc={} CPUEfctv={} CPUTot={} CPULoad={}",
            node.alloc_cpus,
            node.cpus,
            node.cpus,
            or_na(nodes::load(node))
        ))
        .line(format!("AvailableFeatures={features}"))
        .line(format!("ActiveFeatures={features}"))
        .line(format!("Gres={}", super::record::or_null(&gres)))
        .some("GresDetail", known_devices(node))
        .line(format!(
            "NodeAddr={address} NodeHostName={} Port={port}{}",
            nodes::hostname(node),
            if report.version.is_empty() { String::new() } else { format!(" Version={}", report.version) }
        ))
        .some("OS", Some(format!("{} ", report.os)).filter(|_| !report.os.is_empty()))
        .line(format!(
            "RealMemory={} AllocMem={} FreeMem={} Sockets={} Boards=1",
            node.memory_mb,
            node.alloc_memory_mb,
            or_na(node.free_memory_mb.map(|m| m.to_string())),
            node.sockets
        ))
        .line(format!(
            "State={} ThreadsPerCore={} TmpDisk={} Weight={} Owner=N/A MCS_label=N/A",
            nodes::flags(node).join("+"),
            node.threads_per_core,
            node.tmp_disk_mb,
            node.weight
        ))
        .some("Partitions", Some(format!("{} ", node.partitions.join(","))).filter(|_| !node.partitions.is_empty()))
        .line(format!("BootTime={} SlurmdStartTime={}", seconds(report.boot_time), seconds(report.daemon_start_time)))
        .line(format!(
            "LastBusyTime={} ResumeAfterTime=None SuspendTime=INFINITE",
            clock.time_or(node.last_busy, "Unknown")
        ))
        .line(format!("CfgTRES={}", nodes_json::configured(node).by_number()))
        .line(format!("AllocTRES={}", nodes_json::used(node)))
        .line("CurrentWatts=0 AveWatts=0")
        .some("Reason", reason(node, clock))
        .some("Comment", node.comment.clone().filter(|c| !c.is_empty()))
        .some("MissingIsolation", missing(&report));
    record.write(one_line, out);
}

/// Memory, near cores and links of devices, as the configuration has them; None where nothing is known.
fn known_devices(node: &v1::NodeRecord) -> Option<String> {
    let specs = node.gres.iter().filter_map(|g| sluice_model::node::GresSpec::try_from(g.clone()).ok());
    let known = specs.filter(|g| g.memory_mb > 0 || !g.cores.is_empty() || !g.links.is_empty());
    let texts: Vec<String> = known.map(|g| sluice_model::gres::format_gres_spec(&g)).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

fn reason(node: &v1::NodeRecord, clock: &Clock) -> Option<String> {
    let text = nodes::reason(node)?;
    let user = nodes::reason_user(node).unwrap_or_else(|| "Unknown".to_owned());
    Some(format!("{text} [{user}@{}]", clock.time_or(node.reason_time, "Unknown")))
}

/// What of the promised isolation the node can't apply. Words are joined, as values hold no blanks.
fn missing(report: &v1::NodeReport) -> Option<String> {
    let words: Vec<String> = report.missing_isolation.iter().map(|m| m.replace(' ', "_")).collect();
    (!words.is_empty()).then(|| words.join(","))
}

pub fn partition(part: &v1::PartitionRecord, one_line: bool, out: &mut String) {
    let or_unlimited = |n: Option<u64>| n.map_or_else(|| "UNLIMITED".to_owned(), |n| n.to_string());
    let default_memory = match (part.default_memory_per_cpu_mb, part.default_memory_per_node_mb) {
        (Some(mb), _) => format!("DefMemPerCPU={mb}"),
        (None, per_node) => format!("DefMemPerNode={}", or_unlimited(per_node)),
    };
    let mut record = Record::default();
    record
        .line(format!("PartitionName={}", part.name))
        .line(format!(
            "AllowGroups={} AllowAccounts={} AllowQos={}",
            all_or(&part.allow_groups),
            all_or(&part.allow_accounts),
            all_or(&part.allow_qos)
        ))
        .some("AllowUsers", Some(part.allow_users.join(",")).filter(|u| !u.is_empty()))
        .line(format!("AllocNodes=ALL Default={} QoS={}", yes(part.default), part.qos.as_deref().unwrap_or("N/A")))
        .line(format!(
            "DefaultTime={} DisableRootJobs=NO Exclusive={} GraceTime={} Hidden={}",
            clock::limit_long(part.default_time.as_ref(), "NONE"),
            if part.exclusive { "NODE" } else { "NO" },
            part.grace_secs,
            yes(part.hidden)
        ))
        .line(format!(
            "MaxNodes={} MaxTime={} MinNodes={} LLN={} MaxCPUsPerNode={} MaxCPUsPerSocket=UNLIMITED",
            or_unlimited(part.max_nodes.map(u64::from)),
            clock::limit_long(part.max_time.as_ref(), "UNLIMITED"),
            part.min_nodes,
            yes(part.least_loaded),
            or_unlimited(part.max_cpus_per_node.map(u64::from))
        ))
        .line(format!("Nodes={}", hostlist::fold(&part.nodes)))
        .line(format!(
            "PriorityJobFactor={} PriorityTier={} RootOnly={} ReqResv=NO OverSubscribe={}",
            part.priority_job_factor,
            part.priority_tier,
            yes(part.root_only),
            partitions::oversubscribe(part)
        ))
        .line(format!("OverTimeLimit=NONE PreemptMode={}", partitions::preempt_mode(part)))
        .line(format!(
            "State={} TotalCPUs={} TotalNodes={} SelectTypeParameters=NONE",
            part.state,
            part.total_cpus,
            part.nodes.len()
        ))
        .line("JobDefaults=(null)")
        .line(format!("{default_memory} MaxMemPerNode={}", or_unlimited(part.max_memory_per_node_mb)))
        .line(format!("TRES={}", partitions::tres(part).by_number()));
    if !part.billing_weights.is_empty() {
        record.line(format!("TRESBillingWeights={}", part.billing_weights));
    }
    record.write(one_line, out);
}

pub fn step(job: &v1::JobRecord, step: &v1::StepRecord, clock: &Clock, one_line: bool, out: &mut String) {
    // The batch step holds no resources of its own: the whole job is its.
    let batch = step.key.is_some_and(|k| StepId::from_wire(k.step) == StepId::Batch);
    let (cpus, tres) = if batch { (0, "(null)".to_owned()) } else { (step.cpus, tres::step(step).by_name()) };
    let distribution = match step.distribution.as_str() {
        "" | "Unknown" => String::new(),
        d => format!(" Dist={d}"),
    };
    let host = if step.srun_host.is_empty() { "(null)" } else { &step.srun_host };
    let mut record = Record::default();
    record
        .line(format!(
            "StepId={} UserId={} StartTime={} TimeLimit=UNLIMITED",
            facts::step_id(job, step),
            job.uid,
            clock.time(step.start)
        ))
        .line(format!("State={} Partition={} NodeList={}", step.state, job.partition, hostlist::fold(&step.nodes)))
        .line(format!(
            "Nodes={} CPUs={cpus} Tasks={} Name={} Network=(null)",
            step.nodes.len(),
            step.tasks,
            facts::text(&step.name)
        ))
        .line(format!("TRES={tres}"))
        .line("ResvPorts=(null)")
        .line(format!("CPUFreqReq=Default{distribution}"))
        .line(format!("SrunHost:Pid={host}:{}", step.srun_pid));
    record.write(one_line, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{fixture, recorded};

    #[test]
    fn a_node_prints_as_recorded() {
        let mut out = String::new();
        node(&fixture::node(0), &fixture::clock(), false, &mut out);
        recorded::assert_same(out.lines(), include_str!("../../../tests/data/show-node.txt").lines());
    }

    #[test]
    fn a_node_that_never_registered_says_so() {
        let bare = v1::NodeRecord { name: "n1".into(), unknown: true, ..Default::default() };
        let mut out = String::new();
        node(&bare, &fixture::clock(), true, &mut out);
        assert!(
            out.contains("CPULoad=N/A") && out.contains("State=UNKNOWN ") && out.contains("BootTime=None"),
            "{out}"
        );
        assert!(!out.contains("  "), "{out}");
    }

    #[test]
    fn partitions_print_as_recorded_but_for_node_sets() {
        let mut out = String::new();
        fixture::partitions().iter().for_each(|p| partition(p, false, &mut out));
        let recorded = include_str!("../../../tests/data/show-partition.txt");
        recorded::assert_same(out.lines(), recorded.lines().filter(|l| !l.contains("NodeSets=")));
    }

    #[test]
    fn steps_print_as_recorded() {
        let mut out = String::new();
        for (job, number) in [(2, 0), (2, 1), (8, 0), (9, 0)] {
            let job = fixture::job(job);
            step(&job, &job.steps[number], &fixture::clock(), false, &mut out);
        }
        recorded::assert_same(out.lines(), include_str!("../../../tests/data/show-step.txt").lines());
    }
}
