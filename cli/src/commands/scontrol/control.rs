//! `scontrol hold`, `uhold`, `release`, `requeue`, `requeuehold`, `suspend`, `resume`: one call for each job named.
//!
//! Source: scontrol(1). A list that fails for one job goes on with the next.

use super::session::{Done, Session};
use crate::client::{Controller, Retry};
use crate::error::CallError;
use sluice_model::JobId;
use sluice_model::job_target::{self, JobTarget};
use sluice_proto::v1;
use v1::control_request::Action as Request;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    Hold,
    UserHold,
    Release,
    Requeue,
    RequeueHold,
    Suspend,
    Resume,
}

impl Action {
    /// By keyword; Slurm takes `uhold` and `holdu`.
    pub fn of(keyword: &str) -> Option<Action> {
        Some(match keyword.to_ascii_lowercase().as_str() {
            "hold" => Action::Hold,
            "uhold" | "holdu" => Action::UserHold,
            "release" => Action::Release,
            "requeue" => Action::Requeue,
            "requeuehold" => Action::RequeueHold,
            "suspend" => Action::Suspend,
            "resume" => Action::Resume,
            _ => return None,
        })
    }

    fn request(self, target: v1::JobTarget) -> Request {
        let action = v1::JobAction { target: Some(target) };
        match self {
            Action::Hold => Request::Hold(action),
            Action::UserHold => Request::Uhold(action),
            Action::Release => Request::Release(action),
            Action::Requeue => Request::Requeue(action),
            Action::RequeueHold => Request::RequeueHold(action),
            Action::Suspend => Request::Suspend(action),
            Action::Resume => Request::Resume(action),
        }
    }
}

pub async fn perform(session: &mut Session, keyword: &str, action: Action, words: &[String]) -> Done {
    if words.is_empty() {
        crate::errln!("too few arguments for keyword:{keyword}");
        return false;
    }
    let mut done = true;
    for word in words {
        if let Some((key, value)) = word.split_once('=') {
            match key.to_ascii_lowercase().as_str() {
                "name" | "jobname" => done &= by_name(session, action, value).await,
                "jobid" | "job" => done &= by_ids(session, action, value).await,
                _ => {
                    crate::errln!("scontrol: error: {keyword} {word} is not supported");
                    return false;
                }
            }
        } else if word.eq_ignore_ascii_case("incomplete") {
            crate::errln!("scontrol: error: {keyword} {word} is not supported");
            return false;
        } else {
            done &= by_ids(session, action, word).await;
        }
    }
    done
}

async fn by_ids(session: &mut Session, action: Action, text: &str) -> Done {
    let targets = match job_target::parse_list(text) {
        Ok(targets) if !targets.is_empty() && targets.iter().all(|t| t.step.is_none()) => targets,
        _ => {
            crate::errln!("Invalid job id specified");
            return false;
        }
    };
    let mut done = true;
    for target in targets {
        done &= send(session, action, &target).await;
    }
    done
}

async fn by_name(session: &mut Session, action: Action, name: &str) -> Done {
    let Some(client) = session.client() else { return false };
    let me = crate::viewing::me();
    // Everyone's for an administrator, one's own for others: the controller refuses what is not ours.
    let users = if me.uid == 0 { Vec::new() } else { vec![me.user] };
    let request = v1::ListJobsRequest { names: vec![crate::text::wire(name)], users, ..Default::default() };
    let jobs = match client.list_jobs(request).await {
        Ok(answer) => answer.jobs,
        Err(error) => {
            crate::errln!("slurm_load_jobs error: {}", error.reason());
            return false;
        }
    };
    let mut ids: Vec<u32> = jobs.iter().map(|j| j.array_job.unwrap_or(j.id)).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        crate::errln!("Invalid job name specified for job {name}");
        return false;
    }
    let mut done = true;
    for id in ids {
        done &= send(session, action, &JobTarget::job(JobId(id))).await;
    }
    done
}

pub fn wire(target: &JobTarget) -> v1::JobTarget {
    let JobId(job) = target.job;
    v1::JobTarget { job, tasks: target.tasks.as_ref().map(v1::IndexSet::from) }
}

async fn send(session: &mut Session, action: Action, target: &JobTarget) -> Done {
    let Some(client) = session.client() else { return false };
    let request = v1::ControlRequest { action: Some(action.request(wire(target))) };
    // Requeueing twice is not requeueing once.
    let retry = if matches!(action, Action::Requeue | Action::RequeueHold) { Retry::Unsent } else { Retry::Harmless };
    match client.call(retry, async |mut c: Controller| c.control(request.clone()).await).await {
        Ok(_) => true,
        Err(error) => {
            say(&error, &target.to_string());
            if matches!(action, Action::Hold | Action::UserHold | Action::Release) {
                crate::errln!("slurm_suspend error: {}", error.reason());
            }
            false
        }
    }
}

/// `Invalid job id specified for job 999`
pub fn say(error: &CallError, job: &str) {
    if let Some(detail) = error.detail() {
        crate::errln!("scontrol: error: {detail}");
    }
    crate::errln!("{} for job {job}", error.reason());
}
