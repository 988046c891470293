//! The value of each field on the row of a step.
//!
//! Many fields are of the job alone and empty here. Sources: sacct(1); recorded outputs of Slurm 26.05.

use super::fields::Field;
use super::units::cpu_time;
use super::usage::{self, Way};
use super::values::{Context, cpu_ms};
use crate::view::{clock, job as facts, tres};
use sluice_model::{StepId, hostlist};
use sluice_proto::v1;

pub fn id(step: &v1::StepRecord) -> StepId {
    StepId::from_wire(step.key.map_or(0, |k| k.step))
}

/// `Block`; the script of a batch job has none.
pub fn layout(step: &v1::StepRecord) -> &str {
    if step.distribution.is_empty() { "Unknown" } else { &step.distribution }
}

impl Context<'_> {
    pub fn step(&self, field: Field, job: &v1::JobRecord, step: &v1::StepRecord) -> String {
        let span = self.step_span(step);
        let cpu = step.usage.unwrap_or_default();
        match field {
            Field::JobId => facts::step_id(job, step),
            Field::JobIdRaw => format!("{}.{}", job.id, facts::step_name(step)),
            Field::JobName => facts::text(&step.name).into_owned(),
            Field::State => step.state.clone(),
            Field::ExitCode => facts::exit(step.exit.as_ref()),
            Field::AllocCpus | Field::ReqCpus => step.cpus.to_string(),
            Field::AllocNodes | Field::Nodes | Field::ReqNodes => step.nodes.len().to_string(),
            Field::AllocTres => self.tres(&tres::step(step)),
            Field::NodeList => hostlist::fold(&step.nodes),
            Field::Tasks => step.tasks.to_string(),
            Field::Layout => layout(step).to_owned(),
            Field::AveCpuFreq => "0".to_owned(),
            // As recorded: the script's step has none, where Slurm shows a frequency of 0.
            Field::ReqCpuFreq if id(step) == StepId::Batch => "0".to_owned(),
            Field::Start => self.time(span.start, "Unknown"),
            Field::End => self.time(span.end, "Unknown"),
            Field::Elapsed => clock::elapsed_long(span.elapsed_ms),
            Field::ElapsedRaw => (span.elapsed_ms / 1000).to_string(),
            Field::CpuTime => clock::elapsed_long(cpu_ms(span, step.cpus)),
            Field::CpuTimeRaw => (cpu_ms(span, step.cpus) / 1000).to_string(),
            Field::UserCpu => cpu_time(cpu.user_cpu_us),
            Field::SystemCpu => cpu_time(cpu.system_cpu_us),
            Field::TotalCpu => cpu_time(cpu.user_cpu_us.saturating_add(cpu.system_cpu_us)),
            Field::SubmitLine => facts::text(&step.submit_line).into_owned(),
            Field::Suspended => clock::elapsed_long(0),
            Field::Used(quantity, figure) => usage::field(step, quantity, figure, self.units),
            Field::TresIn(figure) => usage::tres(step, Way::In, figure, self.units),
            Field::TresOut(figure) => usage::tres(step, Way::Out, figure, self.units),
            // The same for a job and its steps.
            Field::Account
            | Field::Cluster
            | Field::DbIndex
            | Field::Eligible
            | Field::Submit
            | Field::ReqCpuFreq
            | Field::AssocId
            | Field::Fixed(_) => self.job(field, job),
            // Of the job alone.
            _ => String::new(),
        }
    }
}
