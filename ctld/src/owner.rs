//! The one owner of the engine's state: decide → fold → persist → publish → reply → perform.
//!
//! A plain thread, so that a flush to disk blocks nothing else. While it flushes one batch, the next one gathers in its
//! queue: that is the group commit. Nothing leaves (reply, effect, snapshot for readers) before the facts behind it are
//! durable.

use crate::pool::Pool;
use crate::store::{Store, StoreError};
use crate::view::Published;
use sluice_engine::command::Reply;
use sluice_engine::{Command, Effect, Event, Reject, State, decide, fold, query};
use sluice_model::Time;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};

/// Most commands taken into one batch: bounds the time until the first of them is answered.
const MAX_BATCH: usize = 1024;

/// A command and who waits for its outcome.
pub struct Request {
    pub command: Command,
    /// Scripts and environments that the command names by hash.
    pub blobs: Vec<bytes::Bytes>,
    /// None: nobody waits (ticks).
    pub reply: Option<oneshot::Sender<Result<Reply, Reject>>>,
}

/// Sends commands to the owner.
#[derive(Clone)]
pub struct OwnerHandle {
    requests: mpsc::Sender<Request>,
}

impl OwnerHandle {
    /// Runs a command; returns once its events are durable.
    pub async fn command(&self, command: Command) -> Result<Reply, Reject> {
        self.command_with(command, Vec::new()).await
    }

    /// The same, with blobs to keep first.
    pub async fn command_with(&self, command: Command, blobs: Vec<bytes::Bytes>) -> Result<Reply, Reject> {
        self.enqueue(command, blobs).await?.outcome().await
    }

    /// Puts a command into the queue, in order; its outcome can be waited for later.
    pub async fn enqueue(&self, command: Command, blobs: Vec<bytes::Bytes>) -> Result<Pending, Reject> {
        let (sender, receiver) = oneshot::channel();
        let request = Request { command, blobs, reply: Some(sender) };
        self.requests.send(request).await.map_err(|_| stopping())?;
        Ok(Pending(receiver))
    }
}

/// A command that is on its way.
pub struct Pending(oneshot::Receiver<Result<Reply, Reject>>);

impl Pending {
    /// Returns once its events are durable.
    pub async fn outcome(self) -> Result<Reply, Reject> {
        self.0.await.map_err(|_| stopping())?
    }
}

fn stopping() -> Reject {
    Reject::Internal { detail: "the controller is stopping".to_owned() }
}

/// Effects of one durable batch, with the state they follow from.
pub struct Performed {
    pub state: State,
    pub effects: Vec<Effect>,
}

/// The wall clock in milliseconds: read only here and in other edges, handed to the engine as data.
pub fn wall_clock() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Figures for sdiag and the log.
#[derive(Default, Debug)]
pub struct OwnerFigures {
    pub batches: std::sync::atomic::AtomicU64,
    pub commands: std::sync::atomic::AtomicU64,
    pub slowest_flush_us: std::sync::atomic::AtomicU64,
}

/// What the owner needs to run.
pub struct Owner {
    pub store: Box<dyn Store>,
    pub state: State,
    pub published: Arc<Published>,
    pub effects: mpsc::UnboundedSender<Performed>,
    /// Told after each batch that changed something.
    pub changed: tokio::sync::watch::Sender<u64>,
    pub figures: Arc<OwnerFigures>,
    pub pool: Pool,
}

/// Starts the owner's thread. It ends when all handles are dropped, or by a failed flush, which ends the process.
pub fn spawn(owner: Owner) -> std::io::Result<(OwnerHandle, std::thread::JoinHandle<()>)> {
    let (requests, receiver) = mpsc::channel(16 * MAX_BATCH);
    let thread = std::thread::Builder::new().name("owner".to_owned()).spawn(move || owner.run(receiver))?;
    Ok((OwnerHandle { requests }, thread))
}

type Waiting = (Option<oneshot::Sender<Result<Reply, Reject>>>, Result<Reply, Reject>);

