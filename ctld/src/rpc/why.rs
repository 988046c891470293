//! `sluice why`: answered from a snapshot on a thread of its own, since it runs scheduling passes.

use super::{status, unreadable_history};
use crate::context::Context;
use crate::owner::wall_clock;
use crate::store::{HistoryQuery, StoreError};
use sluice_engine::query::{self, NodeWhy, Sentence, Why};
use sluice_engine::{Job, Reject};
use sluice_model::{JobId, NodeName};
use sluice_proto::v1;
use std::ops::ControlFlow;
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub async fn why(context: &Context, request: Request<v1::WhyRequest>) -> Result<Response<v1::WhyReply>, Status> {
    context.caller(&request)?;
    let v1::WhyRequest { job, array_index } = request.into_inner();
    let (published, shelf) = (Arc::clone(&context.published), Arc::clone(&context.shelf));
    let id = JobId(job);
    let answer = tokio::task::spawn_blocking(move || {
        let now = wall_clock();
        let state = published.state();
        if let Some(live) = query::why(&state, now, &published.board(&state, now), id, array_index) {
            return Ok(Some(reply(live, now.0)));
        }
        let mut found: Option<Job> = None;
        let asked = HistoryQuery { jobs: Some([id].into()), ..HistoryQuery::default() };
        shelf.history(&asked, &mut |job| {
            let same = match (array_index, &job.array) {
                (None, _) => job.id == id,
                (Some(wanted), sluice_engine::job::ArrayRole::Task { array, index }) => {
                    *array == id && *index == wanted
                }
                _ => false,
            };
            if same {
                found = Some(job);
            }
            ControlFlow::Continue(())
        })?;
        Ok::<_, StoreError>(found.map(|job| reply(query::why_started(&job), now.0)))
    });
    match answer.await.map_err(|e| Status::internal(e.to_string()))? {
        Ok(Some(answer)) => Ok(Response::new(answer)),
        Ok(None) => Err(status(&Reject::InvalidJobId)),
        Err(error) => Err(unreadable_history(&error)),
    }
}

pub async fn why_node(
    context: &Context,
    request: Request<v1::WhyNodeRequest>,
) -> Result<Response<v1::WhyNodeReply>, Status> {
    context.caller(&request)?;
    let name = NodeName::new(request.into_inner().node);
    let published = Arc::clone(&context.published);
    let answer = tokio::task::spawn_blocking(move || {
        let now = wall_clock();
        let state = published.state();
        query::why_node(&state, now, &published.board(&state, now), &name).ok_or(name).map(|why| node_reply(why, now.0))
    });
    match answer.await.map_err(|e| Status::internal(e.to_string()))? {
        Ok(answer) => Ok(Response::new(answer)),
        Err(name) => Err(status(&Reject::InvalidNodeName { name: name.to_string() })),
    }
}

fn ids(jobs: &[JobId]) -> Vec<u32> {
    jobs.iter().map(|j| j.0).collect()
}

fn sentences(all: Vec<Sentence>) -> Vec<v1::WhySentence> {
    all.into_iter().map(|s| v1::WhySentence { text: s.text, time: s.time.map(|t| t.0) }).collect()
}

fn reply(why: Why, now: i64) -> v1::WhyReply {
    let number = |n: query::Number| v1::WhyNumber {
        what: n.what,
        needs: n.needs,
        has: n.has,
        limit: n.limit,
        used_by: ids(&n.used_by),
    };
    let ahead =
        |a: query::AheadJob| v1::WhyAhead { job: a.job.0, user: a.user, partition: a.partition, priority: a.priority };
    v1::WhyReply {
        job: why.job.0,
        state: why.state.long().to_owned(),
        reason: why.reason.number(),
        because: sentences(why.because),
        numbers: why.numbers.into_iter().map(number).collect(),
        ahead_count: why.ahead_count,
        ahead: why.ahead.into_iter().map(ahead).collect(),
        planned: why.planned.map(|p| v1::WhyPlanned {
            start: p.start.0,
            partition: p.partition,
            nodes: p.nodes.iter().map(ToString::to_string).collect(),
            certainty: p.certainty,
        }),
        sooner: why
            .sooner
            .into_iter()
            .map(|s| v1::WhySooner { change: s.change, options: s.options, start: s.start.0 })
            .collect(),
        now,
    }
}

fn node_reply(why: NodeWhy, now: i64) -> v1::WhyNodeReply {
    v1::WhyNodeReply {
        node: why.node.to_string(),
        condition: sentences(why.condition),
        free_cpus: why.free_cpus,
        cpus: why.cpus,
        free_memory_mb: why.free_memory_mb,
        memory_mb: why.memory_mb,
        gres: why.gres.into_iter().map(|(name, free, total)| v1::WhyNodeGres { name, free, total }).collect(),
        running: ids(&why.running),
        waiting: why.waiting,
        causes: why
            .causes
            .into_iter()
            .map(|c| v1::WhyNodeWaiter { cause: c.cause, count: c.count, jobs: ids(&c.jobs) })
            .collect(),
        now,
    }
}
