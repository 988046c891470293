//! A job as `squeue --json` and `scontrol show job --json` print it.
//!
//! The keys and their order are those of data_parser v0.0.45 (`show-job-json.txt` of the recorded outputs); a test
//! compares them. What this cluster has no notion of has the recorded "nothing" value.

use super::{asked, clock, io_paths, job as facts, tres};
use crate::render::json::{exit, infinite, large_number, limit, number, number_or_unset, time, unset};
use serde_json::{Map, Value, json};
use sluice_model::JobState;
use sluice_proto::v1::{self, GresScope};
use v1::memory_request::Kind as Memory;

/// What is not in the record.
pub struct Surroundings<'a> {
    pub cluster: &'a str,
    /// By name, for the cores of an allocation; may be empty.
    pub nodes: &'a [v1::NodeRecord],
}

pub fn job(job: &v1::JobRecord, around: &Surroundings<'_>) -> Value {
    let mut out = Map::new();
    identity(job, around, &mut out);
    limits_and_times(job, &mut out);
    resources(job, around, &mut out);
    streams_and_tres(job, &mut out);
    Value::Object(order(out))
}

/// Keys in the order of the recorded output. Keys that are not listed would be lost: a test compares both.
fn order(mut values: Map<String, Value>) -> Map<String, Value> {
    KEYS.split_whitespace().filter_map(|key| values.remove_entry(key)).collect()
}

const KEYS: &str = "account accrue_time admin_comment allocating_node array_job_id array_task_id array_max_tasks \
    array_task_string association_id batch_features batch_flag batch_host flags burst_buffer burst_buffer_state \
    cluster cluster_features command comment container container_id container_type contiguous core_spec thread_spec \
    cores_per_socket billable_tres cpus_per_task cpu_frequency_minimum cpu_frequency_maximum cpu_frequency_governor \
    cpus_per_tres cron deadline delay_boot dependency derived_exit_code eligible_time end_time excluded_nodes \
    exit_code extra failed_node features federation_origin federation_siblings_active federation_siblings_viable \
    gres_detail group_id group_name het_job_id het_job_id_set het_job_offset job_id job_resources job_size_str \
    job_state last_sched_evaluation licenses licenses_allocated mail_type mail_user max_cpus max_nodes mcs_label \
    memory_per_tres memory_update_delay memory_update_margin name network nodes nice tasks_per_core tasks_per_tres \
    tasks_per_node tasks_per_socket tasks_per_board cpus node_count tasks partition prefer memory_per_cpu \
    memory_per_node minimum_cpus_per_node minimum_tmp_disk_per_node preempt_time preemptable_time pre_sus_time hold \
    priority priority_by_partition profile qos reboot required_nodes required_switches requeue resize_time \
    restart_cnt resv_name scheduled_nodes segment_size selinux_context shared step_id sockets_per_board \
    sockets_per_node start_time state_description state_reason standard_input standard_output standard_error \
    stdin_expanded stdout_expanded stderr_expanded submit_time submit_line suspend_time system_comment time_limit \
    time_minimum threads_per_core tres_bind tres_freq tres_per_job tres_per_node tres_per_socket tres_per_task \
    tres_req_str tres_alloc_str user_id user_name maximum_switch_wait_time wckey current_working_directory";

fn put(out: &mut Map<String, Value>, values: Value) {
    if let Value::Object(values) = values {
        out.extend(values);
    }
}

fn states(job: &v1::JobRecord) -> Vec<&str> {
    if job.state == JobState::Completing.long() {
        vec![facts::final_state(job), "COMPLETING"]
    } else if job.state == JobState::SpecialExit.long() {
        vec![JobState::Pending.long(), &job.state]
    } else {
        vec![&job.state]
    }
}

fn flags(job: &v1::JobRecord) -> Vec<&'static str> {
    let spec = job.spec.as_deref();
    let unset = |f: fn(&v1::JobSpec) -> bool| spec.is_some_and(f);
    let set = [
        (job.start.is_some() && !facts::is_waiting(job), "JOB_WAS_RUNNING"),
        (unset(|s| s.account.is_none()), "USING_DEFAULT_ACCOUNT"),
        (unset(|s| s.partitions.is_empty()), "USING_DEFAULT_PARTITION"),
        (unset(|s| s.qos.is_none()), "USING_DEFAULT_QOS"),
        (unset(|s| s.wckey.is_none()), "USING_DEFAULT_WCKEY"),
        (unset(|s| s.kill_on_invalid_dep == Some(true)), "KILL_INVALID_DEPENDENCY"),
        (job.backfilled, "BACKFILL_ATTEMPTED"),
    ];
    set.iter().filter(|(on, _)| *on).map(|(_, word)| *word).collect()
}

