//! A job with its steps as `sacct --json` prints it.
//!
//! Keys and their order are those of data_parser v0.0.45 (`sacct-json.txt` of the recorded outputs); a test compares
//! them. What this cluster has no notion of has the recorded "nothing" value.

use super::values::{self, Context, Span};
use super::{json_steps, window};
use crate::render::json::{exit, large_number, limit, number, number_or_unset, seconds, unset};
use crate::view::tres::{self, Tres};
use crate::view::{asked, clock, io_paths, job as facts};
use serde_json::{Map, Value, json};
use sluice_model::JobState;
use sluice_proto::v1;
use v1::memory_request::Kind as Memory;

pub fn job(job: &v1::JobRecord, context: &Context<'_>) -> Value {
    let mut out = Map::new();
    for part in [identity(job, context), course(job, context), request(job), resources(job, context)] {
        if let Value::Object(part) = part {
            out.extend(part);
        }
    }
    Value::Object(KEYS.split_whitespace().filter_map(|key| out.remove_entry(key)).collect())
}

/// In the order of the recorded output. A key that is not listed would be lost: a test compares both.
const KEYS: &str = "account comment allocation_nodes array association block cluster constraints container sluid \
    derived_exit_code time exclusive exit_code extra failed_node flags group het job_id name licenses mcs nodes \
    oversubscribe partition hold priority qos qosreq required kill_request_user restart_cnt reservation script \
    segment_size original_sluid stdin_expanded stdout_expanded stderr_expanded stdout stderr stdin state steps \
    submit_line tres used_gres user wckey working_directory";

fn text(bytes: Option<&[u8]>) -> String {
    bytes.map(|b| facts::text(b).into_owned()).unwrap_or_default()
}

/// Seconds and microseconds.
pub fn cpu(us: u64) -> Value {
    json!({"seconds": us / 1_000_000, "microseconds": us % 1_000_000})
}

pub fn tres_list(tres: &Tres) -> Value {
    let one = |e: tres::TresEntry| json!({"type": e.kind, "name": e.name, "id": e.id, "count": e.count});
    tres.entries().into_iter().map(one).collect()
}

fn identity(job: &v1::JobRecord, context: &Context<'_>) -> Value {
    let spec = job.spec.as_ref();
    let waiting_tasks = job.array_pending.is_some().then(|| facts::array_task(job, 0)).flatten();
    json!({
        "account": job.account,
        "comment": {
            "administrator": job.admin_comment.clone().unwrap_or_default(),
            "job": text(job.comment.as_deref()),
            "system": job.system_comment.clone().unwrap_or_default(),
        },
        "array": {
            "job_id": job.array_job.unwrap_or(0),
            "limits": {"max": {"running": {"tasks": job.array_throttle.unwrap_or(0)}}},
            "task_id": number_or_unset(job.array_index),
            "task": waiting_tasks.unwrap_or_default(),
        },
        "association": {"account": "", "cluster": context.cluster, "partition": "", "user": "", "id": job.association},
        "block": "",
        "cluster": context.cluster,
        "container": "",
        "sluid": "",
        "extra": "",
        "group": spec.map(|s| s.group.clone()).unwrap_or_default(),
        "het": {"job_id": 0, "job_offset": unset()},
        "job_id": job.id,
        "name": facts::text(&job.name),
        "mcs": {"label": ""},
        "original_sluid": "",
        "submit_line": text(spec.map(|s| s.submit_line.as_ref())),
        "user": job.user,
        "wckey": match spec.and_then(|s| s.wckey.as_deref()) {
            None | Some("") => json!({"wckey": "", "flags": ["ASSIGNED_DEFAULT"]}),
            Some(key) => json!({"wckey": key, "flags": []}),
        },
        "working_directory": text(spec.map(|s| s.work_dir.as_ref())),
    })
}

/// What happened to it.
fn course(job: &v1::JobRecord, context: &Context<'_>) -> Value {
    let outcome = job.outcome.as_ref();
    let usage = values::usage(job);
    let Span { start, end, elapsed_ms } = context.job_span(job);
    let killer = outcome.filter(|o| o.state == JobState::Cancelled.long()).and_then(|o| o.by_uid);
    let flags: Vec<&str> = values::flags(job)
        .into_iter()
        .map(|flag| match flag {
            "SchedBackfill" => "STARTED_ON_BACKFILL",
            "SchedMain" => "STARTED_ON_SCHEDULE",
            _ => "START_RECEIVED",
        })
        .collect();
    json!({
        "derived_exit_code": exit(outcome.and_then(|o| o.derived_exit.as_ref())),
        "time": {
            "elapsed": elapsed_ms / 1000,
            "eligible": seconds(job.eligible),
            "end": seconds(end),
            "planned": number(context.planned_ms(job) / 1000),
            "start": seconds(start),
            "submission": seconds(Some(job.submit)),
            "suspended": context.suspended_ms(job) / 1000,
            "system": cpu(usage.system_cpu_us),
            "limit": limit(clock::limit(job.time_limit.as_ref())),
            "total": cpu(usage.user_cpu_us.saturating_add(usage.system_cpu_us)),
            "user": cpu(usage.user_cpu_us),
        },
        "exit_code": exit(outcome.and_then(|o| o.exit.as_ref())),
        "failed_node": "",
        "flags": flags,
        "hold": job.priority == 0 && facts::is_waiting(job),
        "priority": number(job.priority),
        "kill_request_user": killer.map(user_name).unwrap_or_default(),
        "restart_cnt": job.attempt,
        "state": {"current": [window::state(job)], "reason": values::reason(job)},
        "steps": job.steps.iter().map(|step| json_steps::step(job, step, context)).collect::<Vec<_>>(),
    })
}

