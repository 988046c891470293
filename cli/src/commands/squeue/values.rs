//! The value of each job field, appended to the line being built.
//!
//! Promises that the default formats allocate nothing per value. Texts for what is absent are Slurm's (`N/A`, `(null)`,
//! `n/a`), which differ from field to field.

use super::fields::Field;
use crate::view::clock::{self, Clock};
use crate::view::{asked, io_paths, job as facts, tres};
use sluice_proto::v1::{self, GresScope};
use std::io::Write as _;

/// What every row needs besides the record.
pub struct Context<'a> {
    pub clock: &'a Clock,
    pub cluster: &'a str,
    pub bitstr_len: usize,
}

impl Context<'_> {
    pub fn write(&self, field: Field, job: &v1::JobRecord, out: &mut Vec<u8>) {
        if !self.write_brief(field, job, out) {
            out.extend_from_slice(self.detail_text(field, job).as_bytes());
        }
    }

    /// Fields of the brief record. False when the field is none of them.
    fn write_brief(&self, field: Field, job: &v1::JobRecord, out: &mut Vec<u8>) -> bool {
        let put = |out: &mut Vec<u8>, text: &str| out.extend_from_slice(text.as_bytes());
        // Writing to a Vec cannot fail.
        let number = |out: &mut Vec<u8>, n: u64| drop(write!(out, "{n}"));
        match field {
            Field::JobArrayId => facts::write_id(job, self.bitstr_len, out),
            Field::Partition => put(out, &job.partition),
            Field::Name => put(out, &facts::text(&job.name)),
            Field::UserName => put(out, &job.user),
            Field::StateShort => put(out, facts::state_short(job)),
            Field::State => put(out, &job.state),
            Field::TimeUsed if job.elapsed_ms < 1000 => put(out, "0:00"),
            Field::TimeUsed => put(out, &clock::elapsed(job.elapsed_ms)),
            Field::NumNodes => number(out, job.num_nodes.into()),
            Field::NumCpus => number(out, job.num_cpus.into()),
            Field::NumTasks => number(out, job.num_tasks.into()),
            Field::ReasonList if facts::shows_reason(facts::state(job)) => {
                out.push(b'(');
                put(out, facts::reason(job));
                out.push(b')');
            }
            Field::ReasonList | Field::NodeList => put(out, &job.node_list),
            Field::Reason => put(out, facts::reason(job)),
            Field::TimeLimit => put(out, &clock::limit_short(job.time_limit.as_ref(), "NOT_SET")),
            Field::TimeLeft => put(out, &time_left(job)),
            Field::Account => put(out, or_null(&job.account)),
            Field::Qos => put(out, or_null(&job.qos)),
            Field::JobId => number(out, job.id.into()),
            Field::ArrayJobId => number(out, job.array_job.unwrap_or(job.id).into()),
            Field::ArrayTaskId => {
                put(out, &facts::array_task(job, self.bitstr_len).unwrap_or_else(|| "N/A".to_owned()));
            }
            Field::UserId => number(out, job.uid.into()),
            Field::GroupId => number(out, job.gid.into()),
            Field::Priority => number(out, job.priority.into()),
            Field::PriorityFraction => {
                drop(write!(out, "{:.14}", f64::from(job.priority) / f64::from(u32::MAX)));
            }
            Field::SubmitTime => put(out, &self.clock.time(job.submit)),
            Field::StartTime => put(out, &self.clock.time_or(job.start, "N/A")),
            Field::EndTime => put(out, &self.clock.time_or(facts::end(job), "N/A")),
            Field::SchedNodes => put(out, or_null(&job.sched_nodes)),
            Field::Fixed(text) => put(out, text),
            _ => return false,
        }
        true
    }

    fn detail_text(&self, field: Field, job: &v1::JobRecord) -> String {
        let spec = job.spec.as_ref();
        let request = spec.and_then(|s| s.request.as_ref());
        let time = |ms: Option<i64>| self.clock.time_or(ms, "N/A");
        let flag = |on: bool| if on { "1".to_owned() } else { "0".to_owned() };
        let per = |scope| tres::per_scope(job, scope).unwrap_or_else(|| "N/A".to_owned());
        match field {
            Field::AccrueTime | Field::EligibleTime => time(job.eligible),
            Field::AdminComment => or_null(job.admin_comment.as_deref().unwrap_or_default()).to_owned(),
            Field::AllocNodes => spec.map(|s| s.submit_host.clone()).unwrap_or_default(),
            Field::AllocSid => spec.map_or(0, |s| s.submit_sid).to_string(),
            Field::AssocId => job.association.to_string(),
            Field::BatchFlag => flag(spec.is_some_and(|s| s.batch)),
            Field::BatchHost if job.batch_host.is_empty() => "n/a".to_owned(),
            Field::BatchHost => job.batch_host.clone(),
            Field::Cluster => self.cluster.to_owned(),
            Field::Command => bytes_or_null(spec.and_then(|s| s.command.as_deref())),
            Field::Comment => bytes_or_null(job.comment.as_deref()),
            Field::Contiguous => flag(request.is_some_and(|r| r.contiguous)),
            Field::CpusPerTask => request.and_then(|r| r.cpus_per_task).unwrap_or(1).to_string(),
            Field::Deadline => time(spec.and_then(|s| s.deadline)),
            Field::Dependency => asked::dependency(job).unwrap_or_else(|| "(null)".to_owned()),
            Field::DerivedExit => raw_exit(job.outcome.as_ref().and_then(|o| o.derived_exit.as_ref())),
            Field::ExitCode => raw_exit(job.outcome.as_ref().and_then(|o| o.exit.as_ref())),
            Field::ExcNodes => nodes(request.map(|r| r.exclude.as_slice())),
            Field::ReqNodes => nodes(request.map(|r| r.node_list.as_slice())),
            Field::Exclusive => asked::exclusive(job).to_owned(),
            Field::Features => request.and_then(|r| r.constraint_text.clone()).unwrap_or_else(|| "(null)".to_owned()),
            Field::Sockets => asked::or_any(request.and_then(|r| r.sockets_per_node)),
            Field::Cores => asked::or_any(request.and_then(|r| r.cores_per_socket)),
            Field::Threads => asked::or_any(request.and_then(|r| r.threads_per_core)),
            Field::ReqSwitch => request.and_then(|r| r.switches.as_ref()).map_or(0, |s| s.count).to_string(),
            Field::SegmentSize => request.and_then(|r| r.segment).unwrap_or(0).to_string(),
            Field::TasksPerCore => {
                request.and_then(|r| r.ntasks_per_core).map_or_else(|| "N/A".into(), |n| n.to_string())
            }
            Field::TasksPerSocket => {
                request.and_then(|r| r.ntasks_per_socket).map_or_else(|| "N/A".into(), |n| n.to_string())
            }
            Field::WaitForSwitch => {
                let secs = request.and_then(|r| r.switches.as_ref()?.max_wait_secs).unwrap_or(0);
                sluice_model::time::format_elapsed(std::time::Duration::from_secs(u64::from(secs)))
            }
            Field::Prefer => {
                request.and_then(|r| asked::constraint(r.prefer.as_ref())).unwrap_or_else(|| "(null)".to_owned())
            }
            Field::GroupName => spec.map(|s| s.group.clone()).unwrap_or_default(),
            Field::LastSchedEval => time(job.last_sched_eval),
            Field::Licenses => asked::licenses(job).unwrap_or_else(|| "(null)".to_owned()),
            Field::LicensesAlloc => asked::licenses_held(job).unwrap_or_else(|| "(null)".to_owned()),
            Field::MaxCpus => job.num_cpus.to_string(),
            Field::MaxNodes => request.and_then(|r| r.nodes?.max).unwrap_or(job.num_nodes).to_string(),
            Field::MinCpus => asked::min_cpus_per_node(job).to_string(),
            Field::MinMemory => tres::memory_text(job),
            Field::MinTime => clock::limit_short(spec.and_then(|s| s.time_min.as_ref()), "0:00"),
            Field::MinTmpDisk => request.map_or(0, |r| r.tmp_disk_mb).to_string(),
            Field::Nice => spec.map_or(0, |s| s.nice).to_string(),
            Field::OverSubscribe => asked::oversubscribe(job).to_owned(),
            Field::PendingTime => {
                let until = if facts::is_waiting(job) { None } else { job.start };
                (until.unwrap_or(self.clock.now.0).saturating_sub(job.submit) / 1000).max(0).to_string()
            }
            Field::Requeue => flag(job.requeue),
            Field::Reservation => or_null(spec.and_then(|s| s.reservation.as_deref()).unwrap_or_default()).to_owned(),
            Field::RestartCount => job.attempt.to_string(),
            Field::StdErr => io_paths::stderr(job),
            Field::StdIn => io_paths::stdin(job),
            Field::StdOut => io_paths::stdout(job),
            Field::PreemptTime => self.clock.time_or(job.preempted_at, "N/A"),
            Field::SystemComment => or_null(job.system_comment.as_deref().unwrap_or_default()).to_owned(),
            Field::TasksPerNode => request.and_then(|r| r.ntasks_per_node).unwrap_or(0).to_string(),
            Field::TresAlloc => tres::allocated(job).unwrap_or_else(|| tres::requested(job)).by_number(),
            Field::TresPerJob => per(GresScope::Job),
            Field::TresPerNode => per(GresScope::Node),
            Field::TresPerSocket => per(GresScope::Socket),
            Field::TresPerTask => per(GresScope::Task),
            Field::WcKey => asked::wckey(job).to_owned(),
            Field::WorkDir => spec.map(|s| facts::text(&s.work_dir).into_owned()).unwrap_or_default(),
            // The rest are brief fields.
            _ => String::new(),
        }
    }
}

fn time_left(job: &v1::JobRecord) -> String {
    match (clock::limit(job.time_limit.as_ref()), facts::time_left(job)) {
        (None, _) => "NOT_SET".to_owned(),
        (Some(_), None) => "UNLIMITED".to_owned(),
        (Some(_), Some(ms)) => clock::elapsed(ms),
    }
}

fn or_null(text: &str) -> &str {
    if text.is_empty() { "(null)" } else { text }
}

fn bytes_or_null(bytes: Option<&[u8]>) -> String {
    bytes.filter(|b| !b.is_empty()).map_or_else(|| "(null)".to_owned(), |b| facts::text(b).into_owned())
}

fn nodes(names: Option<&[String]>) -> String {
    sluice_model::hostlist::fold(names.unwrap_or_default())
}

/// The status word of wait(2).
fn raw_exit(status: Option<&v1::ExitStatus>) -> String {
    status.map_or(0, |s| (s.code << 8) | s.signal).to_string()
}
