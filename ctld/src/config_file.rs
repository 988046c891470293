//! The configuration file: reading it, and showing what is in force under Slurm's names.

use sluice_model::Time;
use sluice_model::config::ClusterConfig;
use std::path::Path;

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
    vec![
        ("AccountingStorageEnforce", "none".to_owned()),
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
        ("PreemptMode", "OFF".to_owned()),
        ("PreemptType", "(null)".to_owned()),
        ("PriorityType", "priority/basic".to_owned()),
        ("PriorityWeightAge", "0".to_owned()),
        ("PriorityWeightAssoc", "0".to_owned()),
        ("PriorityWeightFairShare", "0".to_owned()),
        ("PriorityWeightJobSize", "0".to_owned()),
        ("PriorityWeightPartition", "0".to_owned()),
        ("PriorityWeightQOS", "0".to_owned()),
        ("PriorityWeightTRES", "(null)".to_owned()),
        ("ProctrackType", "proctrack/cgroup".to_owned()),
        ("PrologFlags", "(null)".to_owned()),
        ("PropagateResourceLimits", "ALL".to_owned()),
        ("RequeueExit", "(null)".to_owned()),
        ("RequeueExitHold", "(null)".to_owned()),
        ("ReturnToService", "1".to_owned()),
        ("SchedulerParameters", format!("default_queue_depth={}", s.queue_depth)),
        ("SchedulerType", if s.backfill { "sched/backfill" } else { "sched/builtin" }.to_owned()),
        ("SelectType", "select/cons_tres".to_owned()),
        ("SelectTypeParameters", "CR_CORE_MEMORY".to_owned()),
        ("SLURM_CONF", facts.config_path.clone()),
        ("SLURM_VERSION", "26.05.0".to_owned()),
        ("SlurmctldHost[0]", facts.hostname.clone()),
        ("SlurmUser", format!("{}({})", facts.user, facts.uid)),
        ("SlurmdTimeout", format!("{} sec", t.node_timeout_secs)),
        ("StateSaveLocation", facts.state_dir.clone()),
        ("TaskPlugin", "task/sluice".to_owned()),
        ("TopologyPlugin", "topology/default".to_owned()),
        ("TrackWCKey", yes(false)),
    ]
}
