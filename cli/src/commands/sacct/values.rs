//! The value of each field on the row of a job, and of those that a job and its steps show alike.
//!
//! Sources: sacct(1); recorded outputs of Slurm 26.05 for what is empty, `Unknown`, `None` or `None assigned`.

use super::fields::Field;
use super::units::{Units, cpu_time};
use super::window;
use crate::view::clock::{self, Clock};
use crate::view::{asked, io_paths, job as facts, tres};
use sluice_model::{JobState, Reason};
use sluice_proto::v1;

/// What every row needs besides the record.
pub struct Context<'a> {
    pub clock: &'a Clock,
    pub cluster: &'a str,
    pub bitstr_len: usize,
    pub units: Units,
    /// Seconds of the window to which times are cut (`--truncate`).
    pub truncate: Option<(i64, i64)>,
    pub expand_patterns: bool,
    pub local_uid: bool,
}

/// When something ran, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub start: Option<i64>,
    /// None while it runs.
    pub end: Option<i64>,
    pub elapsed_ms: i64,
}

impl Span {
    fn truncated(self, bounds: Option<(i64, i64)>) -> Span {
        let (Some((from, to)), Some(start)) = (bounds, self.start) else { return self };
        let (from, to) = (from * 1000, to * 1000);
        let end = self.end.unwrap_or(to).min(to);
        let cut = Span { start: Some(start.max(from)), end: Some(end), elapsed_ms: 0 };
        if cut.start == self.start && cut.end == self.end {
            return self;
        }
        Span { elapsed_ms: (end - start.max(from)).max(0), ..cut }
    }
}

