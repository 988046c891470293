//! `scontrol update JobId=…`
//!
//! Source: scontrol(1), "SPECIFICATIONS FOR UPDATE COMMAND, JOBS".

use super::control::{say, wire};
use super::session::{Done, Session};
use super::update::{Change, Wrong, key, list, number};
use crate::client::{Controller, Retry};
use jiff::tz::TimeZone;
use sluice_model::job_target::{self, JobTarget};
use sluice_model::request::{GresScope, MemoryRequest};
use sluice_model::{Time, TimeLimit};
use sluice_proto::v1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Account,
    AdminComment,
    ArrayTaskThrottle,
    Begin,
    Comment,
    CpusPerTask,
    Deadline,
    Dependency,
    Exclude,
    Features,
    Gres,
    JobId,
    Licenses,
    MailType,
    MailUser,
    MemoryPerCpu,
    MemoryPerNode,
    Name,
    Nice,
    NodeList,
    Nodes,
    Partition,
    Priority,
    Qos,
    Requeue,
    Reservation,
    SiteFactor,
    StdErr,
    StdIn,
    StdOut,
    Tasks,
    TimeLimit,
    TimeMin,
    Workload,
    WorkDir,
}

const KEYS: &[(&str, Key)] = &[
    ("JobId", Key::JobId),
    ("Job", Key::JobId),
    ("Account", Key::Account),
    ("AdminComment", Key::AdminComment),
    ("ArrayTaskThrottle", Key::ArrayTaskThrottle),
    ("Comment", Key::Comment),
    ("CPUsPerTask", Key::CpusPerTask),
    ("Deadline", Key::Deadline),
    ("Dependency", Key::Dependency),
    ("EligibleTime", Key::Begin),
    ("StartTime", Key::Begin),
    ("ExcNodeList", Key::Exclude),
    ("Features", Key::Features),
    ("Gres", Key::Gres),
    ("TresPerNode", Key::Gres),
    ("JobName", Key::Name),
    ("Name", Key::Name),
    ("Licenses", Key::Licenses),
    ("MailType", Key::MailType),
    ("MailUser", Key::MailUser),
    ("MinMemoryCPU", Key::MemoryPerCpu),
    ("MinMemoryNode", Key::MemoryPerNode),
    ("Nice", Key::Nice),
    ("ReqNodeList", Key::NodeList),
    ("NodeList", Key::NodeList),
    ("NumNodes", Key::Nodes),
    ("ReqNodes", Key::Nodes),
    ("NumTasks", Key::Tasks),
    ("Partition", Key::Partition),
    ("Priority", Key::Priority),
    ("QOS", Key::Qos),
    ("Requeue", Key::Requeue),
    ("ReservationName", Key::Reservation),
    ("SiteFactor", Key::SiteFactor),
    ("StdErr", Key::StdErr),
    ("StdIn", Key::StdIn),
    ("StdOut", Key::StdOut),
    ("TimeLimit", Key::TimeLimit),
    ("TimeMin", Key::TimeMin),
    ("WCKey", Key::Workload),
    ("WorkDir", Key::WorkDir),
];

/// A time limit that is added to or taken from the one the job has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shift {
    More(u32),
    Less(u32),
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Update {
    targets: Vec<JobTarget>,
    action: v1::UpdateJobAction,
    shift: Option<Shift>,
}

pub async fn perform(session: &mut Session, changes: &[Change]) -> Done {
    let now = jiff::Timestamp::now().as_millisecond();
    let update = match read(changes, Time(now), &TimeZone::system()) {
        Ok(update) => update,
        Err(wrong) => {
            wrong.say();
            return false;
        }
    };
    let mut done = true;
    for target in &update.targets {
        done &= send(session, &update, target).await;
    }
    done
}

fn read(changes: &[Change], now: Time, zone: &TimeZone) -> Result<Update, Wrong> {
    let mut update = Update::default();
    for change in changes {
        apply(change, now, zone, &mut update)?;
    }
    if update.targets.is_empty() {
        return Err(Wrong::Text("JobId is needed to update jobs".to_owned()));
    }
    Ok(update)
}