fn identity(job: &v1::JobRecord, around: &Surroundings<'_>, out: &mut Map<String, Value>) {
    let spec = job.spec.clone().unwrap_or_default();
    let request = spec.request.clone().unwrap_or_default();
    let text = |b: Option<&[u8]>| b.map(|b| facts::text(b).into_owned()).unwrap_or_default();
    let task_string =
        if job.array_pending.is_some() { facts::array_task(job, 0).unwrap_or_default() } else { String::new() };
    put(
        out,
        json!({
            "account": job.account,
            "admin_comment": job.admin_comment.clone().unwrap_or_default(),
            "allocating_node": spec.submit_host,
            "array_job_id": number(job.array_job.unwrap_or(0)),
            "array_task_id": number_or_unset(job.array_index),
            "array_max_tasks": number(job.array_throttle.unwrap_or(0)),
            "array_task_string": task_string,
            "association_id": job.association,
            "batch_features": asked::constraint(request.batch.as_ref()).unwrap_or_default(),
            "batch_flag": spec.batch,
            "batch_host": job.batch_host,
            "flags": flags(job),
            "burst_buffer": "",
            "burst_buffer_state": "",
            "cluster": around.cluster,
            "cluster_features": "",
            "command": text(spec.command.as_deref()),
            "comment": text(job.comment.as_deref()),
            "container": "",
            "container_id": "",
            "container_type": "",
            "cron": "",
            "dependency": asked::dependency(job).unwrap_or_default(),
            "extra": "",
            "failed_node": "",
            "federation_origin": "",
            "federation_siblings_active": "",
            "federation_siblings_viable": "",
        }),
    );
    put(
        out,
        json!({
            "group_id": job.gid,
            "group_name": spec.group,
            "het_job_id": number(0),
            "het_job_id_set": "",
            "het_job_offset": number(0),
            "job_id": job.id,
            "job_size_str": [],
            "job_state": states(job),
            "licenses": asked::licenses(job).unwrap_or_default(),
            "licenses_allocated": asked::licenses_held(job).unwrap_or_default(),
            "mail_type": mail_types(spec.mail_type),
            "mail_user": spec.mail_user.clone().unwrap_or_else(|| job.user.clone()),
            "mcs_label": "",
            "name": facts::text(&job.name),
            "network": "",
            "partition": job.partition,
            "prefer": asked::constraint(request.prefer.as_ref()).unwrap_or_default(),
            "profile": ["NOT_SET"],
            "qos": job.qos,
            "reboot": false,
            "resv_name": spec.reservation.clone().unwrap_or_default(),
            "selinux_context": "",
            "step_id": {
                "sluid": "",
                "job_id": number(job.id),
                "step_het_component": unset(),
                "step_id": "entire",
            },
            "state_description": job.outcome.as_ref().and_then(|o| o.detail.clone()).unwrap_or_default(),
            "state_reason": facts::reason(job),
            "submit_line": text(Some(&spec.submit_line)),
            "system_comment": job.system_comment.clone().unwrap_or_default(),
            "user_id": job.uid,
            "user_name": job.user,
            "wckey": asked::wckey(job),
            "current_working_directory": text(Some(&spec.work_dir)),
        }),
    );
}

fn mail_types(bits: u32) -> Vec<String> {
    if bits == 0 {
        return Vec::new();
    }
    sluice_model::mail::format(bits).split(',').map(str::to_owned).collect()
}

