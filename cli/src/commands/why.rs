//! `sluice why JOBID` and `sluice why node NAME`: why a job waits or how it ended, why a node stands idle.
//!
//! Owns the layout of the answer, as text and as JSON; the facts and what was tried are the controller's.

use crate::client::{Client, Controller, Retry, block_on};
use crate::error::print_call_error;
use crate::getopt::{self, Operands, OptionSpec};
use crate::view::clock::Clock;
use crate::{errln, help, out};
use serde_json::{Value, json};
use sluice_model::{Reason, job_target, memory};
use sluice_proto::v1;
use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;

const NAME: &str = "sluice why";
const OPERANDS: &str = "JOBID[_INDEX] | node NAME";

static OPTIONS: &[OptionSpec] = &[
    OptionSpec::flag("help", "show this text").short('h'),
    OptionSpec::flag("json", "print the whole answer as JSON"),
];

/// What is asked about.
enum Question {
    Job { job: u32, index: Option<u32> },
    Node(String),
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    let parsed = match getopt::parse(OPTIONS, &words, Operands::Mixed) {
        Ok(parsed) => parsed,
        Err(e) => return help::bad_usage(NAME, &e),
    };
    if parsed.has("help") {
        let text = help::help_text(&format!("{NAME} [OPTIONS] {OPERANDS}"), OPTIONS);
        return out::print_or_complain(NAME, text.as_bytes(), ExitCode::SUCCESS);
    }
    let operands: Vec<String> = parsed.operands.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    match question(&operands) {
        Ok(question) => block_on(ask(question, parsed.has("json"))),
        Err(problem) => {
            errln!("{NAME}: error: {problem}");
            errln!("Usage: {NAME} [OPTIONS] {OPERANDS}");
            ExitCode::from(255)
        }
    }
}

fn question(operands: &[String]) -> Result<Question, String> {
    match operands {
        [word, name] if word == "node" => Ok(Question::Node(name.clone())),
        [word] if word == "node" => Err("which node?".to_owned()),
        [job] => {
            let target = job_target::parse(job).map_err(|e| e.to_string())?;
            if target.step.is_some() || target.tasks.as_ref().is_some_and(|t| t.len() != 1) {
                return Err(format!("invalid job id '{job}': one job or one task of an array, as 12 or 12_3"));
            }
            Ok(Question::Job { job: target.job.0, index: target.task() })
        }
        [] => Err("which job or node?".to_owned()),
        _ => Err("one job or one node at a time".to_owned()),
    }
}

async fn ask(question: Question, as_json: bool) -> ExitCode {
    let mut client = match Client::new() {
        Ok(client) => client,
        Err(e) => {
            print_call_error(NAME, "", &e);
            return ExitCode::from(1);
        }
    };
    let answer = match &question {
        Question::Job { job, index } => {
            let request = v1::WhyRequest { job: *job, array_index: *index };
            let reply = client.call(Retry::Read, async |mut c: Controller| c.why(request).await).await;
            reply.map(|why| {
                let clock = Clock::from_environment(why.now);
                if as_json { pretty(&job_json(&why, &clock)) } else { job_text(&why, &label(*job, *index), &clock) }
            })
        }
        Question::Node(name) => {
            let request = v1::WhyNodeRequest { node: name.clone() };
            let reply = client.call(Retry::Harmless, async |mut c: Controller| c.why_node(request.clone()).await).await;
            reply.map(|why| {
                let clock = Clock::from_environment(why.now);
                if as_json { pretty(&node_json(&why, &clock)) } else { node_text(&why, &clock) }
            })
        }
    };
    match answer {
        Ok(text) => out::print_or_complain(NAME, text.as_bytes(), ExitCode::SUCCESS),
        Err(e) => {
            print_call_error(NAME, "", &e);
            ExitCode::from(1)
        }
    }
}

fn label(job: u32, index: Option<u32>) -> String {
    index.map_or_else(|| job.to_string(), |i| format!("{job}_{i}"))
}

fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

