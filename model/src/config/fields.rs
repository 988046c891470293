//! Every setting as a key and its TOML text: the one list behind the printer and the comparison.

use super::{
    AccountingConfig, ClusterConfig, LimitsConfig, MailConfig, SchedulingConfig, SecurityConfig, TimingConfig,
};
use crate::hostlist;
use crate::node::NodeSpec;
use crate::partition::PartitionSpec;
use crate::time::format_time_limit_long;

/// A key and its value as TOML; None where the key is left out.
pub(super) type Field = (&'static str, Option<String>);

pub(super) fn quote(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

pub(super) fn list(items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted: Vec<String> = items.into_iter().map(|i| quote(i.as_ref())).collect();
    format!("[{}]", quoted.join(", "))
}

/// Everything of a node but its name.
pub(super) fn node(n: &NodeSpec) -> Vec<Field> {
    let NodeSpec { name: _, address, sockets, cores_per_socket, threads_per_core, cpus, memory_mb, .. } = n;
    vec![
        ("address", address.as_deref().map(quote)),
        ("cpus", Some(cpus.to_string())),
        ("sockets", Some(sockets.to_string())),
        ("cores_per_socket", Some(cores_per_socket.to_string())),
        ("threads_per_core", Some(threads_per_core.to_string())),
        ("memory_mb", Some(memory_mb.to_string())),
        ("tmp_disk_mb", Some(n.tmp_disk_mb.to_string())),
        ("gres", Some(list(n.gres.iter().map(crate::gres::format_gres_spec)))),
        ("features", Some(list(&n.features))),
        ("weight", Some(n.weight.to_string())),
    ]
}

/// Everything of a partition but its name.
pub(super) fn partition(p: &PartitionSpec) -> Vec<Field> {
    let number = |n: Option<u32>| n.map(|n| n.to_string());
    let memory = |n: Option<u64>| n.map(|n| n.to_string());
    let nodes: Vec<&str> = p.nodes.iter().map(|n| n.as_str()).collect();
    vec![
        ("nodes", Some(quote(&hostlist::fold(&nodes)))),
        ("default", Some(p.default.to_string())),
        ("max_time", Some(quote(&format_time_limit_long(p.max_time)))),
        ("default_time", p.default_time.map(|t| quote(&format_time_limit_long(t)))),
        ("min_nodes", Some(p.min_nodes.to_string())),
        ("max_nodes", number(p.max_nodes)),
        ("priority_tier", Some(p.priority_tier.to_string())),
        ("priority_job_factor", Some(p.priority_job_factor.to_string())),
        ("state", Some(quote(p.state.as_str()))),
        ("allow_users", Some(list(&p.allow_users))),
        ("allow_groups", Some(list(&p.allow_groups))),
        ("allow_accounts", Some(list(&p.allow_accounts))),
        ("allow_qos", Some(list(&p.allow_qos))),
        ("root_only", Some(p.root_only.to_string())),
        ("hidden", Some(p.hidden.to_string())),
        ("exclusive", Some(p.exclusive.to_string())),
        ("least_loaded", Some(p.least_loaded.to_string())),
        ("default_memory_per_cpu_mb", memory(p.default_memory_per_cpu_mb)),
        ("default_memory_per_node_mb", memory(p.default_memory_per_node_mb)),
        ("max_memory_per_node_mb", memory(p.max_memory_per_node_mb)),
        ("max_cpus_per_node", number(p.max_cpus_per_node)),
        ("grace_secs", Some(p.grace_secs.to_string())),
        ("preempt_mode", p.preempt_mode.map(|m| quote(m.as_str()))),
        ("billing_weights", Some(quote(&p.billing_weights.to_string()))),
        ("qos", p.qos.as_deref().map(quote)),
    ]
}

/// The plain sections, by name.
pub(super) fn sections(c: &ClusterConfig) -> Vec<(&'static str, Vec<Field>)> {
    // Taken apart in full, so that a new field can't be forgotten here.
    let SchedulingConfig {
        queue_depth,
        backfill,
        default_memory_per_cpu_mb,
        default_memory_per_node_mb,
        requeue,
        kill_on_invalid_dependency,
        enforce_partition_limits,
        least_loaded,
        pack_tasks,
        max_switch_wait_secs,
    } = &c.scheduling;
    let LimitsConfig {
        max_jobs,
        max_array_size,
        max_script_size,
        max_environment_size,
        max_requeue,
        submit_rate,
        submit_burst,
        first_job_id,
    } = &c.limits;
    let TimingConfig {
        kill_wait_secs,
        min_job_age_secs,
        node_timeout_secs,
        heartbeat_secs,
        over_time_limit_minutes,
        requeue_delay_secs,
    } = &c.timing;
    let SecurityConfig { best_effort, administrators, operators } = &c.security;
    let MailConfig { program, domain } = &c.mail;
    let AccountingConfig { enforce } = &c.accounting;
    let enforce: Vec<String> = enforce.words().into_iter().map(str::to_owned).collect();
    let mut out = vec![
        (
            "scheduling",
            vec![
                ("queue_depth", Some(queue_depth.to_string())),
                ("backfill", Some(backfill.to_string())),
                ("default_memory_per_cpu_mb", default_memory_per_cpu_mb.map(|n| n.to_string())),
                ("default_memory_per_node_mb", default_memory_per_node_mb.map(|n| n.to_string())),
                ("requeue", Some(requeue.to_string())),
                ("kill_on_invalid_dependency", Some(kill_on_invalid_dependency.to_string())),
                ("enforce_partition_limits", Some(enforce_partition_limits.to_string())),
                ("least_loaded", Some(least_loaded.to_string())),
                ("pack_tasks", Some(pack_tasks.to_string())),
                ("max_switch_wait_secs", Some(max_switch_wait_secs.to_string())),
            ],
        ),
        ("priority", super::priority::fields(&c.priority)),
        ("preemption", super::preemption::fields(&c.preemption)),
        (
            "limits",
            vec![
                ("max_jobs", Some(max_jobs.to_string())),
                ("max_array_size", Some(max_array_size.to_string())),
                ("max_script_size", Some(max_script_size.to_string())),
                ("max_environment_size", Some(max_environment_size.to_string())),
                ("max_requeue", Some(max_requeue.to_string())),
                ("submit_rate", Some(submit_rate.to_string())),
                ("submit_burst", Some(submit_burst.to_string())),
                ("first_job_id", Some(first_job_id.to_string())),
            ],
        ),
        (
            "timing",
            vec![
                ("kill_wait_secs", Some(kill_wait_secs.to_string())),
                ("min_job_age_secs", Some(min_job_age_secs.to_string())),
                ("node_timeout_secs", Some(node_timeout_secs.to_string())),
                ("heartbeat_secs", Some(heartbeat_secs.to_string())),
                ("over_time_limit_minutes", Some(over_time_limit_minutes.to_string())),
                ("requeue_delay_secs", Some(requeue_delay_secs.to_string())),
            ],
        ),
        (
            "security",
            vec![
                ("best_effort", Some(best_effort.to_string())),
                ("administrators", Some(list(administrators))),
                ("operators", Some(list(operators))),
            ],
        ),
        ("mail", vec![("program", program.as_deref().map(quote)), ("domain", domain.as_deref().map(quote))]),
        ("accounting", vec![("enforce", Some(list(&enforce)))]),
        ("topology", super::topology::fields(&c.topology)),
    ];
    out.extend(super::requeue::fields(&c.requeue));
    out
}