impl Context<'_> {
    pub fn job_span(&self, job: &v1::JobRecord) -> Span {
        let span = Span { start: window::started(job), end: window::ended(job), elapsed_ms: job.elapsed_ms };
        span.truncated(self.truncate)
    }

    pub fn step_span(&self, step: &v1::StepRecord) -> Span {
        let elapsed_ms = (step.end.unwrap_or(self.clock.now.0) - step.start).max(0);
        Span { start: Some(step.start), end: step.end, elapsed_ms }.truncated(self.truncate)
    }

    /// Amounts by name, memory in the asked unit.
    pub fn tres(&self, tres: &tres::Tres) -> String {
        let mut parts: Vec<String> = tres
            .entries()
            .into_iter()
            .map(|e| match (e.kind, e.name.as_str()) {
                ("mem", _) => format!("mem={}", self.units.memory_mb(e.count)),
                (kind, "") => format!("{kind}={}", e.count),
                (kind, name) => format!("{kind}/{name}={}", e.count),
            })
            .collect();
        parts.sort();
        parts.join(",")
    }

    pub fn time(&self, ms: Option<i64>, otherwise: &str) -> String {
        self.clock.time_or(ms, otherwise)
    }

    fn uid(&self, job: &v1::JobRecord) -> u32 {
        let local = || nix::unistd::User::from_name(&job.user).ok().flatten().map(|u| u.uid.as_raw());
        if self.local_uid { local().unwrap_or(job.uid) } else { job.uid }
    }

    pub fn job(&self, field: Field, job: &v1::JobRecord) -> String {
        let spec = job.spec.as_ref();
        let request = spec.and_then(|s| s.request.as_ref());
        let outcome = job.outcome.as_ref();
        let path = |pattern: fn(&v1::JobRecord) -> String, expanded: fn(&v1::JobRecord) -> String| {
            if self.expand_patterns { expanded(job) } else { pattern(job) }
        };
        match field {
            Field::Account => job.account.clone(),
            Field::AdminComment => job.admin_comment.clone().unwrap_or_default(),
            Field::AllocCpus => allocated_cpus(job).to_string(),
            Field::AllocNodes => if ran(job) { job.num_nodes } else { 0 }.to_string(),
            Field::AllocTres => tres::allocated(job).filter(|_| ran(job)).map(|t| self.tres(&t)).unwrap_or_default(),
            Field::Cluster => self.cluster.to_owned(),
            Field::Comment => bytes(job.comment.as_deref()),
            Field::Constraints => request.and_then(|r| r.constraint_text.clone()).unwrap_or_default(),
            Field::CpuTime => clock::elapsed_long(cpu_ms(self.job_span(job), allocated_cpus(job))),
            Field::CpuTimeRaw => (cpu_ms(self.job_span(job), allocated_cpus(job)) / 1000).to_string(),
            Field::DbIndex => job.id.to_string(),
            Field::DerivedExitCode => facts::exit(outcome.and_then(|o| o.derived_exit.as_ref())),
            Field::Elapsed => clock::elapsed_long(self.job_span(job).elapsed_ms),
            Field::ElapsedRaw => (self.job_span(job).elapsed_ms / 1000).to_string(),
            Field::Eligible => self.time(job.eligible, "Unknown"),
            Field::End => self.time(self.job_span(job).end, "Unknown"),
            Field::Exclusive => asked::exclusive(job).to_owned(),
            Field::ExitCode => facts::exit(outcome.and_then(|o| o.exit.as_ref())),
            Field::Flags => flags(job).join(","),
            Field::Gid => job.gid.to_string(),
            Field::Group => spec.map(|s| s.group.clone()).unwrap_or_default(),
            Field::JobId => facts::id(job, self.bitstr_len),
            Field::JobIdRaw => job.id.to_string(),
            Field::JobName => facts::text(&job.name).into_owned(),
            Field::Licenses => asked::licenses(job).unwrap_or_default(),
            Field::Nodes => job.num_nodes.to_string(),
            Field::NodeList if ran(job) => job.node_list.clone(),
            Field::NodeList => "None assigned".to_owned(),
            Field::OverSubscribe => asked::oversubscribe(job).to_owned(),
            Field::Partition => job.partition.clone(),
            Field::Planned => clock::elapsed_long(self.planned_ms(job)),
            Field::PlannedCpu => clock::elapsed_long(self.planned_cpu_ms(job)),
            Field::PlannedCpuRaw => (self.planned_cpu_ms(job) / 1000).to_string(),
            Field::Priority => job.priority.to_string(),
            Field::Qos => job.qos.clone(),
            // The one that a cluster without QOS of its own has.
            Field::QosRaw => "1".to_owned(),
            Field::QosRequested => spec.and_then(|s| s.qos.clone()).unwrap_or_default(),
            Field::Reason => reason(job).to_owned(),
            Field::ReqCpuFreq => "Unknown".to_owned(),
            Field::ReqCpus => tres::requested(job).cpus.to_string(),
            Field::ReqMem => self.units.memory_mb(job.requested_memory_mb),
            Field::ReqNodes => request.and_then(|r| r.nodes).map_or(1, |n| n.min).max(1).to_string(),
            Field::ReqTres => self.tres(&tres::requested(job)),
            Field::Reservation => spec.and_then(|s| s.reservation.clone()).unwrap_or_default(),
            Field::Restarts => job.attempt.to_string(),
            Field::SegmentSize => "0".to_owned(),
            Field::Start => self.start(job),
            Field::State => state(job),
            Field::StdErr => path(io_paths::stderr_pattern, io_paths::stderr),
            Field::StdIn => path(io_paths::stdin_pattern, io_paths::stdin),
            Field::StdOut => path(io_paths::stdout_pattern, io_paths::stdout),
            Field::Submit => self.time(Some(job.submit), "Unknown"),
            Field::SubmitLine => bytes(spec.map(|s| s.submit_line.as_ref())),
            Field::Suspended => clock::elapsed_long(self.suspended_ms(job)),
            Field::SystemComment => job.system_comment.clone().unwrap_or_default(),
            Field::SystemCpu => cpu_time(usage(job).system_cpu_us),
            Field::TimeLimit => clock::limit_long(job.time_limit.as_ref(), ""),
            Field::TimeLimitRaw => match clock::limit(job.time_limit.as_ref()) {
                None => String::new(),
                Some(sluice_model::TimeLimit::Unlimited) => "UNLIMITED".to_owned(),
                Some(sluice_model::TimeLimit::Minutes(minutes)) => minutes.to_string(),
            },
            Field::TotalCpu => {
                let usage = usage(job);
                cpu_time(usage.user_cpu_us.saturating_add(usage.system_cpu_us))
            }
            Field::Uid => self.uid(job).to_string(),
            Field::User => job.user.clone(),
            Field::UserCpu => cpu_time(usage(job).user_cpu_us),
            Field::WcKey => spec.and_then(|s| s.wckey.clone()).unwrap_or_default(),
            Field::WcKeyId => "0".to_owned(),
            Field::WorkDir => bytes(spec.map(|s| s.work_dir.as_ref())),
            Field::AssocId => job.association.to_string(),
            Field::Fixed(text) => text.to_owned(),
            // What only steps have.
            Field::AveCpuFreq | Field::Layout | Field::Tasks => String::new(),
            Field::Used(..) | Field::TresIn(_) | Field::TresOut(_) => String::new(),
        }
    }

    fn start(&self, job: &v1::JobRecord) -> String {
        let never = if window::ended(job).is_some() { "None" } else { "Unknown" };
        self.time(self.job_span(job).start, never)
    }

    /// From eligible to started, to the end of what never started, or to now.
    pub fn planned_ms(&self, job: &v1::JobRecord) -> i64 {
        let until = window::started(job).or(window::ended(job)).unwrap_or(self.clock.now.0);
        job.eligible.map_or(0, |eligible| until.saturating_sub(eligible).max(0))
    }

    fn planned_cpu_ms(&self, job: &v1::JobRecord) -> i64 {
        let cpus = i64::try_from(tres::requested(job).cpus).unwrap_or(i64::MAX);
        self.planned_ms(job).saturating_mul(cpus)
    }

    pub fn suspended_ms(&self, job: &v1::JobRecord) -> i64 {
        let now = job.suspended_since.map_or(0, |since| self.clock.now.0.saturating_sub(since).max(0));
        job.suspended_ms.saturating_add(now)
    }
}

/// Has or had an allocation.
pub fn ran(job: &v1::JobRecord) -> bool {
    window::started(job).is_some()
}