fn limits_and_times(job: &v1::JobRecord, out: &mut Map<String, Value>) {
    let spec = job.spec.clone().unwrap_or_default();
    put(
        out,
        json!({
            "accrue_time": time(job.eligible),
            "deadline": time(spec.deadline),
            "delay_boot": number(0),
            "derived_exit_code": exit(job.outcome.as_ref().and_then(|o| o.derived_exit.as_ref())),
            "eligible_time": time(job.eligible),
            "end_time": time(job.end),
            "exit_code": exit(job.outcome.as_ref().and_then(|o| o.exit.as_ref())),
            "last_sched_evaluation": time(job.last_sched_eval),
            "nice": spec.nice,
            "preempt_time": time(Some(job.preempted_at.unwrap_or(0))),
            "preemptable_time": time(Some(job.preempt_eligible.unwrap_or(0))),
            "pre_sus_time": number(job.suspended_since.map_or(0, |_| job.elapsed_ms / 1000)),
            "hold": job.priority == 0 && facts::is_waiting(job),
            "priority": number(job.priority),
            "priority_by_partition": [],
            "requeue": job.requeue,
            "resize_time": number(0),
            "restart_cnt": job.attempt,
            "start_time": time(job.start),
            "submit_time": time(Some(job.submit)),
            "suspend_time": time(job.suspended_since),
            "time_limit": limit(clock::limit(job.time_limit.as_ref())),
            "time_minimum": match clock::limit(spec.time_min.as_ref()) {
                None => number(0),
                given => limit(given),
            },
        }),
    );
}

fn resources(job: &v1::JobRecord, around: &Surroundings<'_>, out: &mut Map<String, Value>) {
    let request = job.spec.as_ref().and_then(|s| s.request.clone()).unwrap_or_default();
    let (per_cpu, per_node) = match tres::memory(job) {
        Memory::PerCpu(mb) => (large_number(mb), unset()),
        Memory::PerNode(mb) => (unset(), large_number(mb)),
        Memory::PerGpu(_) => (unset(), unset()),
    };
    let mut shared: Vec<&str> = match request.exclusive {
        0 => Vec::new(),
        1 => vec!["none"],
        _ => vec!["user"],
    };
    if request.oversubscribe {
        shared.push("oversubscribe");
    }
    put(
        out,
        json!({
            "contiguous": request.contiguous,
            "core_spec": 0,
            "thread_spec": 32766,
            "cores_per_socket": request.cores_per_socket.map_or_else(unset, number),
            "billable_tres": {"set": true, "infinite": false, "number": f64::from(job.num_cpus)},
            "cpus_per_task": number(request.cpus_per_task.unwrap_or(1)),
            "cpu_frequency_minimum": unset(),
            "cpu_frequency_maximum": unset(),
            "cpu_frequency_governor": unset(),
            "cpus_per_tres": "",
            "excluded_nodes": sluice_model::hostlist::fold(&request.exclude),
            "features": request.constraint_text.clone().unwrap_or_default(),
            "gres_detail": gres_detail(job),
            "job_resources": job_resources(job, around),
            "max_cpus": number(0),
            "max_nodes": number(request.nodes.and_then(|n| n.max.filter(|m| *m > n.min)).unwrap_or(0)),
            "memory_per_tres": "",
            "memory_update_delay": 0,
            "memory_update_margin": 0,
            "nodes": job.node_list,
            "tasks_per_core": infinite(),
            "tasks_per_tres": number(0),
            "tasks_per_node": number(request.ntasks_per_node.unwrap_or(0)),
            "tasks_per_socket": infinite(),
            "tasks_per_board": number(0),
            "cpus": number(job.num_cpus),
            "node_count": number(job.num_nodes),
            "tasks": number(job.num_tasks),
            "memory_per_cpu": per_cpu,
            "memory_per_node": per_node,
            "minimum_cpus_per_node": number(asked::min_cpus_per_node(job)),
            "minimum_tmp_disk_per_node": large_number(request.tmp_disk_mb),
            "required_nodes": sluice_model::hostlist::fold(&request.node_list),
            "required_switches": request.switches.as_ref().map_or(0, |s| s.count),
            "scheduled_nodes": job.sched_nodes,
            "segment_size": request.segment.unwrap_or(0),
            "shared": shared,
            "sockets_per_board": 0,
            "sockets_per_node": request.sockets_per_node.map_or_else(unset, number),
            "threads_per_core": request.threads_per_core.map_or_else(unset, number),
            "maximum_switch_wait_time": request.switches.as_ref().and_then(|s| s.max_wait_secs).unwrap_or(0),
        }),
    );
}

