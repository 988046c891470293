//! What the controller is told of a step: at its beginning, and at its end from what its parts said.

use sluice_identity::now_ms;
use sluice_model::state::{ExitStatus, JobState};
use sluice_model::step::{Spread, Usage};
use sluice_proto::v1::{self, ManagedStep, StepGrantBody, StepNode, StepRecord, StepRequest};
use std::collections::BTreeMap;

pub(super) fn begun(body: &StepGrantBody, request: &StepRequest) -> StepRecord {
    let cpus = |n: &StepNode| {
        n.cpus.clone().and_then(|c| sluice_model::IndexSet::try_from(c).ok()).map_or(0, |c| c.len() as u32)
    };
    let mut gres: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
    for item in body.nodes.iter().flat_map(|n| &n.gres) {
        let count = item.indices.clone().and_then(|i| sluice_model::IndexSet::try_from(i).ok()).map_or(0, |i| i.len());
        *gres.entry((item.name.clone(), item.kind.clone())).or_default() += count;
    }
    StepRecord {
        key: body.key,
        name: body.name.clone(),
        nodes: body.nodes.iter().map(|n| n.node.clone()).collect(),
        tasks: body.ntasks,
        cpus: body.nodes.iter().map(cpus).sum(),
        memory_mb: body.nodes.iter().map(|n| n.memory_mb).sum(),
        gres: gres
            .into_iter()
            .map(|((name, kind), count)| v1::GresSpec { name, kind, count, ..Default::default() })
            .collect(),
        start: body.start,
        end: None,
        state: state_name(JobState::Running),
        exit: Some(v1::ExitStatus::default()),
        usage: Some(v1::Usage::default()),
        spread: Vec::new(),
        submit_line: request.submit_line.clone(),
        distribution: body.distribution.clone(),
        srun_host: request.srun_host.clone(),
        srun_pid: request.srun_pid,
    }
}

fn state_name(state: JobState) -> String {
    state.long().to_owned()
}

/// The record of a step that is over.
pub(super) fn finished(kept: &ManagedStep, cancelling: bool) -> StepRecord {
    let mut usage = Usage::default();
    let mut spread = Vec::new();
    let nodes: Vec<&str> = kept.grant.iter().flat_map(|g| &g.nodes).map(|n| n.node.as_str()).collect();
    let mut worst = ExitStatus::default();
    let mut cancelled = false;
    let mut end = 0;
    for part in &kept.ended {
        usage = usage.merge(part.usage.and_then(|u| u.try_into().ok()).unwrap_or_default());
        let exit: ExitStatus = part.worst.and_then(|e| e.try_into().ok()).unwrap_or_default();
        worst = worst.worse(exit);
        cancelled |= part.cancelled;
        let place = nodes.iter().position(|n| *n == part.node).unwrap_or(0) as u32;
        let here = part.spread.iter().filter_map(|s| Spread::try_from(*s).ok());
        Spread::join(&mut spread, here.map(|s| s.on_node(place)));
        end = end.max(part.end);
    }
    let missing = kept.ended.len() < kept.grant.as_ref().map_or(0, |g| g.nodes.len());
    let state = if kept.timed_out_at > 0 {
        JobState::Timeout
    } else if cancelled || missing || (cancelling && worst.signal != 0) {
        JobState::Cancelled
    } else if worst == ExitStatus::default() {
        JobState::Completed
    } else {
        JobState::Failed
    };
    let mut record = kept.record.clone().unwrap_or_default();
    record.end = Some(if end > 0 { end } else { now_ms() });
    record.state = state_name(state);
    record.exit = Some((&worst).into());
    record.usage = Some((&usage).into());
    if record.tasks > 1 {
        record.spread = spread.iter().map(Into::into).collect();
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_proto::v1::StepPartEndedRequest;

    fn kept(ended: Vec<StepPartEndedRequest>, nodes: usize) -> ManagedStep {
        let grant = StepGrantBody { nodes: vec![StepNode::default(); nodes], ..StepGrantBody::default() };
        ManagedStep { grant: Some(grant), record: Some(StepRecord::default()), ended, ..ManagedStep::default() }
    }
    fn part(code: u32, signal: u32, cancelled: bool) -> StepPartEndedRequest {
        let worst = Some(v1::ExitStatus { code, signal });
        StepPartEndedRequest { worst, cancelled, end: 5, ..StepPartEndedRequest::default() }
    }

    #[test]
    fn tasks_of_several_nodes_are_compared_and_a_single_one_is_not() {
        let node = |name: &str| StepNode { node: name.into(), ..StepNode::default() };
        let on = |name: &str, task, cpu| StepPartEndedRequest {
            node: name.into(),
            spread: Spread::of_task(task, &Usage { user_cpu_us: cpu, ..Usage::default() })
                .iter()
                .map(Into::into)
                .collect(),
            ..StepPartEndedRequest::default()
        };
        let grant = StepGrantBody { nodes: vec![node("n1"), node("n2")], ..StepGrantBody::default() };
        let record = |tasks| Some(StepRecord { tasks, ..StepRecord::default() });
        let ended = vec![on("n2", 1, 5), on("n1", 0, 9)];
        let kept = ManagedStep { grant: Some(grant), record: record(2), ended, ..ManagedStep::default() };
        let cpu = finished(&kept, false).spread[0];
        let (most, least) = (cpu.largest.unwrap(), cpu.smallest.unwrap());
        assert_eq!((cpu.total, cpu.tasks), (14, 2));
        assert_eq!((most.amount, most.task, most.node), (9, 0, 0));
        assert_eq!((least.amount, least.task, least.node), (5, 1, 1));
        assert!(finished(&ManagedStep { record: record(1), ..kept }, false).spread.is_empty());
    }

    #[test]
    fn a_steps_state_follows_from_its_parts() {
        let state = |kept: ManagedStep, cancelling| finished(&kept, cancelling).state;
        assert_eq!(state(kept(vec![part(0, 0, false)], 1), false), "COMPLETED");
        assert_eq!(state(kept(vec![part(0, 0, false), part(3, 0, false)], 2), false), "FAILED");
        assert_eq!(state(kept(vec![part(0, 15, false)], 1), true), "CANCELLED");
        assert_eq!(state(kept(vec![part(0, 15, false)], 1), false), "FAILED");
        assert_eq!(state(kept(vec![part(0, 9, true)], 1), false), "CANCELLED");
        assert_eq!(state(kept(vec![part(0, 0, false)], 2), false), "CANCELLED", "a part never reported");
        let late = ManagedStep { timed_out_at: 1, ..kept(vec![part(0, 15, false)], 1) };
        assert_eq!(state(late, false), "TIMEOUT");
    }
}
