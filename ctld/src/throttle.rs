//! Users' submissions at the pace that the configuration allows (`limits.submit_rate`, `limits.submit_burst`).
//!
//! Promises that none is lost: one that comes too early waits here for its turn, and one whose turn is further away than a
//! command waits for an answer is told when to come again, which the commands do. Operators are not held back. An array
//! is one submission. Says nothing about which jobs may be submitted.

use sluice_engine::command::{Caller, Role};
use sluice_engine::{Reject, State};
use sluice_model::pace::Pace;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So long a submission is kept waiting in its call, microseconds: a command says nothing until then.
const LONGEST: i64 = 3_000_000;
/// Then those who have not come for a while are forgotten.
const MANY: usize = 1000;

/// The paces of those who came of late, by user id.
pub struct Throttle {
    began: Instant,
    paces: Mutex<HashMap<u32, Pace>>,
}

impl Default for Throttle {
    fn default() -> Self {
        Throttle { began: Instant::now(), paces: Mutex::default() }
    }
}

impl Throttle {
    /// Returns when the caller may submit one more.
    pub async fn turn(&self, caller: &Caller, state: &State) -> Result<(), Reject> {
        let Some((rate, burst)) = state.config.as_ref().map(|c| (c.limits.submit_rate, c.limits.submit_burst)) else {
            return Ok(());
        };
        if rate == 0 || caller.role >= Role::Operator {
            return Ok(());
        }
        let now = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        let turn = {
            let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
            if paces.len() >= MANY {
                paces.retain(|_, pace| !pace.is_fresh(now));
            }
            paces.entry(caller.uid).or_default().take(now, rate, burst, LONGEST)
        };
        match turn {
            Ok(0) => Ok(()),
            Ok(wait) => {
                tokio::time::sleep(Duration::from_micros(wait.unsigned_abs())).await;
                Ok(())
            }
            // Not all of it: when many are told the same, those who come a little early take the turns one by one.
            Err(wait) => Err(Reject::TooFast { rate, wait_ms: u32::try_from(wait / 1000 - 1000).unwrap_or(u32::MAX) }),
        }
    }
}
