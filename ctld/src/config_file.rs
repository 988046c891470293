//! The configuration file: reading it, and showing what is in force under Slurm's names.

use sluice_model::IndexSet;
use sluice_model::Time;
use sluice_model::config::{
    ClusterConfig, PreemptKind, PreemptionConfig, PriorityConfig, PriorityKind, SchedulingConfig,
};
use sluice_model::time::format_elapsed_long;
use std::path::Path;
use std::time::Duration;

/// All problems at once, each with file, line and key.
pub fn read(path: &Path) -> Result<ClusterConfig, Vec<String>> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| vec![format!("{shown}: can't be read: {e}")])?;
    sluice_model::config::parse(&text, &shown).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

/// What `scontrol show config` prints besides the configuration itself.
pub struct Facts {
    pub hostname: String,
    pub config_path: String,
    pub next_job_id: u32,
    pub boot_time: Time,
    pub user: String,
    pub uid: u32,
    pub state_dir: String,
}

/// Slurm's parameters that Sluice has, in Slurm's order, with the values in force. Parameters of parts that Sluice does
/// not have are left out, so that nobody takes a default of Slurm's for a setting of ours.
pub fn slurm_view(config: &ClusterConfig, facts: &Facts) -> Vec<(&'static str, String)> {
    let yes = |b: bool| if b { "YES" } else { "NO" }.to_owned();
    let codes = |set: &IndexSet| if set.is_empty() { "(null)".to_owned() } else { set.plain().to_string() };
    let or_null = |v: Option<String>| v.unwrap_or_else(|| "(null)".to_owned());
    let s = &config.scheduling;
    let t = &config.timing;
    let l = &config.limits;
    let gres: std::collections::BTreeSet<&str> =
        config.nodes.iter().flat_map(|n| &n.gres).map(|g| g.name.as_str()).collect();
    let gres: Vec<&str> = gres.into_iter().collect();
    let memory = match (s.default_memory_per_cpu_mb, s.default_memory_per_node_mb) {
        (Some(mb), _) => ("DefMemPerCPU", mb.to_string()),
        (None, Some(mb)) => ("DefMemPerNode", mb.to_string()),
        (None, None) => ("DefMemPerNode", "UNLIMITED".to_owned()),
    };
    let tres = std::iter::once("cpu,mem,energy,node,billing,fs/disk,vmem,pages".to_owned())
        .chain(gres.iter().map(|g| format!("gres/{g}")))
        .collect::<Vec<_>>()
        .join(",");
    let licenses = config.licenses.iter().map(|(n, c)| format!("{n}:{c}")).collect::<Vec<_>>().join(",");
    let enforce = match config.accounting.enforce.words() {
        words if words.is_empty() => "none".to_owned(),
        words => words.join(","),
    };
    let preempts = config.preemption.kind != PreemptKind::None;
    let mut out = vec![
        ("AccountingStorageEnforce", enforce),
        ("AccountingStorageHost", facts.hostname.clone()),
        ("AccountingStorageTRES", tres),
        ("AccountingStorageType", "accounting_storage/sluice".to_owned()),
        ("AuthType", "auth/sluice".to_owned()),
        ("BOOT_TIME", facts.boot_time.secs().to_string()),
        ("ClusterName", config.cluster_name.clone()),
        ("CredType", "cred/sluice".to_owned()),
        memory,
        ("EnforcePartLimits", if s.enforce_partition_limits { "ALL" } else { "NO" }.to_owned()),
        ("FirstJobId", l.first_job_id.to_string()),
        ("GresTypes", if gres.is_empty() { "(null)".to_owned() } else { gres.join(",") }),
        ("InactiveLimit", "0 sec".to_owned()),
        ("JobAcctGatherFrequency", "0".to_owned()),
        ("JobAcctGatherType", "jobacct_gather/sluice".to_owned()),
        ("JobRequeue", u8::from(s.requeue).to_string()),
        ("KillOnBadExit", "0".to_owned()),
        ("KillWait", format!("{} sec", t.kill_wait_secs)),
        ("Licenses", if licenses.is_empty() { "(null)".to_owned() } else { licenses }),
        ("MailDomain", or_null(config.mail.domain.clone())),
        ("MailProg", or_null(config.mail.program.clone())),
        ("MaxArraySize", l.max_array_size.to_string()),
        ("MaxBatchRequeue", l.max_requeue.to_string()),
        ("MaxJobCount", l.max_jobs.to_string()),
        ("MinJobAge", format!("{} sec", t.min_job_age_secs)),
        ("MpiDefault", "none".to_owned()),
        ("NEXT_JOB_ID", facts.next_job_id.to_string()),
        ("OverTimeLimit", format!("{} min", t.over_time_limit_minutes)),
        ("PreemptMode", preempt_mode(&config.preemption)),
        ("PreemptParameters", if preempts { "send_user_signal" } else { "(null)" }.to_owned()),
        ("PreemptType", config.preemption.kind.plugin().to_owned()),
        ("PreemptExemptTime", format_elapsed_long(Duration::from_secs(u64::from(config.preemption.exempt_secs)))),
        ("ProctrackType", "proctrack/cgroup".to_owned()),
        ("PrologFlags", "(null)".to_owned()),
        ("PropagateResourceLimits", "ALL".to_owned()),
        ("RequeueExit", codes(&config.requeue.exit_codes)),
        ("RequeueExitHold", codes(&config.requeue.hold_exit_codes)),
        ("ReturnToService", "1".to_owned()),
        ("SchedulerParameters", format!("default_queue_depth={}", s.queue_depth)),
        ("SchedulerType", if s.backfill { "sched/backfill" } else { "sched/builtin" }.to_owned()),
        ("SelectType", "select/cons_tres".to_owned()),
        ("SelectTypeParameters", select_parameters(s)),
        ("SLURM_CONF", facts.config_path.clone()),
        ("SLURM_VERSION", "26.05.0".to_owned()),
        ("SlurmctldHost[0]", facts.hostname.clone()),
        ("SlurmUser", format!("{}({})", facts.user, facts.uid)),
        ("SlurmdTimeout", format!("{} sec", t.node_timeout_secs)),
        ("StateSaveLocation", facts.state_dir.clone()),
        ("TaskPlugin", "task/sluice".to_owned()),
        ("TopologyPlugin", topology_plugin(config).to_owned()),
        ("TrackWCKey", yes(false)),
    ];
    let at = out.iter().position(|(key, _)| *key == "ProctrackType").unwrap_or(out.len());
    out.splice(at..at, priority_view(&config.priority));
    out
}

