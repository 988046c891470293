//! sacctmgr: what is asked for becomes a command, or is only tried on the published state (`dry_run`); and the list of
//! all accounts, users, associations and QOS.

use super::{status, unreadable};
use crate::context::Context;
use crate::owner::wall_clock;
use sluice_engine::command::Reply;
use sluice_engine::{Command, Reject, decide};
use sluice_model::accounting::{AccountingReport, AccountingRequest, TresKind};
use sluice_proto::v1;
use std::collections::BTreeSet;
use tonic::{Request, Response, Status};

pub async fn change(
    context: &Context,
    request: Request<v1::AccountingRequest>,
) -> Result<Response<v1::AccountingReport>, Status> {
    let caller = context.caller(&request)?;
    let request = request.into_inner();
    let dry_run = request.dry_run;
    let request: AccountingRequest = request.try_into().map_err(|e| unreadable(&e))?;
    let (user, uid) = (caller.user.clone(), caller.uid);
    if !dry_run {
        tracing::info!(target: "audit", uid, user, ?request, "accounting");
    }
    let command = Command::Accounting { caller, request: Box::new(request) };
    let answer = if dry_run {
        decide(&context.published.state(), wall_clock(), &command).map(|decision| decision.reply)
    } else {
        context.owner.command(command).await
    };
    match answer {
        Ok(Reply::Accounting { report }) => {
            let report: &AccountingReport = &report;
            Ok(Response::new(report.into()))
        }
        Ok(other) => Err(Status::internal(format!("unexpected answer {other:?}"))),
        Err(reject) => {
            if matches!(reject, Reject::AccessDenied { .. }) {
                tracing::warn!(target: "audit", uid, user, detail = reject.detail(), "accounting was refused");
            }
            Err(status(&reject))
        }
    }
}

pub fn list(context: &Context, request: Request<v1::Empty>) -> Result<Response<v1::AccountingList>, Status> {
    context.caller(&request)?;
    let state = context.published.state();
    let a = &state.accounting;
    Ok(Response::new(v1::AccountingList {
        cluster: state.config.as_ref().map(|c| c.cluster_name.clone()).unwrap_or_default(),
        accounts: a.accounts.values().map(|a| (&**a).into()).collect(),
        users: a.users.values().map(|u| (&**u).into()).collect(),
        associations: a.associations.values().map(|a| (&**a).into()).collect(),
        qos: a.qos.values().map(|q| (&**q).into()).collect(),
        tres: tres(&state),
        partitions: state.partitions.keys().cloned().collect(),
        track_wckey: state.config.as_ref().is_some_and(|c| c.accounting.enforce.wckeys),
    }))
}

/// What the cluster counts: Slurm's fixed resources, then devices and licences.
pub(super) fn tres(state: &sluice_engine::State) -> Vec<String> {
    let mut out: Vec<String> =
        ["cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"].map(str::to_owned).to_vec();
    let Some(config) = &state.config else { return out };
    let mut more: BTreeSet<TresKind> = BTreeSet::new();
    for g in config.nodes.iter().flat_map(|n| &n.gres) {
        more.insert(TresKind::gres(&g.name, None));
        if let Some(kind) = &g.kind {
            more.insert(TresKind::gres(&g.name, Some(kind)));
        }
    }
    more.extend(config.licenses.keys().map(|name| TresKind::License(name.clone())));
    out.extend(more.iter().map(ToString::to_string));
    out
}