fn told(sentence: &v1::WhySentence, clock: &Clock) -> String {
    match sentence.time {
        Some(time) => sentence.text.replace("{time}", &clock.time(time)),
        None => sentence.text.clone(),
    }
}

/// `(in 2:05:00)`
fn from_now(ms: i64, clock: &Clock) -> String {
    match u64::try_from(ms - clock.now.0) {
        Ok(left) if left >= 1000 => {
            format!("in {}", sluice_model::time::format_elapsed(std::time::Duration::from_millis(left)))
        }
        _ => "now".to_owned(),
    }
}

// Writing to a String cannot fail.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => {{ let _ = writeln!($text, $($arg)*); }};
}

fn job_text(why: &v1::WhyReply, name: &str, clock: &Clock) -> String {
    let mut text = String::new();
    let reason = Reason::from_number(why.reason);
    match reason {
        Reason::None => line!(text, "Job {name} is {}.", why.state),
        reason => line!(text, "Job {name} is {} ({reason}).", why.state),
    }
    for sentence in &why.because {
        line!(text, "  {}", told(sentence, clock));
    }
    if why.ahead_count > 0 {
        line!(text, "Ahead of it: {} job(s).", why.ahead_count);
        for other in &why.ahead {
            line!(text, "  {} of {} in {}, priority {}", other.job, other.user, other.partition, other.priority);
        }
        if why.ahead_count > why.ahead.len() as u64 {
            line!(text, "  …");
        }
    }
    if let Some(planned) = &why.planned {
        let nodes = sluice_model::hostlist::fold(&planned.nodes);
        let (start, left) = (clock.time(planned.start), from_now(planned.start, clock));
        line!(text, "Planned start: {start} ({left}) on {nodes}, partition {}.", planned.partition);
        line!(text, "  {}", planned.certainty);
    }
    if !why.sooner.is_empty() {
        line!(text, "It would start sooner with:");
        for change in &why.sooner {
            let (start, left) = (clock.time(change.start), from_now(change.start, clock));
            line!(text, "  {} ({}): {start} ({left})", change.change, change.options);
        }
    }
    text
}

fn node_text(why: &v1::WhyNodeReply, clock: &Clock) -> String {
    let mut text = String::new();
    line!(text, "Node {}", why.node);
    for sentence in &why.condition {
        line!(text, "  {}", told(sentence, clock));
    }
    let (free, all) = (memory::format_memory_mb(why.free_memory_mb), memory::format_memory_mb(why.memory_mb));
    let mut parts = vec![format!("{} of {} CPUs", why.free_cpus, why.cpus), format!("{free} of {all} of memory")];
    parts.extend(why.gres.iter().map(|g| format!("{} of {} {}", g.free, g.total, g.name)));
    line!(text, "Free: {}.", parts.join(", "));
    if !why.running.is_empty() {
        let jobs: Vec<String> = why.running.iter().map(ToString::to_string).collect();
        line!(text, "Jobs on it: {}.", jobs.join(", "));
    }
    if why.waiting == 0 {
        line!(text, "No job waits that could start.");
        return text;
    }
    line!(text, "{} job(s) wait; of these", why.waiting);
    for cause in &why.causes {
        let mut jobs: Vec<String> = cause.jobs.iter().map(ToString::to_string).collect();
        if cause.count > jobs.len() as u64 {
            jobs.push("…".to_owned());
        }
        line!(text, "  {} {} ({})", cause.count, cause.cause, jobs.join(", "));
    }
    text
}

fn sentences_json(all: &[v1::WhySentence], clock: &Clock) -> Vec<Value> {
    all.iter().map(|s| json!({"text": told(s, clock), "time": s.time.map(|t| t / 1000)})).collect()
}

