//! `scontrol show job`: one record for each job.
//!
//! Keys and their order are Slurm 26.05's (`show-job-*.txt`). With `--oneliner` the line `SubmitLine=` is left out:
//! clients split such records at blanks.

use super::record::{Record, or_null};
use crate::view::clock::{self, Clock};
use crate::view::{asked, io_paths, job as facts, tres};
use sluice_model::hostlist;
use sluice_proto::v1::{self, GresScope};
use v1::memory_request::Kind as Memory;

#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    pub details: bool,
    pub one_line: bool,
}

pub fn write(job: &v1::JobRecord, clock: &Clock, form: Form, out: &mut String) {
    let mut record = Record::default();
    who(job, form, &mut record);
    when(job, clock, &mut record);
    where_it_runs(job, form, &mut record);
    what(job, form, &mut record);
    record.write(form.one_line, out);
}

fn who(job: &v1::JobRecord, form: Form, record: &mut Record) {
    let spec = job.spec.clone().unwrap_or_default();
    let array = match (job.array_job, facts::array_task(job, facts::BITSTR_LEN)) {
        (Some(base), Some(task)) => {
            let throttle =
                job.array_throttle.filter(|t| *t > 0).map(|t| format!(" ArrayTaskThrottle={t}")).unwrap_or_default();
            format!(" ArrayJobId={base} ArrayTaskId={task}{throttle}")
        }
        _ => String::new(),
    };
    let outcome = job.outcome.as_ref();
    record
        .line(format!("JobId={}{array} JobName={}", job.id, facts::text(&job.name)))
        .line(format!("UserId={}({}) GroupId={}({}) MCS_label=N/A", job.user, job.uid, spec.group, job.gid))
        .line(format!(
            "Priority={} Nice={} Account={} QOS={} WCKey={}{}",
            job.priority,
            spec.nice,
            or_null(&job.account),
            or_null(&job.qos),
            asked::wckey(job),
            if spec.site_factor == 0 { String::new() } else { format!(" SiteFactor={}", spec.site_factor) }
        ))
        .line(format!(
            "JobState={} Reason={} Dependency={}",
            job.state,
            facts::reason(job),
            asked::dependency(job).as_deref().unwrap_or("(null)")
        ))
        .line(format!(
            "Requeue={} Restarts={} BatchFlag={} Reboot=0 ExitCode={}",
            u8::from(job.requeue),
            job.attempt,
            u8::from(spec.batch),
            facts::exit(outcome.and_then(|o| o.exit.as_ref()))
        ));
    if form.details {
        record.line(format!("DerivedExitCode={}", facts::exit(outcome.and_then(|o| o.derived_exit.as_ref()))));
    }
}

fn when(job: &v1::JobRecord, clock: &Clock, record: &mut Record) {
    let spec = job.spec.clone().unwrap_or_default();
    let accrues = job.eligible.filter(|at| *at <= clock.now.0);
    let before_suspension = job.suspended_since.map_or(0, |_| job.elapsed_ms / 1000);
    record
        .line(format!(
            "RunTime={} TimeLimit={} TimeMin={}",
            clock::elapsed_long(job.elapsed_ms),
            clock::limit_long(job.time_limit.as_ref(), "NOT_SET"),
            clock::limit_long(spec.time_min.as_ref(), "N/A")
        ))
        .line(format!("SubmitTime={} EligibleTime={}", clock.time(job.submit), clock.time_or(job.eligible, "Unknown")))
        .line(format!("AccrueTime={}", clock.time_or(accrues, "Unknown")))
        .line(format!(
            "StartTime={} EndTime={} Deadline={}",
            clock.time_or(job.start, "Unknown"),
            clock.time_or(facts::end(job), "Unknown"),
            clock.time_or(spec.deadline, "N/A")
        ))
        .some("PreemptEligibleTime", preemption(job, clock))
        .line(format!(
            "SuspendTime={} SecsPreSuspend={before_suspension} LastSchedEval={} Scheduler={}",
            clock.time_or(job.suspended_since, "None"),
            clock.time_or(job.last_sched_eval, "Unknown"),
            if job.backfilled { "Backfill" } else { "Main" }
        ));
}

