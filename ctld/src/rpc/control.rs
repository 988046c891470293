//! Control of jobs, nodes and partitions: one request, one engine command.

use super::{status, target, unreadable};
use crate::context::Context;
use sluice_engine::Command;
use sluice_engine::Reject;
use sluice_engine::command::{Caller, JobChange, NodeChange, NodeStateChange, PartitionChange, Reply, SignalFlags};
use sluice_model::config::Mode;
use sluice_model::partition::PartitionState;
use sluice_model::request::Exclusive;
use sluice_model::{NodeName, OsBytes, StepId, Time};
use sluice_proto::convert::ConvertError;
use sluice_proto::v1::{self, control_request::Action};
use tonic::{Request, Response, Status};

pub async fn control(
    context: &Context,
    request: Request<v1::ControlRequest>,
) -> Result<Response<v1::ControlReply>, Status> {
    let caller = context.caller(&request)?;
    let action = request.into_inner().action.ok_or_else(|| Status::invalid_argument("no action given"))?;
    let administrative = matches!(action, Action::UpdateNode(_) | Action::UpdatePartition(_));
    let who = (caller.uid, caller.user.clone());
    let what = if administrative { format!("{action:?}") } else { String::new() };
    let command = command(caller, action)?;
    match context.owner.command(command).await {
        Ok(reply) => {
            if administrative {
                tracing::info!(target: "audit", uid = who.0, user = who.1, what, "administrative act");
            }
            let jobs = match reply {
                Reply::Affected { jobs } => jobs.iter().map(|j| j.0).collect(),
                _ => Vec::new(),
            };
            Ok(Response::new(v1::ControlReply { jobs }))
        }
        Err(reject) => {
            if matches!(reject, Reject::AccessDenied { .. }) {
                tracing::warn!(target: "audit", uid = who.0, user = who.1, detail = reject.detail(), "refused");
            }
            Err(status(&reject))
        }
    }
}

fn command(caller: Caller, action: Action) -> Result<Command, Status> {
    Ok(match action {
        Action::Cancel(a) => Command::Cancel { caller, target: target(a.target)? },
        Action::Signal(a) => Command::Signal {
            caller,
            target: target(a.target)?,
            step: a.step.map(StepId::from_wire),
            signal: u8::try_from(a.signal)
                .ok()
                .filter(|s| (1..=64).contains(s))
                .ok_or_else(|| Status::invalid_argument(format!("signal {}: allowed is 1 to 64", a.signal)))?,
            flags: SignalFlags { batch: a.batch, full: a.full },
        },
        Action::Hold(a) => Command::Hold { caller, target: target(a.target)?, user_hold: false },
        Action::Uhold(a) => Command::Hold { caller, target: target(a.target)?, user_hold: true },
        Action::Release(a) => Command::Release { caller, target: target(a.target)? },
        Action::Requeue(a) => Command::Requeue { caller, target: target(a.target)?, hold: false },
        Action::RequeueHold(a) => Command::Requeue { caller, target: target(a.target)?, hold: true },
        Action::Suspend(a) => Command::Suspend { caller, target: target(a.target)? },
        Action::Resume(a) => Command::Resume { caller, target: target(a.target)? },
        Action::UpdateJob(a) => {
            let target = target(a.target.clone())?;
            let change = job_change(a).map_err(|e| unreadable(&e))?;
            Command::UpdateJob { caller, target, change: Box::new(change) }
        }
        Action::UpdateNode(a) => {
            let nodes = a.nodes.iter().map(NodeName::new).collect();
            let change = node_change(a)?;
            Command::UpdateNode { caller, nodes, change }
        }
        Action::UpdatePartition(a) => {
            let name = a.name.clone();
            let change = partition_change(a)?;
            Command::UpdatePartition { caller, name, change: Box::new(change) }
        }
    })
}

fn text(bytes: bytes::Bytes) -> OsBytes {
    OsBytes::new(bytes)
}

fn names(list: v1::StringList) -> Vec<NodeName> {
    list.items.iter().map(NodeName::new).collect()
}

fn convert<W, M: TryFrom<W, Error = ConvertError>>(value: Option<W>) -> Result<Option<M>, ConvertError> {
    value.map(M::try_from).transpose()
}