/// Times are seconds since the epoch, memory is in MiB.
fn job_json(why: &v1::WhyReply, clock: &Clock) -> Value {
    let number = |n: &v1::WhyNumber| json!({"what": n.what, "needs": n.needs, "has": n.has, "limit": n.limit, "used_by": n.used_by});
    let ahead =
        |a: &v1::WhyAhead| json!({"job": a.job, "user": a.user, "partition": a.partition, "priority": a.priority});
    let planned = |p: &v1::WhyPlanned| {
        json!({
            "start": p.start / 1000, "partition": p.partition, "nodes": p.nodes, "certainty": p.certainty,
        })
    };
    json!({
        "job": why.job,
        "state": why.state,
        "reason": Reason::from_number(why.reason).as_str(),
        "because": sentences_json(&why.because, clock),
        "numbers": why.numbers.iter().map(number).collect::<Vec<_>>(),
        "ahead_count": why.ahead_count,
        "ahead": why.ahead.iter().map(ahead).collect::<Vec<_>>(),
        "planned": why.planned.as_ref().map(planned),
        "sooner": why.sooner.iter().map(|s| {
            json!({"change": s.change, "options": s.options, "start": s.start / 1000})
        }).collect::<Vec<_>>(),
        "now": why.now / 1000,
    })
}

fn node_json(why: &v1::WhyNodeReply, clock: &Clock) -> Value {
    json!({
        "node": why.node,
        "condition": sentences_json(&why.condition, clock),
        "cpus": {"free": why.free_cpus, "total": why.cpus},
        "memory_mb": {"free": why.free_memory_mb, "total": why.memory_mb},
        "gres": why.gres.iter().map(|g| json!({"name": g.name, "free": g.free, "total": g.total})).collect::<Vec<_>>(),
        "running": why.running,
        "waiting": why.waiting,
        "causes": why.causes.iter().map(|c| {
            json!({"cause": c.cause, "count": c.count, "jobs": c.jobs})
        }).collect::<Vec<_>>(),
        "now": why.now / 1000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::clock::TimeStyle;

    fn clock() -> Clock {
        Clock { now: sluice_model::Time(0), zone: jiff::tz::TimeZone::UTC, style: TimeStyle::Standard }
    }

    fn words(list: &[&str]) -> Result<Question, String> {
        question(&list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn one_job_one_task_or_one_node_is_asked_about_and_nothing_else() {
        assert!(matches!(words(&["12"]), Ok(Question::Job { job: 12, index: None })));
        assert!(matches!(words(&["12_3"]), Ok(Question::Job { job: 12, index: Some(3) })));
        assert!(matches!(words(&["node", "n1"]), Ok(Question::Node(n)) if n == "n1"));
        for bad in [&["12_[1-3]"][..], &["12.0"], &[], &["node"], &["1", "2"], &["x"]] {
            assert!(words(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_text_says_reason_numbers_plan_and_what_would_help() {
        let why = v1::WhyReply {
            job: 7,
            state: "PENDING".into(),
            reason: Reason::Resources.number(),
            because: vec![v1::WhySentence { text: "Kept until {time}.".into(), time: Some(60_000) }],
            ahead_count: 2,
            ahead: vec![v1::WhyAhead { job: 5, user: "ann".into(), partition: "main".into(), priority: 9 }],
            planned: Some(v1::WhyPlanned {
                start: 3_600_000,
                partition: "main".into(),
                nodes: vec!["n1".into(), "n2".into()],
                certainty: "Sure.".into(),
            }),
            sooner: vec![v1::WhySooner { change: "half".into(), options: "--mem=1G".into(), start: 0 }],
            ..v1::WhyReply::default()
        };
        let expected = "Job 7 is PENDING (Resources).\n  Kept until 1970-01-01T00:01:00.\nAhead of it: 2 job(s).\n  \
                        5 of ann in main, priority 9\n  …\n\
                        Planned start: 1970-01-01T01:00:00 (in 1:00:00) on n[1-2], partition main.\n  Sure.\n\
                        It would start sooner with:\n  half (--mem=1G): 1970-01-01T00:00:00 (now)\n";
        assert_eq!(job_text(&why, "7", &clock()), expected);
        assert_eq!(job_json(&why, &clock())["planned"]["start"], 3600);
    }
}