fn select_parameters(s: &SchedulingConfig) -> String {
    let words = [("CR_CORE_MEMORY", true), ("CR_LLN", s.least_loaded), ("CR_PACK_NODES", s.pack_tasks)];
    words.iter().filter(|(_, on)| *on).map(|(word, _)| *word).collect::<Vec<_>>().join(",")
}

fn topology_plugin(config: &ClusterConfig) -> &'static str {
    match (config.topology.switches.is_empty(), config.topology.blocks.is_empty()) {
        (false, _) => "topology/tree",
        (true, false) => "topology/block",
        (true, true) => "topology/default",
    }
}

/// With WITHIN where jobs of one QOS may preempt each other.
fn preempt_mode(p: &PreemptionConfig) -> String {
    let within = if p.within { ",WITHIN" } else { "" };
    format!("{}{within}", p.mode.shown())
}

/// The Priority… parameters, in Slurm's order.
fn priority_view(p: &PriorityConfig) -> Vec<(&'static str, String)> {
    let time = |secs: u32| format_elapsed_long(Duration::from_secs(u64::from(secs)));
    let type_ = ("PriorityType", p.kind.plugin().to_owned());
    if p.kind == PriorityKind::Fifo {
        // Slurm leaves the rest out, too: it has no effect. Clients read the weights.
        let mut out = vec![type_];
        out.extend(weights(&PriorityConfig::default()));
        return out;
    }
    let mut out = vec![
        ("PriorityParameters", "(null)".to_owned()),
        ("PrioritySiteFactorParameters", "(null)".to_owned()),
        ("PrioritySiteFactorPlugin", "(null)".to_owned()),
        ("PriorityDecayHalfLife", time(p.decay_half_life_secs)),
        ("PriorityCalcPeriod", time(p.calc_period_secs)),
        ("PriorityFavorSmall", if p.favor_small { "yes" } else { "no" }.to_owned()),
        ("PriorityFlags", p.flags.names().join(",")),
        ("PriorityMaxAge", time(p.max_age_secs)),
        type_,
        ("PriorityUsageResetPeriod", p.usage_reset.as_str().to_owned()),
    ];
    out.extend(weights(p));
    out
}

fn weights(p: &PriorityConfig) -> Vec<(&'static str, String)> {
    let tres = if p.weight_tres.is_empty() { "(null)".to_owned() } else { p.weight_tres.to_string() };
    vec![
        ("PriorityWeightAge", p.weight_age.to_string()),
        ("PriorityWeightAssoc", p.weight_assoc.to_string()),
        ("PriorityWeightFairShare", p.weight_fairshare.to_string()),
        ("PriorityWeightJobSize", p.weight_job_size.to_string()),
        ("PriorityWeightPartition", p.weight_partition.to_string()),
        ("PriorityWeightQOS", p.weight_qos.to_string()),
        ("PriorityWeightTRES", tres),
    ]
}