fn apply(change: &Change, now: Time, zone: &TimeZone, update: &mut Update) -> Result<(), Wrong> {
    let unsupported = || Wrong::Unsupported(change.word.clone());
    let found = key(KEYS, &change.key).ok_or_else(unsupported)?;
    // Lists that grow and shrink need the old list; only whole ones are written.
    if change.sign.is_some() || (!change.valued && found != Key::Nice) {
        return Err(unsupported());
    }
    let value = change.value.as_str();
    let action = &mut update.action;
    let wrong = |what: &str, e: sluice_model::error::ParseError| Wrong::value(what, &e.value, &e.allowed);
    let text = || Some(value.to_owned());
    let bytes = || Some(crate::text::wire(value));
    match found {
        Key::JobId => {
            update.targets = job_target::parse_list(value)
                .ok()
                .filter(|t| t.iter().all(|t| t.step.is_none()))
                .ok_or_else(|| Wrong::Text(format!("Invalid JobId value: {value}")))?;
        }
        Key::Account => action.account = text(),
        Key::AdminComment => action.admin_comment = text(),
        Key::ArrayTaskThrottle => action.array_throttle = Some(number("ArrayTaskThrottle", value)?),
        Key::Begin => action.begin = Some(when("StartTime", value, now, zone)?),
        Key::Deadline => action.deadline = Some(when("Deadline", value, now, zone)?),
        Key::Comment => action.comment = bytes(),
        Key::CpusPerTask => action.cpus_per_task = Some(number("CPUsPerTask", value)?),
        Key::Dependency if value.is_empty() => action.clear_dependency = Some(true),
        Key::Dependency => {
            let parsed = sluice_model::dependency::parse(value).map_err(|e| wrong("Dependency", e))?;
            action.dependency = Some((&parsed).into());
        }
        Key::Exclude => action.exclude = Some(hosts("ExcNodeList", value)?),
        Key::NodeList => action.node_list = Some(hosts("NodeList", value)?),
        Key::Features => {
            let parsed = sluice_model::constraint::parse(value).map_err(|e| wrong("Features", e))?;
            action.constraint = Some((&parsed).into());
            action.constraint_text = text();
        }
        Key::Gres => {
            let items = sluice_model::gres::parse_gres(value, GresScope::Node).map_err(|e| wrong("Gres", e))?;
            action.gres = Some(v1::update_job_action::GresList { items: items.iter().map(Into::into).collect() });
        }
        Key::Licenses => {
            let items = sluice_model::licenses::parse(value).map_err(|e| wrong("Licenses", e))?;
            action.licenses = Some(v1::update_job_action::LicenseMap { items: items.into_iter().collect() });
        }
        Key::MailType => action.mail_type = Some(sluice_model::mail::parse(value).map_err(|e| wrong("MailType", e))?),
        Key::MailUser => action.mail_user = text(),
        Key::MemoryPerCpu => action.memory = Some((&MemoryRequest::PerCpu(memory("MinMemoryCPU", value)?)).into()),
        Key::MemoryPerNode => action.memory = Some((&MemoryRequest::PerNode(memory("MinMemoryNode", value)?)).into()),
        Key::Name => action.name = bytes(),
        // Without a value Slurm adds 100.
        Key::Nice if value.is_empty() => action.nice = Some(100),
        Key::Nice => action.nice = Some(number("Nice", value)?),
        Key::Nodes => {
            let count = sluice_model::node_count::parse(value).map_err(|e| wrong("NumNodes", e))?;
            action.nodes = Some((&count).into());
        }
        Key::Tasks => action.ntasks = Some(number("NumTasks", value)?),
        Key::Partition => action.partitions = Some(list(value)),
        Key::Priority => action.priority = Some(number("Priority", value)?),
        Key::Qos => action.qos = text(),
        Key::Requeue => action.requeue = Some(number::<u32>("Requeue", value)? != 0),
        Key::Reservation => action.reservation = text(),
        Key::SiteFactor => action.site_factor = Some(number("SiteFactor", value)?),
        Key::StdErr => action.stderr = bytes(),
        Key::StdIn => action.stdin = bytes(),
        Key::StdOut => action.stdout = bytes(),
        Key::TimeLimit => match value.strip_prefix(['+', '-']) {
            Some(by) => {
                let TimeLimit::Minutes(by) = limit("TimeLimit", by)? else {
                    return Err(Wrong::Text("Invalid TimeLimit value".to_owned()));
                };
                update.shift = Some(if value.starts_with('+') { Shift::More(by) } else { Shift::Less(by) });
            }
            None => action.time_limit = Some((&limit("TimeLimit", value)?).into()),
        },
        Key::TimeMin => action.time_min = Some((&limit("TimeMin", value)?).into()),
        Key::Workload => action.wckey = text(),
        Key::WorkDir => action.work_dir = bytes(),
    }
    Ok(())
}

fn limit(what: &str, value: &str) -> Result<TimeLimit, Wrong> {
    sluice_model::time::parse_time_limit(value).map_err(|_| Wrong::Text(format!("Invalid {what} value")))
}

fn when(what: &str, value: &str, now: Time, zone: &TimeZone) -> Result<i64, Wrong> {
    sluice_model::time::parse_when(value, now, zone).map(|t| t.0).map_err(|e| Wrong::value(what, &e.value, &e.allowed))
}

fn memory(what: &str, value: &str) -> Result<u64, Wrong> {
    sluice_model::memory::parse_memory_mb(value).map_err(|e| Wrong::value(what, &e.value, &e.allowed))
}

