//! The link to the controller: one stream, made again for as long as the daemon runs.
//!
//! Carries messages between the stream and the owner, sends heartbeats, and decides nothing. A broken link costs a
//! short, growing pause; what the controller missed is in the owner's outbox.

use crate::hardware;
use crate::owner::Message;
use sluice_identity::client::{Authorized, ConnectError, Endpoint, Tokens};
use sluice_proto::v1::{Heartbeat, NodeMessage, controller_message, node_message};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Until the controller has said how often it wants to hear.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Runs until the owner is gone.
pub async fn run(endpoint: Endpoint, tokens: Tokens, owner: mpsc::UnboundedSender<Message>) {
    let mut pause = FIRST_PAUSE;
    let mut complained = false;
    for serial in 1u64.. {
        let started = tokio::time::Instant::now();
        match once(serial, &endpoint, &tokens, &owner).await {
            Ok(()) => tracing::info!("the controller closed the link"),
            // Once at full voice: a controller that is down for an hour should not fill the log.
            Err(error) if !complained => {
                complained = true;
                tracing::warn!(%error, controller = %endpoint, "no link to the controller; trying on");
            }
            Err(error) => tracing::debug!(%error, "no link to the controller"),
        }
        if owner.send(Message::LinkDown { serial }).is_err() {
            return;
        }
        if started.elapsed() > Duration::from_secs(10) {
            pause = FIRST_PAUSE;
            complained = false;
        }
        tokio::time::sleep(jitter(pause)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Between half and all of `pause`, so that a thousand nodes do not come back in one instant.
fn jitter(pause: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(0u8) % 1000;
    pause.mul_f64(0.5 + random as f64 / 2000.0)
}

async fn once(
    serial: u64,
    endpoint: &Endpoint,
    tokens: &Tokens,
    owner: &mpsc::UnboundedSender<Message>,
) -> Result<(), ConnectError> {
    let authorized = Authorized::connect(endpoint, tokens.clone()).await?;
    let (out, receiver) = mpsc::unbounded_channel::<NodeMessage>();
    if owner.send(Message::LinkUp { serial, out: out.clone() }).is_err() {
        return Ok(());
    }
    let mut client = authorized.node_link();
    let call = client.link(UnboundedReceiverStream::new(receiver));
    let mut incoming = tokio::time::timeout(Duration::from_secs(30), call)
        .await
        .unwrap_or_else(|_| Err(tonic::Status::deadline_exceeded("the controller does not answer")))?
        .into_inner();
    tracing::info!(controller = %endpoint, "linked to the controller");
    let mut every = HEARTBEAT;
    let mut next = tokio::time::Instant::now();
    loop {
        tokio::select! {
            message = incoming.message() => {
                let Some(message) = message? else { return Ok(()) };
                let Some(kind) = message.kind else { continue };
                let config = match &kind {
                    controller_message::Kind::Welcome(w) => w.config.as_ref(),
                    controller_message::Kind::Config(c) => Some(c),
                    _ => None,
                };
                if let Some(secs) = config.map(|c| c.heartbeat_secs).filter(|s| *s > 0) {
                    every = Duration::from_secs(u64::from(secs));
                    next = next.min(tokio::time::Instant::now() + every);
                }
                if owner.send(Message::Controller(Box::new(kind))).is_err() {
                    return Ok(());
                }
            }
            () = tokio::time::sleep_until(next) => {
                next = tokio::time::Instant::now() + every;
                let (cpu_load_hundredths, free_memory_mb) = hardware::health();
                let beat = Heartbeat { cpu_load_hundredths, free_memory_mb };
                if out.send(NodeMessage { kind: Some(node_message::Kind::Heartbeat(beat)) }).is_err() {
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_but_never_exceed_their_length() {
        for _ in 0..100 {
            let pause = jitter(LONGEST_PAUSE);
            assert!(pause <= LONGEST_PAUSE && pause >= LONGEST_PAUSE / 2);
        }
    }
}