/// 0 for what waits or never ran.
pub fn allocated_cpus(job: &v1::JobRecord) -> u32 {
    if ran(job) { job.num_cpus } else { 0 }
}

pub fn cpu_ms(span: Span, cpus: u32) -> i64 {
    (span.elapsed_ms / 1000).saturating_mul(1000).saturating_mul(cpus.into())
}

fn bytes(bytes: Option<&[u8]>) -> String {
    bytes.map(|b| facts::text(b).into_owned()).unwrap_or_default()
}

/// `CANCELLED by 1001`; a job whose processes are still being ended shows how it ended.
pub fn state(job: &v1::JobRecord) -> String {
    let state = window::state(job);
    match job.outcome.as_ref().and_then(|o| o.by_uid) {
        Some(uid) if state == JobState::Cancelled.long() => format!("{state} by {uid}"),
        _ => state.to_owned(),
    }
}

/// Why it waits, other than for its turn, or that it could not be started. Slurm keeps no reason for what ran.
pub fn reason(job: &v1::JobRecord) -> &'static str {
    match Reason::from_number(job.reason) {
        Reason::JobLaunchFailure => Reason::JobLaunchFailure.as_str(),
        _ if !facts::is_waiting(job) => Reason::None.as_str(),
        Reason::Priority | Reason::Resources => Reason::None.as_str(),
        reason => reason.as_str(),
    }
}

/// Which scheduler started the job.
pub fn flags(job: &v1::JobRecord) -> Vec<&'static str> {
    match (ran(job), job.backfilled) {
        (false, _) => Vec::new(),
        (true, true) => vec!["SchedBackfill", "StartReceived"],
        (true, false) => vec!["SchedMain", "StartReceived"],
    }
}

/// Of all steps.
pub fn usage(job: &v1::JobRecord) -> v1::Usage {
    job.usage.as_deref().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture::{self, NOW, SUBMIT};

    fn context(clock: &Clock) -> Context<'_> {
        Context {
            clock,
            cluster: "c",
            bitstr_len: 64,
            units: Units::Auto,
            truncate: None,
            expand_patterns: false,
            local_uid: false,
        }
    }
    fn text(field: Field, job: &v1::JobRecord) -> String {
        context(&fixture::clock()).job(field, job)
    }

    #[test]
    fn what_waits_has_neither_times_nor_nodes() {
        let job = fixture::job(5);
        assert_eq!(text(Field::Start, &job), "Unknown", "the estimate is no start");
        assert_eq!(text(Field::End, &job), "Unknown");
        assert_eq!(text(Field::NodeList, &job), "None assigned");
        assert_eq!(text(Field::AllocTres, &job), "");
        assert_eq!(text(Field::AllocCpus, &job), "0");
        assert_eq!(text(Field::Reason, &job), "BeginTime");
        assert_eq!(text(Field::Eligible, &fixture::job(4)), "Unknown");
    }

    #[test]
    fn a_cancelled_job_names_who_did_it() {
        let mut job = fixture::job(6);
        job.state = "CANCELLED".into();
        job.end = Some(NOW);
        job.outcome =
            Some(Box::new(v1::Outcome { state: "CANCELLED".into(), by_uid: Some(1001), ..Default::default() }));
        assert_eq!(text(Field::State, &job), "CANCELLED by 1001");
        assert_eq!(text(Field::Start, &job), "None", "it never ran");
        assert_eq!(text(Field::Reason, &job), "None");
    }

    #[test]
    fn a_job_that_could_not_be_started_says_so_and_one_that_failed_by_itself_gives_no_reason() {
        let mut job = fixture::job(1);
        assert_eq!((text(Field::State, &job).as_str(), text(Field::Reason, &job).as_str()), ("FAILED", "None"));
        job.reason = Reason::JobLaunchFailure.number();
        assert_eq!(text(Field::Reason, &job), "JobLaunchFailure");
    }

    #[test]
    fn a_running_job_has_no_end_and_counts_its_cpus() {
        let job = fixture::job(2);
        assert_eq!(text(Field::End, &job), "Unknown");
        assert_eq!(text(Field::Elapsed, &job), "00:00:12");
        assert_eq!(text(Field::CpuTimeRaw, &job), "24");
        assert_eq!(text(Field::AllocTres, &job), "billing=2,cpu=2,mem=128M,node=2");
        assert_eq!(text(Field::StdOut, &job), "slurm-%j.out");
        assert_eq!(text(Field::JobIdRaw, &fixture::job(8)), "8");
        assert_eq!(text(Field::JobId, &fixture::job(8)), "3_0");
        assert_eq!(text(Field::JobId, &fixture::job(3)), "3_[2-5%2]");
    }

    #[test]
    fn truncated_times_stay_within_the_window() {
        let clock = fixture::clock();
        let within = SUBMIT / 1000;
        let context = Context { truncate: Some((within + 2, within + 7)), ..context(&clock) };
        let span = context.job_span(&fixture::job(2));
        assert_eq!(span, Span { start: Some(SUBMIT + 2000), end: Some(SUBMIT + 7000), elapsed_ms: 5000 });
        assert_eq!(context.job(Field::Start, &fixture::job(5)), "Unknown");
    }
}
