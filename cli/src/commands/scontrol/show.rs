//! `scontrol show ENTITY [ID]`: asks for the records and prints them.
//!
//! Source: scontrol(1), `show`. `ENTITY=ID` is the same as `ENTITY ID`.

use super::session::{Done, Session, is};
use super::show_job::{self, Form};
use super::show_others;
use super::show_topology;
use crate::client::{Client, Controller, Retry};
use crate::error::CallError;
use crate::render::json;
use crate::view::clock::Clock;
use crate::view::job as facts;
use crate::view::jobs_json::{self, Surroundings};
use crate::view::{nodes_json, partitions_json};
use crate::viewing;
use sluice_model::job_target::{self, JobTarget};
use sluice_model::{JobId, StepId};
use sluice_proto::v1;

/// Entities of Slurm's that are refused, and why.
const REFUSED: &[(&str, &str)] = &[
    ("aliases", "nodes have one name"),
    ("assoc_mgr", "there are no associations yet"),
    ("bbstat", "there are no burst buffers"),
    ("burstbuffer", "there are no burst buffers"),
    ("daemons", "see the systemd units of each host"),
    ("dwstat", "there are no burst buffers"),
    ("federation", "clusters are not joined into federations"),
    ("frontend", "there are no front ends"),
    ("slurmd", "use show node"),
    ("topoconf", "see [topology] of the configuration file; show topology prints it in Slurm's form"),
];

/// Entities that are printed as text alone, and how short they may be cut.
const TEXT_ONLY: &[(&str, usize)] = &[
    ("config", 1),
    ("hostlist", 5),
    ("hostlistsorted", 9),
    ("hostnames", 5),
    ("licenses", 2),
    ("stepid", 5),
    ("topology", 5),
    ("steps", 2),
];

pub async fn show(session: &mut Session, words: &[String]) -> Done {
    let Some((first, rest)) = words.split_first() else {
        crate::errln!("too few arguments for keyword:show");
        return false;
    };
    let (entity, attached) = match first.split_once('=') {
        Some((entity, id)) => (entity, Some(id.to_owned())),
        None => (first.as_str(), None),
    };
    let mut ids: Vec<String> = attached.into_iter().chain(rest.iter().cloned()).collect();
    let text_only = TEXT_ONLY.iter().find(|(name, least)| is(entity, name, *least));
    if let Some((name, _)) = text_only.filter(|_| session.json.is_some()) {
        return session.no_json(&format!("show {name}"));
    }
    if let Some(done) = session.hosts(entity, &ids) {
        return done;
    }
    if ids.len() > 1 && !is(entity, "config", 1) {
        crate::errln!("too many arguments for keyword:show");
        return false;
    }
    let id = ids.pop().unwrap_or_default();
    let asked = if is(entity, "jobs", 1) || is(entity, "jobid", 4) {
        jobs(session, &id).await
    } else if is(entity, "nodes", 1) {
        nodes(session, &id).await
    } else if is(entity, "partitions", 1) || is(entity, "partitionname", 10) {
        partitions(session, &id).await
    } else if is(entity, "steps", 2) || is(entity, "stepid", 5) {
        steps(session, &id).await
    } else if is(entity, "config", 1) {
        config(session, &id).await
    } else if is(entity, "licenses", 2) {
        licenses(session, &id).await
    } else if is(entity, "topology", 5) {
        topology(session, &id).await
    } else if is(entity, "reservations", 1) {
        reservations(session, &id)
    } else {
        match REFUSED.iter().find(|(name, _)| is(entity, name, 3)) {
            Some((name, reason)) => crate::errln!("scontrol: error: show {name} is not supported: {reason}"),
            None => crate::errln!("invalid entity:{entity} for keyword:show "),
        }
        return false;
    };
    asked.unwrap_or_else(|problem| {
        problem.say();
        false
    })
}

/// Why nothing is shown.
enum Problem {
    /// Already said.
    Said,
    /// A call failed; `what` is Slurm's name for it.
    Call {
        what: &'static str,
        error: CallError,
    },
    Text(String),
}

impl Problem {
    fn say(&self) {
        match self {
            Problem::Said => {}
            Problem::Call { what, error } => {
                if let Some(detail) = error.detail() {
                    crate::errln!("scontrol: error: {detail}");
                }
                crate::errln!("{what} error: {}", error.reason());
            }
            Problem::Text(text) => crate::errln!("{text}"),
        }
    }
}

