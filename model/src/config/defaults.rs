//! What holds where the file says nothing. Slurm's defaults, except where a limit of Slurm's has no reason here.

use super::{LimitsConfig, MailConfig, SchedulingConfig, SecurityConfig, TimingConfig};

impl Default for SchedulingConfig {
    fn default() -> Self {
        SchedulingConfig {
            queue_depth: 10_000,
            backfill: true,
            default_memory_per_cpu_mb: None,
            default_memory_per_node_mb: None,
            requeue: true,
            kill_on_invalid_dependency: false,
            enforce_partition_limits: false,
            least_loaded: false,
            pack_tasks: false,
            max_switch_wait_secs: 300,
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        LimitsConfig {
            max_jobs: 10_000_000,
            max_array_size: 4_000_001,
            max_script_size: 16 << 20,
            max_environment_size: 16 << 20,
            max_requeue: 5,
            submit_rate: 0,
            submit_burst: 1000,
            first_job_id: 1,
        }
    }
}

impl Default for TimingConfig {
    fn default() -> Self {
        TimingConfig {
            kill_wait_secs: 30,
            min_job_age_secs: 300,
            node_timeout_secs: 300,
            heartbeat_secs: 10,
            over_time_limit_minutes: 0,
            requeue_delay_secs: 2,
        }
    }
}

/// Isolation fails closed; only root and the controller's own user administer.
impl Default for SecurityConfig {
    fn default() -> Self {
        SecurityConfig { best_effort: false, administrators: Vec::new(), operators: Vec::new() }
    }
}

/// No mail.
impl Default for MailConfig {
    fn default() -> Self {
        MailConfig { program: None, domain: None }
    }
}
