//! Waiting for the answer of a controller that has taken a request.
//!
//! One that is stopped, or too busy to work, still accepts connections. Promises that a command is not silent for more
//! than a few seconds, that it ends, and that it says what it does not know then. What counts is the time in which
//! nothing comes: a long list may take longer.

use super::Retry;
use crate::view::clock::Clock;
use std::cell::Cell;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long an answer may take: to a change, and to a mere reading.
const DEADLINE: Duration = Duration::from_secs(120);
const READ_DEADLINE: Duration = Duration::from_secs(30);
/// How long it is awaited in silence.
const NOTICE_AFTER: Duration = Duration::from_secs(5);

thread_local! {
    /// Commands run on one thread, and ask one thing at a time.
    static HEARD: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A part of the answer has come.
pub fn heard() {
    HEARD.set(Some(Instant::now()));
}

/// The answer, or why there is none. `SLUICE_ANSWER_TIMEOUT` (seconds) overrides the deadline.
pub(super) async fn within<T>(retry: Retry, answer: impl Future<Output = T>) -> Result<T, String> {
    let limit = super::seconds_of("SLUICE_ANSWER_TIMEOUT").unwrap_or(match retry {
        Retry::Read => READ_DEADLINE,
        Retry::Harmless | Retry::Keyed | Retry::Unsent => DEADLINE,
    });
    until(limit, retry, answer).await
}

/// Gives up when nothing has come for so long.
async fn until<T>(limit: Duration, retry: Retry, answer: impl Future<Output = T>) -> Result<T, String> {
    let silence = NOTICE_AFTER.min(limit / 2);
    let begin = Instant::now();
    let last = || HEARD.get().map_or(begin, |at| at.max(begin));
    let mut answer = std::pin::pin!(answer);
    let mut said = false;
    loop {
        let since = last();
        let patience = if said { limit } else { silence };
        match timeout_at(since + patience, &mut answer).await {
            Ok(answer) => return Ok(answer),
            Err(_) if last() > since => {}
            Err(_) if !said => {
                said = true;
                let rest = i64::try_from((limit - silence).as_millis()).unwrap_or(i64::MAX);
                let clock = Clock::from_environment(sluice_identity::now_ms().saturating_add(rest));
                let (name, until) = (crate::commands::called(), clock.time(clock.now.0));
                crate::errln!("{name}: error: slurm controller does not answer: waiting until {until} at most");
            }
            Err(_) => {
                let unknown = match retry {
                    Retry::Read => "",
                    _ => "; whether it does what was asked is not known",
                };
                return Err(format!("no answer from the controller within {} s{unknown}", limit.as_secs()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_coming_is_waited_for_and_silence_is_not() {
        crate::client::block_on(async {
            let limit = Duration::from_secs(2);
            let slow_list = async {
                for _ in 0..20 {
                    tokio::time::sleep(Duration::from_millis(150)).await;
                    heard();
                }
                "all of it"
            };
            assert_eq!(until(limit, Retry::Read, slow_list).await, Ok("all of it"));
            let none = until(Duration::from_millis(2), Retry::Read, std::future::pending::<()>()).await.unwrap_err();
            assert_eq!(none, "no answer from the controller within 0 s");
        });
    }
}
