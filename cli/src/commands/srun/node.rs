//! srun's stream to one node of its step.
//!
//! Owns the connection: launches the node's part once, and after a broken connection (a node daemon that is being
//! restarted) attaches again and goes on after the last output received. Output that comes twice is dropped here.

use crate::client::{NodeSteps, connect_node};
use crate::client_config::ClientConfig;
use crate::error::CallError;
use sluice_proto::v1::{self, step_input, step_output};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// A node may be out of reach for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What comes from a node.
pub enum Heard {
    Output(v1::StepOutput),
    /// The connection broke; it is being made again.
    Detached,
    /// Out of reach for too long.
    Lost(String),
    /// The node said no.
    Refused(CallError),
}

/// How a node is reached and what it is to run.
pub struct Part {
    pub config: Arc<ClientConfig>,
    pub index: usize,
    pub node: String,
    pub address: String,
    pub launch: v1::StepLaunch,
    pub key: v1::StepKey,
    /// A connection that is already there.
    pub connected: Option<NodeSteps>,
}

/// Runs until the node's part has ended and everything is acknowledged, or the node is given up.
pub async fn run(
    mut part: Part,
    mut inputs: mpsc::UnboundedReceiver<step_input::Kind>,
    heard: mpsc::UnboundedSender<(usize, Heard)>,
) {
    let index = part.index;
    let tell = |what| heard.send((index, what)).is_ok();
    let mut place = Place::default();
    let mut give_up = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(20);
    loop {
        let error = match attach(&mut part, &place).await {
            Ok((requests, stream)) => match converse(&mut place, requests, stream, &mut inputs, &tell).await {
                End::Finished => return,
                End::Broken(e) => {
                    give_up = Instant::now() + PATIENCE;
                    pause = Duration::from_millis(20);
                    e
                }
            },
            Err(e) => e,
        };
        if place.ended {
            return;
        }
        if matches!(error, CallError::Refused(_) | CallError::Failed { .. } | CallError::BadConfig { .. }) {
            tell(match place.started {
                // It ran, but what became of it is not to be learnt there any more.
                true => Heard::Lost(error.reason()),
                false => Heard::Refused(error),
            });
            return;
        }
        if Instant::now() + pause >= give_up {
            tell(Heard::Lost(error.detail().unwrap_or_else(|| error.reason())));
            return;
        }
        if !tell(Heard::Detached) {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// What has been heard so far.
#[derive(Default)]
struct Place {
    started: bool,
    received: u64,
    ended: bool,
}

enum End {
    Finished,
    Broken(CallError),
}

type Requests = mpsc::UnboundedSender<v1::StepInput>;

async fn attach(part: &mut Part, place: &Place) -> Result<(Requests, tonic::Streaming<v1::StepOutput>), CallError> {
    let mut node: NodeSteps = match part.connected.take() {
        Some(node) => node,
        None => connect_node(&part.config, &part.node, &part.address).await?,
    };
    let first = if place.started {
        step_input::Kind::Attach(v1::StepAttach { key: Some(part.key), received: place.received })
    } else {
        // A launch that is repeated is harmless: the node runs a step once.
        step_input::Kind::Launch(part.launch.clone())
    };
    let (requests, receiver) = mpsc::unbounded_channel();
    // The receiver is here, so this cannot fail.
    let _ = requests.send(v1::StepInput { kind: Some(first) });
    let stream = node.run_step(UnboundedReceiverStream::new(receiver)).await;
    let stream = stream.map_err(|status| CallError::from_status(&status))?.into_inner();
    Ok((requests, stream))
}

async fn converse(
    place: &mut Place,
    requests: Requests,
    mut stream: tonic::Streaming<v1::StepOutput>,
    inputs: &mut mpsc::UnboundedReceiver<step_input::Kind>,
    tell: &(impl Fn(Heard) -> bool + Sync),
) -> End {
    loop {
        tokio::select! {
            output = stream.message() => match output {
                Ok(Some(output)) => {
                    if output.sequence != 0 && output.sequence <= place.received {
                        continue;
                    }
                    place.received = place.received.max(output.sequence);
                    match output.kind {
                        Some(step_output::Kind::Started(_)) => place.started = true,
                        Some(step_output::Kind::Ended(_)) => place.ended = true,
                        _ => {}
                    }
                    if !tell(Heard::Output(output)) {
                        return End::Finished;
                    }
                }
                Ok(None) if place.ended => return End::Finished,
                Ok(None) => return End::Broken(CallError::NoAnswer { problem: "the node closed the stream".to_owned() }),
                Err(_) if place.ended => return End::Finished,
                Err(status) => return End::Broken(CallError::from_status(&status)),
            },
            input = inputs.recv() => match input {
                // A closed stream shows as its end, above.
                Some(kind) => { let _ = requests.send(v1::StepInput { kind: Some(kind) }); }
                None => return End::Finished,
            },
        }
    }
}