fn streams_and_tres(job: &v1::JobRecord, out: &mut Map<String, Value>) {
    let per = |scope| tres::per_scope(job, scope).unwrap_or_default();
    put(
        out,
        json!({
            "standard_input": io_paths::stdin_pattern(job),
            "standard_output": io_paths::stdout_pattern(job),
            "standard_error": io_paths::stderr_pattern(job),
            "stdin_expanded": io_paths::stdin(job),
            "stdout_expanded": io_paths::stdout(job),
            "stderr_expanded": io_paths::stderr(job),
            "tres_bind": "",
            "tres_freq": "",
            "tres_per_job": per(GresScope::Job),
            "tres_per_node": per(GresScope::Node),
            "tres_per_socket": per(GresScope::Socket),
            "tres_per_task": per(GresScope::Task),
            "tres_req_str": tres::requested(job).by_number(),
            "tres_alloc_str": tres::allocated(job).map(|t| t.by_number()).unwrap_or_default(),
        }),
    );
}

fn gres_detail(job: &v1::JobRecord) -> Vec<String> {
    let nodes = job.allocation.as_ref().map(|a| a.nodes.as_slice()).unwrap_or_default();
    nodes.iter().map(|n| tres::gres_alloc_detail(&n.gres)).filter(|g| !g.is_empty()).collect()
}

/// The allocation, node by node and core by core; null for a job that never had one.
fn job_resources(job: &v1::JobRecord, around: &Surroundings<'_>) -> Value {
    let Some(allocation) = job.allocation.as_ref().filter(|a| !a.nodes.is_empty()) else { return Value::Null };
    let nodes: Vec<Value> =
        (0u32..).zip(&allocation.nodes).map(|(index, node)| node_resources(job, index, node, around)).collect();
    let whole = job.spec.as_ref().and_then(|s| s.request.as_ref()).is_some_and(|r| r.exclusive != 0);
    json!({
        "select_type": ["CR_CORE_MEMORY"],
        "nodes": {
            "count": allocation.nodes.len(),
            "select_type": ["ONE_ROW"],
            "list": job.node_list,
            "whole": whole,
            "allocation": nodes,
        },
        "cpus": allocation.nodes.iter().map(tres::cpu_count).sum::<u64>(),
        "threads_per_core": unset(),
    })
}

fn node_resources(job: &v1::JobRecord, index: u32, node: &v1::NodeAlloc, around: &Surroundings<'_>) -> Value {
    let cpus = node.cpus.as_ref().map(facts::index_set).unwrap_or_default();
    let known = around.nodes.iter().find(|n| n.name == node.node);
    let threads = known.map_or(1, |n| n.threads_per_core.max(1));
    let per_socket = known.map_or(0, |n| n.cores_per_socket);
    let last = cpus.last().map_or(0, |c| c / threads + 1);
    let per_socket = if per_socket == 0 { last.max(1) } else { per_socket };
    let sockets = known.map_or(1, |n| n.sockets.max(1)).max(last.div_ceil(per_socket));
    let core = |socket: u32, core: u32| {
        let first = (socket * per_socket + core) * threads;
        let held = (first..first + threads).any(|cpu| cpus.contains(cpu));
        json!({"index": core, "status": [if held { "ALLOCATED" } else { "UNALLOCATED" }]})
    };
    let sockets: Vec<Value> = (0..sockets)
        .map(|s| json!({"index": s, "cores": (0..per_socket).map(|c| core(s, c)).collect::<Vec<_>>()}))
        .collect();
    let in_use = matches!(job.state.as_str(), "RUNNING" | "SUSPENDED" | "COMPLETING");
    json!({
        "index": index,
        "name": node.node,
        "cpus": {"count": cpus.len(), "used": if in_use { cpus.len() } else { 0 }},
        "memory": {"used": if in_use { node.memory_mb } else { 0 }, "allocated": node.memory_mb},
        "sockets": sockets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    #[test]
    fn the_running_job_prints_as_recorded() {
        let nodes = fixture::nodes();
        let mut ours = job(&fixture::job(2), &Surroundings { cluster: "test_cluster", nodes: &nodes });
        let mut recorded = crate::view::recorded::json(include_str!("../../tests/data/squeue.json"))["jobs"][0].take();
        // What this cluster has no notion of, or counts differently.
        for key in ["association_id", "flags", "step_id"] {
            ours[key].take();
            recorded[key].take();
        }
        crate::view::recorded::assert_same_json(&ours, &recorded);
    }

    #[test]
    fn a_waiting_job_has_the_same_keys() {
        let around = Surroundings { cluster: "c", nodes: &[] };
        let keys = |id| job(&fixture::job(id), &around).as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(3), keys(2));
        assert_eq!(keys(3).len(), KEYS.split_whitespace().count());
    }
}
