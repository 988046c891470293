//! Steps: keys, records, usage.

use super::error::ConvertError;
use super::{limits, scalar};
use crate::v1;
use sluice_model::step::{Extreme, Measure, Spread, StepRecord, Usage};
use sluice_model::{StepId, StepKey};

impl From<&StepKey> for v1::StepKey {
    fn from(key: &StepKey) -> Self {
        v1::StepKey { job: key.job.0, attempt: key.attempt, step: key.step.to_wire() }
    }
}

impl TryFrom<v1::StepKey> for StepKey {
    type Error = ConvertError;
    fn try_from(message: v1::StepKey) -> Result<Self, ConvertError> {
        Ok(StepKey {
            job: scalar::job_id(message.job, "job")?,
            attempt: message.attempt,
            step: StepId::from_wire(message.step),
        })
    }
}

impl From<&Usage> for v1::Usage {
    fn from(usage: &Usage) -> Self {
        v1::Usage {
            user_cpu_us: usage.user_cpu_us,
            system_cpu_us: usage.system_cpu_us,
            max_rss_bytes: usage.max_rss_bytes,
            max_vmsize_bytes: usage.max_vmsize_bytes,
            major_faults: usage.major_faults,
            read_bytes: usage.read_bytes,
            written_bytes: usage.written_bytes,
        }
    }
}

impl TryFrom<v1::Usage> for Usage {
    type Error = ConvertError;
    /// Any counts will do; sums saturate.
    fn try_from(message: v1::Usage) -> Result<Self, ConvertError> {
        Ok(Usage {
            user_cpu_us: message.user_cpu_us,
            system_cpu_us: message.system_cpu_us,
            max_rss_bytes: message.max_rss_bytes,
            max_vmsize_bytes: message.max_vmsize_bytes,
            major_faults: message.major_faults,
            read_bytes: message.read_bytes,
            written_bytes: message.written_bytes,
        })
    }
}

impl From<&Spread> for v1::UsageSpread {
    fn from(spread: &Spread) -> Self {
        let extreme = |e: Extreme| Some(v1::UsageExtreme { amount: e.amount, task: e.task, node: e.node });
        v1::UsageSpread {
            measure: spread.measure.number(),
            total: spread.total,
            tasks: spread.tasks,
            largest: extreme(spread.largest),
            smallest: extreme(spread.smallest),
        }
    }
}

impl TryFrom<v1::UsageSpread> for Spread {
    type Error = ConvertError;
    fn try_from(message: v1::UsageSpread) -> Result<Self, ConvertError> {
        let extreme = |e: Option<v1::UsageExtreme>| {
            let e = e.unwrap_or_default();
            Extreme { amount: e.amount, task: e.task, node: e.node }
        };
        Ok(Spread {
            measure: Measure::from_number(message.measure)
                .ok_or_else(|| ConvertError::new("measure", format!("{} is not known", message.measure)))?,
            total: message.total,
            tasks: message.tasks,
            largest: extreme(message.largest),
            smallest: extreme(message.smallest),
        })
    }
}

impl From<&StepRecord> for v1::StepRecord {
    fn from(record: &StepRecord) -> Self {
        v1::StepRecord {
            key: Some((&record.key).into()),
            name: scalar::to_bytes(&record.name),
            nodes: record.nodes.iter().map(ToString::to_string).collect(),
            tasks: record.tasks,
            cpus: record.cpus,
            memory_mb: record.memory_mb,
            gres: record.gres.iter().map(Into::into).collect(),
            start: record.start.0,
            end: record.end.map(|t| t.0),
            state: record.state.long().to_owned(),
            exit: Some((&record.exit).into()),
            usage: Some((&record.usage).into()),
            spread: record.spread.iter().map(Into::into).collect(),
            submit_line: scalar::to_bytes(&record.submit_line),
            distribution: record.distribution.clone(),
            srun_host: record.srun_host.clone(),
            srun_pid: record.srun_pid,
        }
    }
}

impl TryFrom<v1::StepRecord> for StepRecord {
    type Error = ConvertError;
    fn try_from(message: v1::StepRecord) -> Result<Self, ConvertError> {
        Ok(StepRecord {
            key: scalar::required(message.key, "key")?,
            name: scalar::os_bytes(message.name, "name", limits::TEXT)?,
            nodes: scalar::node_names(message.nodes, "nodes")?,
            tasks: message.tasks,
            cpus: message.cpus,
            memory_mb: scalar::quantity(message.memory_mb, "memory_mb")?,
            gres: scalar::list(message.gres, "gres", limits::GRES)?,
            start: scalar::time(message.start, "start")?,
            end: message.end.map(|t| scalar::time(t, "end")).transpose()?,
            state: scalar::job_state(&message.state, "state")?,
            // Proto3 drops an all-zero submessage's fields but keeps the message; a peer may leave both out.
            exit: scalar::optional(message.exit, "exit")?.unwrap_or_default(),
            usage: scalar::optional(message.usage, "usage")?.unwrap_or_default(),
            // A newer node may measure more.
            spread: scalar::list(
                message.spread.into_iter().filter(|s| Measure::from_number(s.measure).is_some()).collect(),
                "spread",
                Measure::ALL.len(),
            )?,
            submit_line: scalar::os_bytes(message.submit_line, "submit_line", limits::ARGUMENT)?,
            distribution: scalar::word(message.distribution, "distribution")?,
            srun_host: scalar::word(message.srun_host, "srun_host")?,
            srun_pid: message.srun_pid,
        })
    }
}
