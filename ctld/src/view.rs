//! What readers see: an immutable snapshot of the engine's state and the scheduler's latest remarks on it.
//!
//! The owner publishes the state after each durable batch; the scheduling task publishes its remarks after each pass.
//! Readers take both without waiting for anyone.

use arc_swap::ArcSwap;
use sluice_engine::State;
use sluice_engine::query::Board;
use sluice_model::{JobId, Reason, Time};
use sluice_sched::PlannedReservation;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the scheduler said about jobs that wait; not part of the durable state, renewed by every pass.
#[derive(Clone, Debug, Default)]
pub struct Remarks {
    pub reasons: BTreeMap<JobId, Reason>,
    pub planned: BTreeMap<JobId, PlannedReservation>,
    /// When the pass was made.
    pub at: Option<Time>,
    /// The priorities and limits that it went by.
    pub board: Arc<Board>,
}

/// The current snapshot, replaced as a whole.
#[derive(Debug, Default)]
pub struct Published {
    state: ArcSwap<State>,
    remarks: ArcSwap<Remarks>,
}

impl Published {
    pub fn new(state: State) -> Self {
        Published { state: ArcSwap::from_pointee(state), remarks: ArcSwap::default() }
    }
    pub fn state(&self) -> Arc<State> {
        self.state.load_full()
    }
    pub fn remarks(&self) -> Arc<Remarks> {
        self.remarks.load_full()
    }
    /// The priorities and limits in force, made anew when their time has come.
    pub fn board(&self, state: &State, now: Time) -> Arc<Board> {
        let board = Arc::clone(&self.remarks().board);
        if board.is_stale(state, now) { Arc::new(Board::new(state, now, Some(&board))) } else { board }
    }
    pub fn publish_state(&self, state: State) {
        self.state.store(Arc::new(state));
    }
    pub fn publish_remarks(&self, remarks: Remarks) {
        self.remarks.store(Arc::new(remarks));
    }
}
