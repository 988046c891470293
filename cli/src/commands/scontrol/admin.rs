//! `scontrol ping`, `reconfigure`, `shutdown`, `wait_job`, `write`, `errnumstr`.

use super::session::{Done, Session, is};
use crate::client::{Controller, Retry};
use sluice_model::job_target;
use sluice_proto::v1;
use std::io::Write as _;

/// `Slurmctld(primary) at HOST is UP`
pub async fn ping(session: &mut Session) -> Done {
    let style = session.json;
    let words = session.words.clone();
    let Some(client) = session.client() else { return false };
    let started = std::time::Instant::now();
    let answer = client.call(Retry::Read, async |mut c: Controller| c.ping(v1::Empty {}).await).await;
    let latency = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    let configured =
        client.config.controller.as_deref().and_then(|c| c.rsplit_once(':')).map(|(host, _)| host.to_owned());
    let (host, up) = match &answer {
        Ok(reply) => (reply.hostname.clone(), true),
        Err(_) => (configured.unwrap_or_else(|| "localhost".to_owned()), false),
    };
    let word = if up { "UP" } else { "DOWN" };
    if let Some(style) = style {
        let ping = serde_json::json!({
            "hostname": host, "pinged": word, "latency": latency, "mode": "primary", "responding": up, "primary": true,
        });
        let text = crate::viewing::json_answer("scontrol", &words, client, style, vec![("pings", vec![ping].into())]);
        session.print(&text);
    } else {
        session.print(format!("Slurmctld(primary) at {host} is {word}\n").as_bytes());
    }
    if let Err(error) = answer
        && let Some(detail) = error.detail()
    {
        crate::errln!("scontrol: error: {detail}");
    }
    up
}

/// Says what changed, or every problem of the file.
pub async fn reconfigure(session: &mut Session) -> Done {
    let quiet = session.quiet;
    let Some(client) = session.client() else { return false };
    match client.call(Retry::Harmless, async |mut c: Controller| c.reconfigure(v1::Empty {}).await).await {
        Ok(reply) if reply.errors.is_empty() => {
            if !quiet {
                let text: String = reply.changes.iter().map(|c| format!("{c}\n")).collect();
                session.print(text.as_bytes());
            }
            true
        }
        Ok(reply) => {
            for problem in &reply.errors {
                crate::errln!("scontrol: error: {problem}");
            }
            crate::errln!("slurm_reconfigure error: the configuration is unchanged");
            false
        }
        Err(error) => {
            say("slurm_reconfigure", &error);
            false
        }
    }
}

/// Stops the controller alone. Jobs and node daemons go on.
pub async fn shutdown(session: &mut Session, words: &[String]) -> Done {
    match words.first().map(String::as_str) {
        None => {}
        Some(word) if is(word, "slurmctld", 5) || is(word, "controller", 4) => {}
        Some(word) => {
            crate::errln!("scontrol: error: shutdown {word} is not supported: only the controller is stopped");
            return false;
        }
    }
    let Some(client) = session.client() else { return false };
    match client.call(Retry::Unsent, async |mut c: Controller| c.shutdown(v1::Empty {}).await).await {
        Ok(_) => true,
        Err(error) => {
            say("slurm_shutdown", &error);
            false
        }
    }
}

fn say(what: &str, error: &crate::error::CallError) {
    if let Some(detail) = error.detail() {
        crate::errln!("scontrol: error: {detail}");
    }
    crate::errln!("{what} error: {}", error.reason());
}

/// The text of an error number of the system.
pub fn error_text(words: &[String]) -> Done {
    match words.first().map(|w| w.parse::<i32>()) {
        None => crate::errln!("too few arguments for keyword:errnumstr"),
        Some(Ok(number)) => {
            let text = std::io::Error::from_raw_os_error(number).to_string();
            let text = text.rsplit_once(" (os error").map_or(text.as_str(), |(t, _)| t);
            crate::out::print_or_complain("scontrol", format!("{text}\n").as_bytes(), std::process::ExitCode::SUCCESS);
            return true;
        }
        Some(Err(_)) => crate::errln!("scontrol: error: errnumstr {} is no number", words[0]),
    }
    false
}

/// The id of one job or array task.
fn job_id(word: Option<&String>, keyword: &str) -> Option<(v1::JobIdRequest, String)> {
    let Some(word) = word else {
        crate::errln!("too few arguments for keyword:{keyword}");
        return None;
    };
    match job_target::parse(word) {
        Ok(target) if target.tasks.is_none() || target.task().is_some() => {
            Some((v1::JobIdRequest { job: target.job.0, array_index: target.task() }, word.clone()))
        }
        _ => {
            crate::errln!("scontrol: error: Invalid job id {word}");
            None
        }
    }
}

/// Returns once the job runs: its nodes are ready from the moment that they have it.
pub async fn wait_job(session: &mut Session, words: &[String]) -> Done {
    let Some((id, word)) = job_id(words.first(), "wait_job") else { return false };
    let Some(client) = session.client() else { return false };
    let target = v1::JobTarget {
        job: id.job,
        tasks: id.array_index.map(|n| v1::IndexSet { ranges: vec![v1::IndexRange { first: n, last: n, step: 1 }] }),
    };
    let request = v1::ListJobsRequest { jobs: vec![target], states: vec!["ALL".to_owned()], ..Default::default() };
    match client.list_jobs(request).await {
        Err(error) => {
            say("slurm_job_node_ready", &error);
            false
        }
        Ok(answer) => match answer.jobs.first().map(|j| j.state.as_str()) {
            Some("RUNNING" | "SUSPENDED") => true,
            // Waiting jobs have no nodes: Slurm gives up on them as on ended ones.
            _ => {
                crate::errln!("scontrol: Job {word} no longer running");
                false
            }
        },
    }
}

/// `write batch_script JOB [FILE|-]`
pub async fn write(session: &mut Session, words: &[String]) -> Done {
    match words.first().map(String::as_str) {
        None => {
            crate::errln!("too few arguments for keyword:write");
            return false;
        }
        Some(what) if is(what, "batch_script", 5) => {}
        Some(what) => {
            crate::errln!(
                "scontrol: error: write {what} is not supported: the configuration is a file of the controller's"
            );
            return false;
        }
    }
    let Some((id, word)) = job_id(words.get(1), "write") else { return false };
    let Some(client) = session.client() else { return false };
    let script = match client.call(Retry::Read, async |mut c: Controller| c.get_script(id).await).await {
        Ok(reply) => reply.script,
        Err(error) => {
            crate::errln!("job script retrieval failed: {}", error.reason());
            return false;
        }
    };
    let default = format!("slurm-{word}.sh");
    let path = words.get(2).unwrap_or(&default);
    if path == "-" {
        crate::out::complain("scontrol", crate::out::print_raw(&script), std::process::ExitCode::SUCCESS);
        return true;
    }
    match std::fs::File::create(path).and_then(|mut file| file.write_all(&script)) {
        Ok(()) => {
            if !session.quiet {
                session.print(format!("batch script for job {word} written to {path}\n").as_bytes());
            }
            true
        }
        Err(e) => {
            crate::errln!("scontrol: error: failed to open file `{path}`: {e}");
            false
        }
    }
}