/// The number stands for a name that this host does not know.
fn user_name(uid: u32) -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten();
    user.map_or_else(|| uid.to_string(), |u| u.name)
}

/// What it asked for.
fn request(job: &v1::JobRecord) -> Value {
    let spec = job.spec.as_ref();
    let asked_for = spec.and_then(|s| s.request.as_ref());
    let (per_cpu, per_node) = match tres::memory(job) {
        Memory::PerCpu(mb) => (large_number(mb), unset()),
        Memory::PerNode(mb) => (unset(), large_number(mb)),
        Memory::PerGpu(_) => (unset(), unset()),
    };
    let reservation = spec.and_then(|s| s.reservation.clone()).unwrap_or_default();
    json!({
        "constraints": asked_for.and_then(|r| r.constraint_text.clone()).unwrap_or_default(),
        "exclusive": asked::exclusive(job),
        "licenses": asked::licenses(job).unwrap_or_default(),
        "oversubscribe": asked::oversubscribe(job),
        "qos": job.qos,
        "qosreq": spec.and_then(|s| s.qos.clone()).unwrap_or_default(),
        "required": {
            "CPUs": tres::requested(job).cpus,
            "memory_per_cpu": per_cpu,
            "memory_per_node": per_node,
        },
        "reservation": {"id": 0, "name": reservation, "requested": reservation},
        "script": "",
        "segment_size": 0,
        "stdin_expanded": io_paths::stdin(job),
        "stdout_expanded": io_paths::stdout(job),
        "stderr_expanded": io_paths::stderr(job),
        "stdout": io_paths::stdout_pattern(job),
        "stderr": io_paths::stderr_pattern(job),
        "stdin": io_paths::stdin_pattern(job),
    })
}

/// What it got.
fn resources(job: &v1::JobRecord, context: &Context<'_>) -> Value {
    let ran = window::started(job).is_some();
    let held = tres::allocated(job).filter(|_| ran);
    json!({
        "allocation_nodes": if ran { job.num_nodes } else { 0 },
        "nodes": context.job(super::fields::Field::NodeList, job),
        "partition": job.partition,
        "tres": {
            "allocated": held.as_ref().map_or_else(|| json!([]), tres_list),
            "requested": tres_list(&tres::requested(job)),
        },
        "used_gres": "",
    })
}

#[cfg(test)]
mod tests {
    use super::super::units::Units;
    use super::*;
    use crate::view::{fixture, recorded};

    fn printed(id: u32) -> Value {
        let clock = fixture::clock();
        let context = Context {
            clock: &clock,
            cluster: "test_cluster",
            bitstr_len: 64,
            units: Units::Auto,
            truncate: None,
            expand_patterns: false,
            local_uid: false,
        };
        job(&fixture::job(id), &context)
    }

    #[test]
    fn the_finished_job_prints_as_recorded() {
        let mut ours = printed(1);
        let mut recorded = recorded::json(include_str!("../../../tests/data/sacct.json"))["jobs"][0].take();
        // What this cluster has no notion of, and the comment, which the recorded one was told not to keep.
        for key in ["association", "sluid", "original_sluid", "comment"] {
            assert_eq!(recorded::paths(&ours[key]), recorded::paths(&recorded[key]));
            ours[key].take();
            recorded[key].take();
        }
        recorded::assert_same_json(&ours, &recorded);
    }

    #[test]
    fn every_job_and_every_step_has_the_same_keys() {
        let without_steps = |id| {
            let mut job = printed(id);
            job["steps"].take();
            job["tres"]["allocated"].take();
            recorded::paths(&job)
        };
        let step_keys = |step: &Value| {
            let mut step = step.clone();
            step["tres"]["requested"].take();
            step["tres"]["consumed"].take();
            recorded::paths(&step)
        };
        for id in 2..=9 {
            assert_eq!(without_steps(id), without_steps(1), "job {id}");
            for step in printed(id)["steps"].as_array().unwrap() {
                assert_eq!(step_keys(step), step_keys(&printed(1)["steps"][0]), "job {id}");
            }
        }
        assert_eq!(printed(1).as_object().unwrap().len(), KEYS.split_whitespace().count());
    }
}