fn call(what: &'static str) -> impl FnOnce(CallError) -> Problem {
    move |error| Problem::Call { what, error }
}

fn target(text: &str, what: &str) -> Result<Option<JobTarget>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    job_target::parse(text).map(Some).map_err(|_| Problem::Text(format!("{what} error: Invalid job id specified")))
}

fn wire(target: &JobTarget) -> v1::JobTarget {
    let JobId(job) = target.job;
    v1::JobTarget { job, tasks: target.tasks.as_ref().map(v1::IndexSet::from) }
}

async fn load_nodes(client: &mut Client, what: &'static str) -> Result<v1::NodeList, Problem> {
    client
        .call(Retry::Read, async |mut c: Controller| c.list_nodes(v1::ListNodesRequest::default()).await)
        .await
        .map_err(call(what))
}

impl Session {
    /// The line of `--verbose` above the records.
    fn updated(&self, now: i64, records: usize, out: &mut String) {
        if self.verbose {
            let clock = Clock::from_environment(now);
            out.push_str(&format!("last_update_time={}, records={records}\n", clock.time(now)));
        }
    }

    fn print_json(&mut self, style: json::Style, key: &str, records: Vec<serde_json::Value>, now: i64) {
        let words = self.words.clone();
        let Some(client) = self.client.as_ref() else { return };
        let mut all = vec![(key, records.into())];
        if key == "jobs" {
            all.push(("last_backfill", json::number(0)));
        }
        all.push(("last_update", json::time(Some(now))));
        let text = viewing::json_answer("scontrol", &words, client, style, all);
        self.print(&text);
    }
}

async fn jobs(session: &mut Session, id: &str) -> Result<Done, Problem> {
    const WHAT: &str = "slurm_load_jobs";
    let wanted = target(id, WHAT)?;
    let (json_style, form) = (session.json, Form { details: session.details, one_line: session.one_line });
    let client = session.client().ok_or(Problem::Said)?;
    let cluster = client.config.cluster.clone();
    let request = v1::ListJobsRequest {
        jobs: wanted.iter().map(wire).collect(),
        states: vec!["ALL".to_owned()],
        detail: true,
        start_estimates: true,
        ..Default::default()
    };
    let mut answer = client.list_jobs(request).await.map_err(call(WHAT))?;
    if answer.jobs.is_empty() && wanted.is_some() {
        return Err(Problem::Text(match wanted.and_then(|t| t.tasks) {
            Some(_) if !answer.unknown_id => format!("Job {id} not found"),
            _ => format!("{WHAT} error: Invalid job id specified"),
        }));
    }
    if let Some(target) = &wanted {
        for job in &mut answer.jobs {
            if let Some(named) = facts::narrow(job, std::slice::from_ref(target)) {
                *job = named;
            }
        }
    }
    // As Slurm does: what waits of an array, then its tasks, the latest first.
    answer.jobs.sort_by_key(|j| {
        let (base, index) = facts::order(j);
        (base, j.array_pending.is_none(), std::cmp::Reverse(index))
    });
    if let Some(style) = json_style {
        let nodes = load_nodes(client, WHAT).await?;
        let around = Surroundings { cluster: &cluster, nodes: &nodes.nodes };
        let records = answer.jobs.iter().map(|j| jobs_json::job(j, &around)).collect();
        session.print_json(style, "jobs", records, answer.now);
        return Ok(true);
    }
    let clock = Clock::from_environment(answer.now);
    let mut out = String::new();
    session.updated(answer.now, answer.jobs.len(), &mut out);
    if answer.jobs.is_empty() && !session.quiet {
        out.push_str("No jobs in the system\n");
    }
    answer.jobs.iter().for_each(|job| show_job::write(job, &clock, form, &mut out));
    session.print(out.as_bytes());
    Ok(true)
}

