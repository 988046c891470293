//! The cluster's configuration as it was when it was applied.

use super::node::{partition_from_disk, partition_to_disk, spec_from_disk, spec_to_disk};
use super::{ConvertError, Result, index_set_from_disk, names_from_disk, names_to_disk, required};
use sluice_model::accounting::Enforce;
use sluice_model::config::{
    AccountingConfig, ClusterConfig, LimitsConfig, MailConfig, RequeueCause, RequeueConfig, RequeueRule,
    SchedulingConfig, SecurityConfig, TimingConfig,
};
use sluice_model::config::{BlockSpec, SwitchSpec, TopologyConfig};
use sluice_model::config::{
    Mode, PreemptKind, PreemptionConfig, PriorityConfig, PriorityFlags, PriorityKind, UsageReset,
};
use sluice_model::tres_weights::TresWeights;
use sluice_proto::v1;
use v1::disk_config::{Limits, Mail, Priority, Scheduling, Security, Timing};

pub fn config_to_disk(config: &ClusterConfig) -> v1::DiskConfig {
    let ClusterConfig {
        cluster_name,
        nodes,
        partitions,
        scheduling,
        priority,
        limits,
        timing,
        requeue,
        security,
        mail,
        accounting,
        topology,
        preemption,
        licenses,
    } = config;
    v1::DiskConfig {
        cluster_name: cluster_name.clone(),
        nodes: nodes.iter().map(spec_to_disk).collect(),
        partitions: partitions.iter().map(partition_to_disk).collect(),
        scheduling: Some(scheduling_to_disk(scheduling)),
        priority: (*priority != unsaid_priority()).then(|| priority_to_disk(priority)),
        limits: Some(limits_to_disk(limits)),
        timing: Some(timing_to_disk(timing)),
        requeue: (*requeue != RequeueConfig::default()).then(|| requeue_to_disk(requeue)),
        security: Some(security_to_disk(security)),
        mail: Some(mail_to_disk(mail)),
        accounting: (*accounting != AccountingConfig::default()).then(|| accounting_to_disk(accounting)),
        topology: (*topology != TopologyConfig::default()).then(|| topology_to_disk(topology)),
        preemption: (*preemption != PreemptionConfig::default()).then(|| preemption_to_disk(preemption)),
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
            least_loaded: s.least_loaded,
            pack_tasks: s.pack_tasks,
            max_switch_wait_secs: s.max_switch_wait_secs.unwrap_or(SchedulingConfig::default().max_switch_wait_secs),
        },
        priority: config.priority.map(priority_from_disk).transpose()?.unwrap_or_else(unsaid_priority),
        limits: LimitsConfig {
            max_jobs: l.max_jobs,
            max_array_size: l.max_array_size,
            max_script_size: l.max_script_size,
            max_environment_size: l.max_environment_size,
            max_requeue: l.max_requeue,
            submit_rate: l.submit_rate,
            submit_burst: l.submit_burst.unwrap_or(LimitsConfig::default().submit_burst),
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
        requeue: config.requeue.map(requeue_from_disk).transpose()?.unwrap_or_default(),
        security: SecurityConfig {
            best_effort: security.best_effort,
            administrators: security.administrators,
            operators: security.operators,
        },
        mail: MailConfig { program: mail.program, domain: mail.domain },
        // Before this section existed nothing was enforced.
        accounting: config.accounting.map(accounting_from_disk).transpose()?.unwrap_or_default(),
        topology: config.topology.map(topology_from_disk).unwrap_or_default(),
        preemption: config.preemption.map(preemption_from_disk).transpose()?.unwrap_or_default(),
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
        least_loaded,
        pack_tasks,
        max_switch_wait_secs,
    } = *scheduling;
    Scheduling {
        queue_depth,
        backfill,
        default_memory_per_cpu_mb,
        default_memory_per_node_mb,
        requeue,
        kill_on_invalid_dependency,
        enforce_partition_limits,
        least_loaded,
        pack_tasks,
        // What holds by default is left out: records of releases that did not have it stay as they were.
        max_switch_wait_secs: (max_switch_wait_secs != SchedulingConfig::default().max_switch_wait_secs)
            .then_some(max_switch_wait_secs),
    }
}

