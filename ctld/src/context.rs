//! What every part of the running controller shares. Holds no cluster state of its own.

use crate::nodelink::Links;
use crate::owner::{OwnerFigures, OwnerHandle};
use crate::scheduling::SchedulingFigures;
use crate::store::Shelf;
use crate::throttle::Throttle;
use crate::view::Published;
use sluice_engine::command::{Caller, Role};
use sluice_identity::server::{Peer, Verifier};
use sluice_identity::{ClusterKeys, users};
use sluice_model::accounting::AdminLevel;
use sluice_model::{JobId, NodeName, Time};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{broadcast, watch};
use tonic::{Request, Status};

/// Shared by services, performer and timers.
pub struct Context {
    pub published: Arc<Published>,
    pub owner: OwnerHandle,
    pub links: Links,
    pub shelf: Arc<dyn Shelf>,
    pub keys: Arc<ClusterKeys>,
    pub verifier: Arc<Verifier>,
    pub join_tokens: sluice_identity::join::JoinTokens,
    /// Jobs whose state changed, for those who watch one.
    pub job_changes: broadcast::Sender<JobId>,
    pub config_path: PathBuf,
    pub state_dir: PathBuf,
    /// The configuration file is read and applied by one request at a time.
    pub reconfiguring: tokio::sync::Mutex<()>,
    pub started: Time,
    pub owner_figures: Arc<OwnerFigures>,
    pub scheduling_figures: Arc<SchedulingFigures>,
    pub gate: watch::Sender<bool>,
    /// Nodes expected back after a restart, before scheduling begins.
    pub awaited: Vec<NodeName>,
    pub shutdown: watch::Sender<bool>,
    pub serial: AtomicU64,
    pub throttle: Throttle,
}

impl Context {
    pub fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Who calls, proven.
    pub fn peer<T>(&self, request: &Request<T>) -> Result<Peer, Status> {
        sluice_identity::server::peer(request, &self.verifier)
    }

    /// The caller as the engine judges it. Node daemons are no callers of user requests.
    pub fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Status> {
        match self.peer(request)? {
            Peer::Local { uid, gid, .. } => Ok(self.caller_of(uid, gid)),
            Peer::User { uid, gid, .. } => Ok(self.caller_of(uid, gid)),
            Peer::Node { host } => Err(Status::permission_denied(format!("{host} speaks for itself, not for a user"))),
        }
    }

    fn caller_of(&self, uid: u32, gid: u32) -> Caller {
        let user = users::name_of(uid);
        let groups = users::groups_of(uid);
        let role = self.role(uid, &user);
        Caller { uid, gid, user, groups, role }
    }

    fn role(&self, uid: u32, user: &str) -> Role {
        if uid == 0 || uid == nix::unistd::geteuid().as_raw() {
            return Role::Administrator;
        }
        let state = self.published.state();
        let configured = match &state.config {
            Some(config) if config.security.administrators.iter().any(|a| a == user) => Role::Administrator,
            Some(config) if config.security.operators.iter().any(|o| o == user) => Role::Operator,
            _ => Role::User,
        };
        let given = match state.accounting.users.get(user).map(|u| u.admin_level) {
            Some(AdminLevel::Administrator) => Role::Administrator,
            Some(AdminLevel::Operator) => Role::Operator,
            Some(AdminLevel::None) | None => Role::User,
        };
        configured.max(given)
    }

    /// Returns when the controller stops: long streams end then.
    pub async fn stopping(&self) {
        // An error means that the sender is gone, which is the same.
        let _ = self.shutdown.subscribe().wait_for(|stop| *stop).await;
    }

    /// Opens the scheduler's gate once every node that was up before the restart is back.
    pub fn node_came(&self) {
        if !*self.gate.borrow() && self.awaited.iter().all(|n| self.links.is_connected(n)) {
            self.gate.send_replace(true);
        }
    }
}