/// Of jobs that may be preempted, or were.
fn preemption(job: &v1::JobRecord, clock: &Clock) -> Option<String> {
    (job.preempt_eligible.is_some() || job.preempted_at.is_some()).then(|| {
        let eligible = clock.time_or(job.preempt_eligible, "Unknown");
        format!("{eligible} PreemptTime={}", clock.time_or(job.preempted_at, "None"))
    })
}

fn where_it_runs(job: &v1::JobRecord, form: Form, record: &mut Record) {
    let spec = job.spec.clone().unwrap_or_default();
    let request = spec.request.clone().unwrap_or_default();
    let nodes = |names: &[String]| or_null(&hostlist::fold(names)).to_owned();
    let waiting = facts::is_waiting(job);
    let count = match request.nodes.and_then(|n| n.max.filter(|max| *max > n.min)) {
        Some(max) if waiting => format!("{}-{max}", job.num_nodes),
        _ => job.num_nodes.to_string(),
    };
    record
        .line(format!("Partition={} AllocNode:Sid={}:{}", job.partition, spec.submit_host, spec.submit_sid))
        .line(format!("ReqNodeList={} ExcNodeList={}", nodes(&request.node_list), nodes(&request.exclude)))
        .line(format!("NodeList={}", job.node_list))
        .some("BatchHost", Some(job.batch_host.clone()).filter(|h| !h.is_empty()))
        .some("SchedNodeList", Some(job.sched_nodes.clone()).filter(|n| waiting && !n.is_empty()))
        .line(format!(
            "NumNodes={count} NumCPUs={} NumTasks={} CPUs/Task={} ReqB:S:C:T=0:0:{}:{}",
            job.num_cpus,
            job.num_tasks,
            request.cpus_per_task.unwrap_or(1),
            asked::or_any(request.cores_per_socket),
            asked::or_any(request.threads_per_core)
        ))
        .line(format!("ReqTRES={}", tres::requested(job).by_number()))
        .line(format!("AllocTRES={}", tres::allocated(job).map(|t| t.by_number()).as_deref().unwrap_or("(null)")))
        .line(format!(
            "Socks/Node={} NtasksPerN:B:S:C={}:0:{}:{} CoreSpec=*",
            asked::or_any(request.sockets_per_node),
            request.ntasks_per_node.unwrap_or(0),
            asked::or_any(request.ntasks_per_socket),
            asked::or_any(request.ntasks_per_core),
        ));
    if form.details
        && let Some(allocation) = &job.allocation
    {
        details(allocation, record);
    }
}

/// The cores and devices, nodes with the same ones together.
fn details(allocation: &v1::Allocation, record: &mut Record) {
    let mut devices = tres::Tres::default();
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for node in &allocation.nodes {
        devices.add_held(&node.gres);
        let cpus = node.cpus.as_ref().map(facts::index_set).unwrap_or_default();
        let text = format!("CPU_IDs={cpus} Mem={} GRES={}", node.memory_mb, tres::gres_alloc_detail(&node.gres));
        match groups.iter_mut().find(|(t, _)| *t == text) {
            Some((_, names)) => names.push(&node.node),
            None => groups.push((text, vec![&node.node])),
        }
    }
    let devices: Vec<String> = devices.gres.iter().map(|(name, n)| format!("{name}:{n}")).collect();
    record.line(format!("JOB_GRES={}", or_null(&devices.join(","))));
    for (text, names) in groups {
        record.line(format!("  Nodes={} {text}", hostlist::fold(&names)));
    }
}