fn job_change(a: v1::UpdateJobAction) -> Result<JobChange, ConvertError> {
    let dependency = match (a.clear_dependency, a.dependency) {
        (Some(true), _) => Some(None),
        (_, Some(d)) => Some(Some(d.try_into()?)),
        _ => None,
    };
    let constraint = match a.constraint {
        Some(c) => Some((c.try_into()?, a.constraint_text.unwrap_or_default())),
        None => None,
    };
    let gres = match a.gres {
        Some(list) => Some(list.items.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?),
        None => None,
    };
    Ok(JobChange {
        name: a.name.map(text),
        time_limit: convert(a.time_limit)?,
        time_min: convert(a.time_min)?,
        priority: a.priority,
        nice: a.nice,
        site_factor: a.site_factor,
        partitions: a.partitions.map(|p| p.items),
        account: a.account,
        qos: a.qos,
        wckey: a.wckey,
        comment: a.comment.map(text),
        admin_comment: a.admin_comment,
        begin: a.begin.map(Time),
        deadline: a.deadline.map(Time),
        dependency,
        requeue: a.requeue,
        array_throttle: a.array_throttle.map(|t| (t != 0).then_some(t)),
        constraint,
        nodes: convert(a.nodes)?,
        ntasks: a.ntasks,
        cpus_per_task: a.cpus_per_task,
        memory: convert(a.memory)?,
        gres,
        node_list: a.node_list.map(names),
        exclude: a.exclude.map(names),
        exclusive: a.exclusive.map(|e| match e {
            1 => Exclusive::Node,
            2 => Exclusive::User,
            _ => Exclusive::No,
        }),
        mail_type: a.mail_type,
        mail_user: a.mail_user,
        work_dir: a.work_dir.map(text),
        stdout: a.stdout.map(text),
        stderr: a.stderr.map(text),
        stdin: a.stdin.map(text),
        reservation: a.reservation,
        licenses: a.licenses.map(|l| l.items.into_iter().collect()),
    })
}

fn node_change(a: v1::UpdateNodeAction) -> Result<NodeChange, Status> {
    let state = match a.state.as_deref().map(str::to_ascii_uppercase).as_deref() {
        None => None,
        Some("DRAIN") => Some(NodeStateChange::Drain),
        Some("RESUME" | "IDLE") => Some(NodeStateChange::Resume),
        Some("DOWN") => Some(NodeStateChange::Down),
        Some("UNDRAIN") => Some(NodeStateChange::Undrain),
        Some("FAIL") => Some(NodeStateChange::Fail),
        Some(other) => return Err(status(&Reject::InvalidNodeState { value: other.to_owned() })),
    };
    Ok(NodeChange {
        state,
        reason: a.reason,
        weight: a.weight,
        features: a.features.map(|f| f.items),
        comment: a.comment,
    })
}

fn partition_change(a: v1::UpdatePartitionAction) -> Result<PartitionChange, Status> {
    let bad_mode = |value: String| {
        let allowed = "OFF, CANCEL, REQUEUE, SUSPEND".to_owned();
        status(&Reject::InvalidValue { key: "PreemptMode".to_owned(), value, allowed })
    };
    let preempt_mode = a.preempt_mode.map(|text| Mode::parse(&text).ok_or_else(|| bad_mode(text))).transpose()?;
    let state = match a.state.as_deref().map(str::to_ascii_uppercase).as_deref() {
        None => None,
        Some("UP") => Some(PartitionState::Up),
        Some("DOWN") => Some(PartitionState::Down),
        Some("DRAIN") => Some(PartitionState::Drain),
        Some("INACTIVE") => Some(PartitionState::Inactive),
        Some(other) => {
            let allowed = "UP, DOWN, DRAIN, INACTIVE".to_owned();
            return Err(status(&Reject::InvalidValue { key: "State".to_owned(), value: other.to_owned(), allowed }));
        }
    };
    let default_time = convert(a.default_time).map_err(|e| unreadable(&e))?;
    Ok(PartitionChange {
        state,
        max_time: convert(a.max_time).map_err(|e| unreadable(&e))?,
        default_time: match (a.clear_default_time, default_time) {
            (Some(true), _) => Some(None),
            (_, Some(t)) => Some(Some(t)),
            _ => None,
        },
        min_nodes: a.min_nodes,
        max_nodes: a.max_nodes.map(|n| (n != u32::MAX).then_some(n)),
        priority_tier: a.priority_tier,
        priority_job_factor: a.priority_job_factor,
        default: a.default,
        hidden: a.hidden,
        root_only: a.root_only,
        allow_groups: a.allow_groups.map(|l| l.items),
        allow_accounts: a.allow_accounts.map(|l| l.items),
        allow_qos: a.allow_qos.map(|l| l.items),
        nodes: a.nodes.map(names),
        grace_secs: a.grace_secs,
        preempt_mode,
    })
}