async fn nodes(session: &mut Session, id: &str) -> Result<Done, Problem> {
    let one_line = session.one_line;
    let client = session.client().ok_or(Problem::Said)?;
    let mut answer = load_nodes(client, "slurm_load_node").await?;
    let mut complete = true;
    if !id.is_empty() {
        let names = sluice_model::hostlist::expand(id)
            .map_err(|e| Problem::Text(format!("scontrol: error: Invalid node list {id}: {}", e.allowed)))?;
        for name in names.iter().filter(|n| !answer.nodes.iter().any(|r| r.name == **n)) {
            crate::errln!("Node {name} not found");
            complete = false;
        }
        answer.nodes.retain(|n| names.contains(&n.name));
        if answer.nodes.is_empty() {
            return Ok(complete);
        }
    }
    if let Some(style) = session.json {
        let records = answer.nodes.iter().map(nodes_json::node).collect();
        session.print_json(style, "nodes", records, answer.now);
        return Ok(complete);
    }
    let clock = Clock::from_environment(answer.now);
    let mut out = String::new();
    session.updated(answer.now, answer.nodes.len(), &mut out);
    answer.nodes.iter().for_each(|node| show_others::node(node, &clock, one_line, &mut out));
    session.print(out.as_bytes());
    Ok(complete)
}

async fn partitions(session: &mut Session, id: &str) -> Result<Done, Problem> {
    let (all, one_line) = (session.all, session.one_line);
    let client = session.client().ok_or(Problem::Said)?;
    let mut answer = client
        .call(Retry::Read, async |mut c: Controller| c.list_partitions(v1::Empty {}).await)
        .await
        .map_err(call("slurm_load_partitions"))?;
    if id.is_empty() {
        answer.partitions.retain(|p| all || !p.hidden);
    } else {
        answer.partitions.retain(|p| p.name == id);
        if answer.partitions.is_empty() {
            return Err(Problem::Text(format!("Partition {id} not found")));
        }
    }
    if let Some(style) = session.json {
        let records = answer.partitions.iter().map(partitions_json::partition).collect();
        session.print_json(style, "partitions", records, answer.now);
        return Ok(true);
    }
    let mut out = String::new();
    session.updated(answer.now, answer.partitions.len(), &mut out);
    if answer.partitions.is_empty() && !session.quiet {
        out.push_str("No partitions in the system\n");
    }
    answer.partitions.iter().for_each(|p| show_others::partition(p, one_line, &mut out));
    session.print(out.as_bytes());
    Ok(true)
}

async fn steps(session: &mut Session, id: &str) -> Result<Done, Problem> {
    const WHAT: &str = "slurm_get_job_steps";
    let wanted = target(id, WHAT)?;
    let one_line = session.one_line;
    let client = session.client().ok_or(Problem::Said)?;
    let request = v1::ListJobsRequest {
        jobs: wanted.iter().map(wire).collect(),
        states: vec!["RUNNING".to_owned(), "SUSPENDED".to_owned(), "COMPLETING".to_owned()],
        steps: true,
        ..Default::default()
    };
    let mut answer = client.list_jobs(request).await.map_err(call(WHAT))?;
    answer.jobs.sort_by_key(facts::order);
    let only = wanted.as_ref().and_then(|t| t.step);
    let clock = Clock::from_environment(answer.now);
    let mut rows = Vec::new();
    for job in &answer.jobs {
        let mut steps: Vec<&v1::StepRecord> = job.steps.iter().filter(|s| s.end.is_none()).collect();
        steps.sort_by_key(|s| facts::accounting_order(s));
        rows.extend(
            steps
                .into_iter()
                .filter(|s| only.is_none_or(|step| s.key.is_some_and(|k| StepId::from_wire(k.step) == step)))
                .map(|s| (job, s)),
        );
    }
    if rows.is_empty() && wanted.is_some() {
        return Err(Problem::Text(match only {
            Some(_) if !answer.jobs.is_empty() => format!("Job step {id} not found"),
            _ => format!("{WHAT} error: Invalid job id specified"),
        }));
    }
    let mut out = String::new();
    session.updated(answer.now, rows.len(), &mut out);
    if rows.is_empty() && !session.quiet {
        out.push_str("No job steps in the system\n");
    }
    rows.iter().for_each(|(job, step)| show_others::step(job, step, &clock, one_line, &mut out));
    session.print(out.as_bytes());
    Ok(true)
}

async fn load_config(session: &mut Session) -> Result<v1::ConfigReply, Problem> {
    let client = session.client().ok_or(Problem::Said)?;
    client
        .call(Retry::Read, async |mut c: Controller| c.get_config(v1::Empty {}).await)
        .await
        .map_err(call("slurm_load_ctl_conf"))
}