fn what(job: &v1::JobRecord, form: Form, record: &mut Record) {
    let spec = job.spec.clone().unwrap_or_default();
    let request = spec.request.clone().unwrap_or_default();
    let (key, mb) = match tres::memory(job) {
        Memory::PerCpu(mb) => ("MinMemoryCPU", mb),
        Memory::PerNode(mb) => ("MinMemoryNode", mb),
        Memory::PerGpu(mb) => ("MemPerTres=gres/gpu", mb),
    };
    let memory = sluice_model::memory::format_memory_mb(mb);
    let text = |bytes: Option<&[u8]>| bytes.map(|b| facts::text(b).into_owned()).filter(|t| !t.is_empty());
    record
        .line(format!(
            "MinCPUsNode={} {key}={memory} MinTmpDiskNode={}",
            asked::min_cpus_per_node(job),
            request.tmp_disk_mb
        ))
        .line(format!("Features={} DelayBoot=00:00:00", request.constraint_text.as_deref().unwrap_or("(null)")))
        .some("Prefer", asked::constraint(request.prefer.as_ref()))
        .some("BatchFeatures", asked::constraint(request.batch.as_ref()))
        .some("Reservation", spec.reservation.clone())
        .line(format!(
            "OverSubscribe={} Exclusive={} Contiguous={} Licenses={} LicensesAlloc={} Network=(null)",
            asked::oversubscribe(job),
            asked::exclusive(job),
            u8::from(request.contiguous),
            asked::licenses(job).as_deref().unwrap_or("(null)"),
            asked::licenses_held(job).as_deref().unwrap_or("(null)")
        ))
        .line(format!("Command={}", text(spec.command.as_deref()).as_deref().unwrap_or("(null)")));
    if !form.one_line {
        record.line(format!("SubmitLine={}", text(Some(&spec.submit_line)).as_deref().unwrap_or("(null)")));
    }
    record
        .line(format!("WorkDir={}", facts::text(&spec.work_dir)))
        .some("AdminComment", job.admin_comment.clone())
        .some("SystemComment", job.system_comment.clone())
        .some("Comment", text(job.comment.as_deref()));
    if spec.batch {
        record
            .line(format!("StdErr={}", io_paths::stderr(job)))
            .line(format!("StdIn={}", io_paths::stdin(job)))
            .line(format!("StdOut={}", io_paths::stdout(job)));
    }
    record
        .some("Switches", request.switches.as_ref().map(asked::switches))
        .some("SegmentSize", request.segment.map(|n| n.to_string()))
        .some("GresEnforceBind", request.enforce_binding.then(|| "Yes".to_owned()))
        .some(
            "GpuMemory",
            (request.gpu_memory_mb > 0).then(|| sluice_model::memory::format_memory_mb(request.gpu_memory_mb)),
        )
        .some("SpreadJob", request.spread.then(|| "Yes".to_owned()))
        .some("TresPerJob", tres::per_scope(job, GresScope::Job))
        .some("TresPerNode", tres::per_scope(job, GresScope::Node))
        .some("TresPerSocket", tres::per_scope(job, GresScope::Socket))
        .some("TresPerTask", tres::per_scope(job, GresScope::Task));
    if spec.mail_type != 0 {
        let user = spec.mail_user.clone().unwrap_or_else(|| job.user.clone());
        record.line(format!("MailUser={user} MailType={}", sluice_model::mail::format(spec.mail_type)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{fixture, recorded};

    fn print(ids: &[u32], details: bool) -> String {
        let mut out = String::new();
        for id in ids {
            write(&fixture::job(*id), &fixture::clock(), Form { details, one_line: false }, &mut out);
        }
        out
    }
    fn compare(ours: &str, recorded: &str) {
        recorded::assert_same(ours.lines(), recorded.lines());
    }

    #[test]
    fn a_finished_job_prints_as_recorded() {
        compare(&print(&[1], false), include_str!("../../../tests/data/show-job-done.txt"));
    }

    #[test]
    fn a_running_job_prints_its_cores_with_details() {
        let recorded = include_str!("../../../tests/data/show-job-running.txt");
        let recorded: Vec<&str> = recorded.lines().filter(|l| !l.trim().starts_with("SLUID=")).collect();
        recorded::assert_same(print(&[2], true).lines(), recorded);
    }

    #[test]
    fn waiting_jobs_print_as_recorded() {
        // Slurm prints a range of nodes for a job that it has not looked at yet, and starts to count age from submission.
        let recorded = include_str!("../../../tests/data/show-job-held.txt").replace("NumNodes=1-1", "NumNodes=1");
        compare(&print(&[5, 4], false), &recorded);
    }

    #[test]
    fn arrays_print_what_waits_and_each_task_that_started() {
        let recorded = include_str!("../../../tests/data/show-job-array.txt").replacen(
            "AccrueTime=2026-11-30T09:59:44",
            "AccrueTime=Unknown",
            1,
        );
        compare(&print(&[3, 9, 8], false), &recorded);
    }

    #[test]
    fn one_line_records_are_pairs_without_blanks() {
        for job in fixture::jobs() {
            let mut out = String::new();
            write(&job, &fixture::clock(), Form { details: true, one_line: true }, &mut out);
            assert_eq!(out.lines().count(), 1);
            assert!(out.trim().split(' ').all(|pair| pair.contains('=')), "{out}");
        }
    }
}