fn topology_to_disk(topology: &TopologyConfig) -> v1::disk_config::Topology {
    use v1::disk_config::topology::{Block, Switch};
    let TopologyConfig { switches, blocks, block_sizes } = topology;
    let switch =
        |s: &SwitchSpec| Switch { name: s.name.clone(), nodes: names_to_disk(&s.nodes), switches: s.switches.clone() };
    let block = |b: &BlockSpec| Block { name: b.name.clone(), nodes: names_to_disk(&b.nodes) };
    v1::disk_config::Topology {
        switches: switches.iter().map(switch).collect(),
        blocks: blocks.iter().map(block).collect(),
        block_sizes: block_sizes.clone(),
    }
}

fn topology_from_disk(topology: v1::disk_config::Topology) -> TopologyConfig {
    let switch = |s: v1::disk_config::topology::Switch| SwitchSpec {
        name: s.name,
        nodes: names_from_disk(s.nodes),
        switches: s.switches,
    };
    let block = |b: v1::disk_config::topology::Block| BlockSpec { name: b.name, nodes: names_from_disk(b.nodes) };
    TopologyConfig {
        switches: topology.switches.into_iter().map(switch).collect(),
        blocks: topology.blocks.into_iter().map(block).collect(),
        block_sizes: topology.block_sizes,
    }
}

