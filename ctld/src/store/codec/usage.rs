//! Usage: charges of runs, and what everybody has used.

use super::{ConvertError, Result, required, time_to_disk};
use sluice_engine::usage::{Amount, Spent, UsageBook, UsageCharge, UsageOwner};
use sluice_model::accounting::TresKind;
use sluice_model::{JobId, Time};
use sluice_proto::convert::{assoc_id, job_id};
use sluice_proto::v1;
use std::sync::Arc;
use v1::disk_event as d;
use v1::disk_usage_owner::Owner;

pub(super) fn owner_to_disk(owner: &UsageOwner, half_life_ms: Option<i64>) -> v1::DiskUsageOwner {
    let owner = match owner {
        UsageOwner::Association(id) => Owner::Association(id.0),
        UsageOwner::Qos(id) => Owner::Qos(*id),
        UsageOwner::User(name) => Owner::User(name.clone()),
    };
    v1::DiskUsageOwner { owner: Some(owner), half_life_ms }
}

fn owner_from_disk(owner: v1::DiskUsageOwner) -> Result<UsageOwner> {
    Ok(match required(owner.owner, "usage owner")? {
        Owner::Association(id) => UsageOwner::Association(assoc_id(id)?),
        Owner::Qos(id) => UsageOwner::Qos(id),
        Owner::User(name) => UsageOwner::User(name),
    })
}

pub(super) fn owners_from_disk(owners: Vec<v1::DiskUsageOwner>) -> Result<Vec<UsageOwner>> {
    owners.into_iter().map(owner_from_disk).collect()
}

fn kind(text: &str) -> Result<TresKind> {
    TresKind::parse(text)
        .ok_or_else(|| ConvertError::new("tres", format!("is '{text}', which this release does not know")))
}

pub(super) fn charge_to_disk(job: JobId, charge: &UsageCharge) -> d::UsageCharged {
    let UsageCharge { owners, rates, wall_rate, from, to } = charge;
    d::UsageCharged {
        job: job.0,
        owners: owners.iter().map(|(owner, half_life)| owner_to_disk(owner, *half_life)).collect(),
        rates: rates.iter().map(|(kind, n)| v1::TresCount { tres: kind.to_string(), count: *n }).collect(),
        wall_rate: *wall_rate,
        from: from.0,
        to: to.0,
    }
}

pub(super) fn charge_from_disk(e: d::UsageCharged) -> Result<(JobId, UsageCharge)> {
    let owners = e.owners.into_iter().map(|o| {
        let half_life = o.half_life_ms;
        Ok((owner_from_disk(o)?, half_life))
    });
    let charge = UsageCharge {
        owners: owners.collect::<Result<_>>()?,
        rates: e.rates.into_iter().map(|r| Ok((kind(&r.tres)?, r.count))).collect::<Result<_>>()?,
        wall_rate: e.wall_rate,
        from: Time(e.from),
        to: Time(e.to),
    };
    Ok((job_id(e.job, "job")?, charge))
}

pub fn usage_to_disk(usage: &UsageBook) -> v1::snapshot_chunk::Usage {
    let UsageBook { spent, reset } = usage;
    let one = |(owner, spent): (&UsageOwner, &Arc<Spent>)| {
        let Spent { tres_secs, wall_secs, at } = &**spent;
        let amount = |(kind, n): (&TresKind, &Amount)| v1::TresAmount { name: kind.to_string(), amount: n.0 };
        v1::DiskUsage {
            owner: Some(owner_to_disk(owner, None)),
            tres_secs: tres_secs.iter().map(amount).collect(),
            wall_secs: wall_secs.0,
            at: time_to_disk(*at),
        }
    };
    v1::snapshot_chunk::Usage { spent: spent.iter().map(one).collect(), reset: time_to_disk(*reset) }
}

pub fn usage_from_disk(usage: v1::snapshot_chunk::Usage) -> Result<UsageBook> {
    let mut book = UsageBook { reset: usage.reset.map(Time), ..UsageBook::default() };
    for one in usage.spent {
        let amounts = one.tres_secs.into_iter().map(|t| Ok((kind(&t.name)?, Amount(t.amount))));
        let spent = Spent {
            tres_secs: amounts.collect::<Result<_>>()?,
            wall_secs: Amount(one.wall_secs),
            at: one.at.map(Time),
        };
        book.spent.insert(owner_from_disk(required(one.owner, "usage owner")?)?, Arc::new(spent));
    }
    Ok(book)
}