async fn config(session: &mut Session, key: &str) -> Result<Done, Problem> {
    let answer = load_config(session).await?;
    let clock = Clock::from_environment(answer.now);
    let mut out = format!("Configuration data as of {}\n", clock.time(answer.now));
    for entry in answer.entries.iter().filter(|e| key.is_empty() || e.key.eq_ignore_ascii_case(key)) {
        // The controller gives a number, this host's zone makes it a time.
        let boot = (entry.key == "BOOT_TIME").then(|| entry.value.parse::<i64>().ok()).flatten();
        let value = boot.map_or_else(|| entry.value.clone(), |secs| clock.time(secs.saturating_mul(1000)));
        out.push_str(&format!("{:<23} = {value}\n", entry.key));
    }
    out.push('\n');
    session.print(out.as_bytes());
    Ok(super::admin::ping(session).await)
}

/// From the configuration. `unit`: a switch, a block, or a node, whose switches are shown.
async fn topology(session: &mut Session, unit: &str) -> Result<Done, Problem> {
    let answer = load_config(session).await?;
    let config = sluice_model::config::parse(&answer.toml, "the controller's configuration");
    let config = config.map_err(|_| Problem::Text("the controller's configuration can't be read".to_owned()))?;
    let unit = unit.strip_prefix("unit=").or_else(|| unit.strip_prefix("node=")).unwrap_or(unit);
    match show_topology::lines(&config.topology, unit) {
        Ok(out) => {
            session.print(out.as_bytes());
            Ok(true)
        }
        Err(text) => Err(Problem::Text(format!("scontrol: error: {text}"))),
    }
}

/// From the configuration and from what jobs hold.
async fn licenses(session: &mut Session, name: &str) -> Result<Done, Problem> {
    let answer = load_config(session).await?;
    let one_line = session.one_line;
    let value = answer.entries.iter().find(|e| e.key == "Licenses").map(|e| e.value.clone()).unwrap_or_default();
    let total =
        if value == "(null)" { Default::default() } else { sluice_model::licenses::parse(&value).unwrap_or_default() };
    if total.is_empty() {
        session.print(b"No licenses configured in Slurm.\n");
        return Ok(true);
    }
    let client = session.client().ok_or(Problem::Said)?;
    let request = v1::ListJobsRequest {
        states: vec!["RUNNING".to_owned(), "SUSPENDED".to_owned(), "COMPLETING".to_owned()],
        detail: true,
        ..Default::default()
    };
    let jobs = client.list_jobs(request).await.map_err(call("slurm_load_licenses"))?.jobs;
    let mut out = String::new();
    for (license, total) in total.iter().filter(|(l, _)| name.is_empty() || *l == name) {
        let held = |j: &v1::JobRecord| j.spec.as_ref().and_then(|s| s.licenses.get(license).copied()).unwrap_or(0);
        let used: u32 = jobs.iter().map(held).sum();
        let mut record = super::record::Record::default();
        record
            .line(format!("LicenseName={license}"))
            .line(format!(" Total={total} Used={used} Free={} Reserved=0 Remote=no", total.saturating_sub(used)));
        record.write(one_line, &mut out);
    }
    if out.is_empty() {
        return Err(Problem::Text(format!("License name {name} not found.")));
    }
    // Records of licences follow each other without an empty line.
    let out = if one_line { out } else { out.replace("\n\n", "\n") };
    session.print(out.as_bytes());
    Ok(true)
}

fn reservations(session: &mut Session, name: &str) -> Result<Done, Problem> {
    if name.is_empty() {
        if let Some(style) = session.json {
            session.client().ok_or(Problem::Said)?;
            session.print_json(style, "reservations", Vec::new(), crate::commands::sbatch::now().0);
            return Ok(true);
        }
        session.print(b"No reservations in the system\n");
        return Ok(true);
    }
    Err(Problem::Text(format!("Reservation {name} not found")))
}

/// `completing`: jobs whose nodes still clean up.
pub async fn completing(session: &mut Session) -> Done {
    let Some(client) = session.client() else { return false };
    let request = v1::ListJobsRequest { states: vec!["COMPLETING".to_owned()], ..Default::default() };
    match client.list_jobs(request).await {
        Ok(answer) => {
            let clock = Clock::from_environment(answer.now);
            let one = |j: &v1::JobRecord| {
                let end = clock.time_or(j.end, "Unknown");
                format!("JobId={} EndTime={end} CompletingNodes={}\n", j.id, j.node_list)
            };
            session.print(answer.jobs.iter().map(one).collect::<String>().as_bytes());
            true
        }
        Err(error) => {
            Problem::Call { what: "slurm_load_jobs", error }.say();
            false
        }
    }
}