fn limits_to_disk(limits: &LimitsConfig) -> Limits {
    let LimitsConfig {
        max_jobs,
        max_array_size,
        max_script_size,
        max_environment_size,
        max_requeue,
        submit_rate,
        submit_burst,
        first_job_id,
    } = *limits;
    Limits {
        max_jobs,
        max_array_size,
        max_script_size,
        max_environment_size,
        max_requeue,
        first_job_id,
        submit_rate,
        submit_burst: (submit_burst != LimitsConfig::default().submit_burst).then_some(submit_burst),
    }
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

fn accounting_to_disk(accounting: &AccountingConfig) -> v1::disk_config::Accounting {
    let AccountingConfig { enforce } = accounting;
    v1::disk_config::Accounting { enforce: enforce.words().into_iter().map(str::to_owned).collect() }
}

fn accounting_from_disk(accounting: v1::disk_config::Accounting) -> Result<AccountingConfig> {
    let words = accounting.enforce.iter().map(String::as_str);
    let unknown = |word: &str| ConvertError::new("accounting.enforce", format!("{word:?} is of a newer release"));
    Ok(AccountingConfig { enforce: Enforce::parse(words).map_err(unknown)? })
}

fn requeue_to_disk(requeue: &RequeueConfig) -> v1::disk_config::Requeue {
    let RequeueConfig { exit_codes, hold_exit_codes, rules: _ } = requeue;
    let rule = |cause: RequeueCause| {
        let RequeueRule { retries, delay_secs, longest_delay_secs } = requeue.rule(cause);
        let cause = cause.as_str().to_owned();
        v1::disk_config::requeue::Rule { cause, retries, delay_secs, longest_delay_secs }
    };
    let says = |cause: &RequeueCause| requeue.rule(*cause) != RequeueRule::default();
    v1::disk_config::Requeue {
        exit_codes: Some(exit_codes.into()),
        hold_exit_codes: Some(hold_exit_codes.into()),
        rules: RequeueCause::ALL.into_iter().filter(says).map(rule).collect(),
    }
}

fn requeue_from_disk(requeue: v1::disk_config::Requeue) -> Result<RequeueConfig> {
    let mut out = RequeueConfig {
        exit_codes: index_set_from_disk(requeue.exit_codes, "requeue.exit_codes")?,
        hold_exit_codes: index_set_from_disk(requeue.hold_exit_codes, "requeue.hold_exit_codes")?,
        ..RequeueConfig::default()
    };
    for rule in requeue.rules {
        let v1::disk_config::requeue::Rule { cause, retries, delay_secs, longest_delay_secs } = rule;
        let found = RequeueCause::ALL.into_iter().find(|c| c.as_str() == cause);
        let found = found.ok_or_else(|| unknown("requeue.rules", &cause))?;
        out.rules[found as usize] = RequeueRule { retries, delay_secs, longest_delay_secs };
    }
    Ok(out)
}

fn preemption_to_disk(preemption: &PreemptionConfig) -> v1::disk_config::Preemption {
    let PreemptionConfig { kind, mode, within, exempt_secs } = preemption;
    let (kind, mode) = (kind.as_str().to_owned(), mode.code());
    v1::disk_config::Preemption { kind, mode, within: *within, exempt_secs: *exempt_secs }
}

fn preemption_from_disk(p: v1::disk_config::Preemption) -> Result<PreemptionConfig> {
    Ok(PreemptionConfig {
        kind: PreemptKind::parse(&p.kind).ok_or_else(|| unknown("preemption.kind", &p.kind))?,
        mode: mode_from_disk(p.mode)?,
        within: p.within,
        exempt_secs: p.exempt_secs,
    })
}

pub(super) fn mode_from_disk(code: u32) -> Result<Mode> {
    Mode::from_code(code).ok_or_else(|| unknown("preempt_mode", &code.to_string()))
}

fn mail_to_disk(mail: &MailConfig) -> Mail {
    let MailConfig { program, domain } = mail;
    Mail { program: program.clone(), domain: domain.clone() }
}

fn priority_to_disk(priority: &PriorityConfig) -> Priority {
    let PriorityConfig {
        kind,
        weight_age,
        weight_assoc,
        weight_fairshare,
        weight_job_size,
        weight_partition,
        weight_qos,
        weight_tres,
        max_age_secs,
        favor_small,
        decay_half_life_secs,
        usage_reset,
        calc_period_secs,
        dampening_factor,
        flags,
        predictions,
    } = priority;
    Priority {
        kind: kind.as_str().to_owned(),
        weight_age: *weight_age,
        weight_assoc: *weight_assoc,
        weight_fairshare: *weight_fairshare,
        weight_job_size: *weight_job_size,
        weight_partition: *weight_partition,
        weight_qos: *weight_qos,
        weight_tres: weight_tres.to_string(),
        max_age_secs: *max_age_secs,
        favor_small: *favor_small,
        decay_half_life_secs: *decay_half_life_secs,
        usage_reset: usage_reset.as_str().to_owned(),
        calc_period_secs: *calc_period_secs,
        dampening_factor: *dampening_factor,
        flags: flags.names().into_iter().map(str::to_owned).collect(),
        predictions: *predictions,
    }
}

/// What a configuration on disk means that says nothing of the order: that of the releases that wrote it so.
fn unsaid_priority() -> PriorityConfig {
    PriorityConfig { kind: PriorityKind::Fifo, ..PriorityConfig::default() }
}

/// A word or text that this release can't read.
fn unknown(field: &'static str, value: &str) -> ConvertError {
    ConvertError::new(field, format!("is '{value}', which this release does not know"))
}

fn priority_from_disk(p: Priority) -> Result<PriorityConfig> {
    let flags = p.flags.iter().map(|f| PriorityFlags::parse(f).ok_or_else(|| unknown("priority.flags", f)));
    Ok(PriorityConfig {
        kind: PriorityKind::parse(&p.kind).ok_or_else(|| unknown("priority.kind", &p.kind))?,
        weight_age: p.weight_age,
        weight_assoc: p.weight_assoc,
        weight_fairshare: p.weight_fairshare,
        weight_job_size: p.weight_job_size,
        weight_partition: p.weight_partition,
        weight_qos: p.weight_qos,
        weight_tres: TresWeights::parse(&p.weight_tres).map_err(|_| unknown("priority.weight_tres", &p.weight_tres))?,
        max_age_secs: p.max_age_secs,
        favor_small: p.favor_small,
        decay_half_life_secs: p.decay_half_life_secs,
        usage_reset: UsageReset::parse(&p.usage_reset)
            .ok_or_else(|| unknown("priority.usage_reset", &p.usage_reset))?,
        calc_period_secs: p.calc_period_secs,
        dampening_factor: p.dampening_factor,
        flags: flags.collect::<Result<Vec<_>>>()?.into_iter().fold(PriorityFlags::default(), PriorityFlags::with),
        predictions: p.predictions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::config;

    fn configured(section: &str) -> ClusterConfig {
        let text = format!(
            "cluster_name = \"c\"\n[[node]]\nname = \"a\"\ncpus = 2\nmemory_mb = 10\n[[partition]]\nname = \"p\"\nnodes = \"ALL\"\n{section}"
        );
        config::parse(&text, "f").unwrap_or_else(|e| panic!("{e:?}"))
    }

    #[test]
    fn an_order_that_is_not_on_disk_is_that_of_arrival_as_it_was_when_it_was_written() {
        for section in ["", "[priority]\ntype = \"fifo\"\n"] {
            let config = configured(section);
            assert_eq!(config_from_disk(config_to_disk(&config)).unwrap(), config);
        }
        let older = v1::DiskConfig { priority: None, ..config_to_disk(&configured("")) };
        assert_eq!(config_from_disk(older).unwrap().priority.kind, PriorityKind::Fifo);
    }
}
