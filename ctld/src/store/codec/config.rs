//! The cluster's configuration as it was when it was applied.

use super::node::{partition_from_disk, partition_to_disk, spec_from_disk, spec_to_disk};
use super::{Result, required};
use sluice_model::config::{ClusterConfig, LimitsConfig, MailConfig, SchedulingConfig, SecurityConfig, TimingConfig};
use sluice_proto::v1;
use v1::disk_config::{Limits, Mail, Scheduling, Security, Timing};

pub fn config_to_disk(config: &ClusterConfig) -> v1::DiskConfig {
    let ClusterConfig { cluster_name, nodes, partitions, scheduling, limits, timing, security, mail, licenses } =
        config;
    v1::DiskConfig {
        cluster_name: cluster_name.clone(),
        nodes: nodes.iter().map(spec_to_disk).collect(),
        partitions: partitions.iter().map(partition_to_disk).collect(),
        scheduling: Some(scheduling_to_disk(scheduling)),
        limits: Some(limits_to_disk(limits)),
        timing: Some(timing_to_disk(timing)),
        security: Some(security_to_disk(security)),
        mail: Some(mail_to_disk(mail)),
        licenses: licenses.iter().map(|(name, count)| (name.clone(), *count)).collect(),
    }
}

pub fn config_from_disk(config: v1::DiskConfig) -> Result<ClusterConfig> {
    let s = required(config.scheduling, "scheduling")?;
    let l = required(config.limits, "limits")?;
    let t = required(config.timing, "timing")?;
    let security = required(config.security, "security")?;
    let mail = required(config.mail, "mail")?;
    Ok(ClusterConfig {
        cluster_name: config.cluster_name,
        nodes: config.nodes.into_iter().map(spec_from_disk).collect::<Result<_>>()?,
        partitions: config.partitions.into_iter().map(partition_from_disk).collect::<Result<_>>()?,
        scheduling: SchedulingConfig {
            queue_depth: s.queue_depth,
            backfill: s.backfill,
            default_memory_per_cpu_mb: s.default_memory_per_cpu_mb,
            default_memory_per_node_mb: s.default_memory_per_node_mb,
            requeue: s.requeue,
            kill_on_invalid_dependency: s.kill_on_invalid_dependency,
            enforce_partition_limits: s.enforce_partition_limits,
        },
        limits: LimitsConfig {
            max_jobs: l.max_jobs,
            max_array_size: l.max_array_size,
            max_script_size: l.max_script_size,
            max_environment_size: l.max_environment_size,
            max_requeue: l.max_requeue,
            first_job_id: l.first_job_id,
        },
        timing: TimingConfig {
            kill_wait_secs: t.kill_wait_secs,
            min_job_age_secs: t.min_job_age_secs,
            node_timeout_secs: t.node_timeout_secs,
            heartbeat_secs: t.heartbeat_secs,
            over_time_limit_minutes: t.over_time_limit_minutes,
            requeue_delay_secs: t.requeue_delay_secs,
        },
        security: SecurityConfig {
            best_effort: security.best_effort,
            administrators: security.administrators,
            operators: security.operators,
        },
        mail: MailConfig { program: mail.program, domain: mail.domain },
        licenses: config.licenses.into_iter().collect(),
    })
}

fn scheduling_to_disk(scheduling: &SchedulingConfig) -> Scheduling {
    let SchedulingConfig {
        queue_depth,
        backfill,
        default_memory_per_cpu_mb,
        default_memory_per_node_mb,
        requeue,
        kill_on_invalid_dependency,
        enforce_partition_limits,
    } = *scheduling;
    Scheduling {
        queue_depth,
        backfill,
        default_memory_per_cpu_mb,
        default_memory_per_node_mb,
        requeue,
        kill_on_invalid_dependency,
        enforce_partition_limits,
    }
}

fn limits_to_disk(limits: &LimitsConfig) -> Limits {
    let LimitsConfig { max_jobs, max_array_size, max_script_size, max_environment_size, max_requeue, first_job_id } =
        *limits;
    Limits { max_jobs, max_array_size, max_script_size, max_environment_size, max_requeue, first_job_id }
}

fn timing_to_disk(timing: &TimingConfig) -> Timing {
    let TimingConfig {
        kill_wait_secs,
        min_job_age_secs,
        node_timeout_secs,
        heartbeat_secs,
        over_time_limit_minutes,
        requeue_delay_secs,
    } = *timing;
    Timing {
        kill_wait_secs,
        min_job_age_secs,
        node_timeout_secs,
        heartbeat_secs,
        over_time_limit_minutes,
        requeue_delay_secs,
    }
}

fn security_to_disk(security: &SecurityConfig) -> Security {
    let SecurityConfig { best_effort, administrators, operators } = security;
    Security { best_effort: *best_effort, administrators: administrators.clone(), operators: operators.clone() }
}

fn mail_to_disk(mail: &MailConfig) -> Mail {
    let MailConfig { program, domain } = mail;
    Mail { program: program.clone(), domain: domain.clone() }
}