impl Owner {
    fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut now = wall_clock();
        let mut batch = Vec::with_capacity(MAX_BATCH);
        loop {
            batch.clear();
            if requests.blocking_recv_many(&mut batch, MAX_BATCH) == 0 {
                break;
            }
            // Never backwards, so that an adjusted clock can't reorder what happened.
            now = now.max(wall_clock());
            self.batch(&mut batch, now);
        }
        tracing::info!("owner: no more requests, stopping");
    }

    fn batch(&mut self, batch: &mut Vec<Request>, now: Time) {
        let before = self.state.clone();
        let mut events: Vec<Event> = Vec::new();
        let mut effects: Vec<Effect> = Vec::new();
        let mut waiting: Vec<Waiting> = Vec::with_capacity(batch.len());
        for request in batch.drain(..) {
            let decision = match needs_room(&self.state, &request.command).then(|| self.store.check_space()) {
                Some(Err(error)) => Err(refuse_full(&error)),
                _ => decide(&self.state, now, &request.command),
            };
            let answer = match decision {
                Ok(mut decision) => {
                    // Blobs become durable with the batch, before the journal record that names them.
                    let kept = request.blobs.iter().try_for_each(|blob| self.store.put_blob(blob).map(|_| ()));
                    match kept {
                        Ok(()) => {
                            for event in &mut decision.events {
                                self.pool.event(event);
                                fold(&mut self.state, event);
                            }
                            events.extend(decision.events);
                            effects.extend(decision.effects);
                            Ok(decision.reply)
                        }
                        Err(error) => Err(refuse_full(&error)),
                    }
                }
                Err(reject) => Err(reject),
            };
            waiting.push((request.reply, answer));
        }
        let count = waiting.len() as u64;
        if !events.is_empty() {
            let begin = Instant::now();
            if let Err(error) = self.store.append(self.state.generation, &events) {
                if !error.is_refusal() {
                    // What was appended may or may not be on the disk; a restart replays what is.
                    tracing::error!(%error, "the journal can't be flushed; ending so that a restart replays what is durable");
                    std::process::exit(70);
                }
                tracing::warn!(%error, "change refused");
                self.state = before;
                for (reply, answer) in waiting {
                    // Refusals stand; what would have changed something did not happen.
                    let answer = answer.and_then(|_| Err(refuse_full(&error)));
                    send(reply, answer);
                }
                return;
            }
            let spent = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.figures.slowest_flush_us.fetch_max(spent, std::sync::atomic::Ordering::Relaxed);
            self.published.publish_state(self.state.clone());
        }
        self.figures.batches.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.figures.commands.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        for (reply, answer) in waiting {
            send(reply, answer);
        }
        if !effects.is_empty() {
            // The performer only goes away at shutdown, when nothing is to be performed any more.
            let _ = self.effects.send(Performed { state: self.state.clone(), effects });
        }
        if !events.is_empty() {
            self.changed.send_replace(self.state.generation);
            self.maybe_snapshot();
        }
    }

    fn maybe_snapshot(&mut self) {
        if self.store.should_snapshot()
            && let Err(error) = self.store.snapshot(&self.state)
        {
            tracing::error!(%error, "no snapshot could be written; the journal goes on growing");
        }
    }
}

fn send(reply: Option<oneshot::Sender<Result<Reply, Reject>>>, answer: Result<Reply, Reject>) {
    if let Some(reply) = reply {
        // The caller may have gone away; the command stands all the same.
        let _ = reply.send(answer);
    }
}

/// Changes that people ask for are refused while space is short, so that what is left takes the reports of running jobs.
fn needs_room(state: &State, command: &Command) -> bool {
    // What was accepted and is sent again adds nothing.
    if let Command::Submit { caller, key: Some(key), .. } = command
        && query::known_submission(state, caller.uid, *key).is_some()
    {
        return false;
    }
    matches!(
        command,
        Command::Submit { .. }
            | Command::Hold { .. }
            | Command::Release { .. }
            | Command::Requeue { .. }
            | Command::UpdateJob { .. }
            | Command::UpdateNode { .. }
            | Command::UpdatePartition { .. }
            | Command::Configure { .. }
    )
}

fn refuse_full(error: &StoreError) -> Reject {
    Reject::StorageFull { detail: error.to_string() }
}