fn hosts(what: &str, value: &str) -> Result<v1::StringList, Wrong> {
    let items = sluice_model::hostlist::expand(value).map_err(|e| Wrong::value(what, &e.value, &e.allowed))?;
    Ok(v1::StringList { items })
}

async fn send(session: &mut Session, update: &Update, target: &JobTarget) -> Done {
    let Some(client) = session.client() else { return false };
    let mut action = update.action.clone();
    action.target = Some(wire(target));
    if let Some(shift) = update.shift {
        let request =
            v1::ListJobsRequest { jobs: vec![wire(target)], states: vec!["ALL".to_owned()], ..Default::default() };
        let found = client.list_jobs(request).await;
        let job = match found.map(|answer| answer.jobs.into_iter().next()) {
            Ok(Some(job)) => job,
            Ok(None) => {
                crate::errln!("Invalid job id specified for job {target}");
                return false;
            }
            Err(error) => {
                say(&error, &target.to_string());
                return false;
            }
        };
        match shifted(crate::view::clock::limit(job.time_limit.as_ref()), shift) {
            Some(limit) => action.time_limit = Some((&limit).into()),
            None => {
                crate::errln!("scontrol: error: Invalid TimeLimit value");
                return false;
            }
        }
    }
    let request = v1::ControlRequest { action: Some(v1::control_request::Action::UpdateJob(action)) };
    match client.call(Retry::Harmless, async |mut c: Controller| c.control(request.clone()).await).await {
        Ok(_) => true,
        Err(error) => {
            say(&error, &target.to_string());
            false
        }
    }
}

/// None when nothing is left, or nothing can be added to no limit.
fn shifted(limit: Option<TimeLimit>, shift: Shift) -> Option<TimeLimit> {
    let TimeLimit::Minutes(now) = limit? else { return None };
    let minutes = match shift {
        Shift::More(by) => now.checked_add(by)?,
        Shift::Less(by) => now.checked_sub(by).filter(|m| *m > 0)?,
    };
    Some(TimeLimit::Minutes(minutes))
}

#[cfg(test)]
mod tests {
    use super::super::update::parse;
    use super::*;

    fn update(text: &str) -> Result<Update, Wrong> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        read(&parse(&words), Time(1_796_032_796_000), &TimeZone::UTC)
    }

    #[test]
    fn keys_become_fields_of_one_request() {
        let update = update("jobid=4,5_[1-2] timel=30 Name=new nice priority=7 part=a,b requeue=0 gres=gpu:2").unwrap();
        assert_eq!(update.targets.len(), 2);
        let action = update.action;
        assert_eq!(action.time_limit, Some((&TimeLimit::Minutes(30)).into()));
        assert_eq!(action.name.as_deref(), Some(&b"new"[..]));
        assert_eq!((action.nice, action.priority, action.requeue), (Some(100), Some(7), Some(false)));
        assert_eq!(action.partitions.unwrap().items, ["a", "b"]);
        assert_eq!(action.gres.unwrap().items[0].count, 2);
    }

    #[test]
    fn an_unknown_key_stops_the_update() {
        assert_eq!(update("jobid=2 foo=1"), Err(Wrong::Unsupported("foo=1".to_owned())));
        assert_eq!(update("jobid=2 NumCPUs=4"), Err(Wrong::Unsupported("NumCPUs=4".to_owned())));
        assert_eq!(update("jobid=2 timelimit"), Err(Wrong::Unsupported("timelimit".to_owned())));
    }

    #[test]
    fn bad_values_name_the_key_and_the_value() {
        assert_eq!(update("job=4 priority=foo"), Err(Wrong::Text("Invalid Priority value: foo".to_owned())));
        assert_eq!(update("job=4 timelimit=foo"), Err(Wrong::Text("Invalid TimeLimit value".to_owned())));
        assert!(matches!(update("job=abc name=x"), Err(Wrong::Text(t)) if t.contains("abc")));
    }

    #[test]
    fn time_limits_may_be_relative() {
        assert_eq!(update("job=4 timelimit=+30").unwrap().shift, Some(Shift::More(30)));
        assert_eq!(shifted(Some(TimeLimit::Minutes(10)), Shift::More(30)), Some(TimeLimit::Minutes(40)));
        assert_eq!(shifted(Some(TimeLimit::Minutes(10)), Shift::Less(10)), None);
        assert_eq!(shifted(Some(TimeLimit::Unlimited), Shift::More(1)), None);
    }

    #[test]
    fn an_empty_dependency_clears_it() {
        assert_eq!(update("job=4 dependency=").unwrap().action.clear_dependency, Some(true));
        assert!(update("job=4 dependency=afterok:1").unwrap().action.dependency.is_some());
    }
}
