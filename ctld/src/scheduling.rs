//! Runs the scheduler: over a snapshot, on a thread of its own, after something changed. Its starts go to the owner as
//! one command, where each is checked again; its remarks on waiting jobs are published for readers.

use crate::owner::{OwnerHandle, wall_clock};
use crate::view::{Published, Remarks};
use sluice_engine::{Command, query};
use sluice_model::config::UsageReset;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Between two passes at least so long, so that a burst of submissions shares one.
const QUIET: Duration = Duration::from_millis(2);
/// And at least so many times the last pass's own length, so that scheduling never takes more than a share of a core.
const SHARE: u32 = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A pass without any change, for plans that only time can alter.
const IDLE_PASS: Duration = Duration::from_secs(30);

/// For `sdiag` and the log.
#[derive(Default, Debug)]
pub struct SchedulingFigures {
    pub passes: AtomicU64,
    pub last_us: AtomicU64,
    pub slowest_us: AtomicU64,
    pub started: AtomicU64,
}

/// Runs until the owner is gone. `gate` opens when the nodes had the time to come back after a restart.
pub async fn run(
    published: Arc<Published>,
    owner: OwnerHandle,
    mut changed: watch::Receiver<u64>,
    mut gate: watch::Receiver<bool>,
    figures: Arc<SchedulingFigures>,
) {
    if gate.wait_for(|open| *open).await.is_err() {
        return;
    }
    changed.mark_changed();
    let mut known = query::Feed::new();
    loop {
        match tokio::time::timeout(IDLE_PASS, changed.changed()).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(_)) => return,
        }
        changed.mark_unchanged();
        let begin = Instant::now();
        let snapshot = Arc::clone(&published);
        // Lost with a pass that fails: the next one starts anew.
        let mut feed = std::mem::take(&mut known);
        let pass = tokio::task::spawn_blocking(move || {
            let state = snapshot.state();
            let now = wall_clock();
            let board = snapshot.board(&state, now);
            let mut used_up = false;
            if !Arc::ptr_eq(&board, &snapshot.remarks().board) {
                feed.start_anew();
                used_up = !query::used_up(&state, &board).is_empty();
            }
            feed.update(&state, now, &board.over(&state));
            if feed.pending() == 0 {
                let remarks = Remarks { at: Some(now), board, ..Remarks::default() };
                return (sluice_sched::Plan::default(), remarks, feed, used_up);
            }
            let mut plan = feed.plan(&state, now, &board.over(&state));
            let remarks = Remarks {
                reasons: std::mem::take(&mut plan.reasons).into_iter().collect(),
                planned: std::mem::take(&mut plan.reservations).into_iter().map(|r| (r.job, r)).collect(),
                at: Some(now),
                board,
            };
            (plan, remarks, feed, used_up)
        })
        .await;
        let (plan, remarks, used_up) = match pass {
            Ok((plan, remarks, feed, used_up)) => {
                known = feed;
                (plan, remarks, used_up)
            }
            Err(error) => {
                // A defect of the scheduler must not take the controller down; it is tried again after the next change.
                tracing::error!(%error, "the scheduling pass failed");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        published.publish_remarks(remarks);
        let spent = begin.elapsed();
        let us = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        figures.passes.fetch_add(1, Ordering::Relaxed);
        figures.last_us.store(us, Ordering::Relaxed);
        figures.slowest_us.fetch_max(us, Ordering::Relaxed);
        if used_up && let Err(reject) = owner.command(Command::EndUsedUp).await {
            tracing::warn!("jobs whose groups have used up their minutes run on: {}", reject.message());
        }
        if !plan.starts.is_empty() || !plan.preemptions.is_empty() || !plan.lapsed.is_empty() {
            figures.started.fetch_add(plan.starts.len() as u64, Ordering::Relaxed);
            if let Err(reject) = owner
                .command(Command::ApplyPlan { starts: plan.starts, preemptions: plan.preemptions, lapsed: plan.lapsed })
                .await
            {
                tracing::warn!(
                    code = reject.code(),
                    detail = reject.detail(),
                    "a plan was not applied: {}",
                    reject.message()
                );
            }
        }
        tokio::time::sleep((spent * SHARE).clamp(QUIET, LONGEST_PAUSE)).await;
    }
}

/// Sends `Tick` when the engine wants one, at least once a second.
pub async fn tick(published: Arc<Published>, owner: OwnerHandle, mut changed: watch::Receiver<u64>) {
    const LONGEST: Duration = Duration::from_secs(1);
    let started = wall_clock();
    let zone = jiff::tz::TimeZone::system();
    loop {
        let state = published.state();
        let period = state.config.as_ref().map_or(UsageReset::None, |c| c.priority.usage_reset);
        if period.is_due(state.usage.reset, started, wall_clock(), &zone)
            && owner.command(Command::ResetUsage).await.is_err()
        {
            tracing::warn!("usage could not be reset; it is tried again");
        }
        let wait = query::next_wakeup(&published.state())
            .map_or(LONGEST, |at| at.since(wall_clock()))
            .clamp(Duration::from_millis(5), LONGEST);
        tokio::select! {
            () = tokio::time::sleep(wait) => {
                if owner.command(Command::Tick).await.is_err_and(|r| matches!(r, sluice_engine::Reject::Internal { .. })) {
                    return;
                }
            }
            // A change may have brought an earlier deadline; look again, but not for each change of a burst.
            seen = changed.changed() => {
                if seen.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}
