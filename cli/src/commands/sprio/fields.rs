//! The letters of `sprio -o` and `-S`, their headers and values.
//!
//! Source: sprio(1); widths, decimals and headers as Slurm was seen to print them.

use super::Settings;
use sluice_proto::v1;
use std::cmp::Ordering;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    JobId,
    Partition,
    User,
    Account,
    QosName,
    Cluster,
    Nice,
    Site,
    Priority,
    PriorityNorm,
    /// A factor: weighted or not.
    Part(Part, bool),
    Tres(bool),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Age,
    Association,
    FairShare,
    JobSize,
    Partition,
    Qos,
}

impl Part {
    fn of(self, f: &v1::PriorityFactors) -> f64 {
        match self {
            Part::Age => f.age,
            Part::Association => f.association,
            Part::FairShare => f.fairshare,
            Part::JobSize => f.job_size,
            Part::Partition => f.partition,
            Part::Qos => f.qos,
        }
    }
}

impl Field {
    pub fn by_letter(letter: char) -> Option<Field> {
        let part = |part| Some(Field::Part(part, letter.is_ascii_uppercase()));
        match letter {
            'i' => Some(Field::JobId),
            'r' => Some(Field::Partition),
            'u' => Some(Field::User),
            'o' => Some(Field::Account),
            'n' => Some(Field::QosName),
            'c' => Some(Field::Cluster),
            'N' => Some(Field::Nice),
            // The site's factor has no weight.
            'S' | 's' => Some(Field::Site),
            'Y' => Some(Field::Priority),
            'y' => Some(Field::PriorityNorm),
            'T' | 't' => Some(Field::Tres(letter == 'T')),
            'a' | 'A' => part(Part::Age),
            'b' | 'B' => part(Part::Association),
            'f' | 'F' => part(Part::FairShare),
            'j' | 'J' => part(Part::JobSize),
            'p' | 'P' => part(Part::Partition),
            'q' | 'Q' => part(Part::Qos),
            _ => None,
        }
    }

    pub fn header(self) -> &'static str {
        match self {
            Field::JobId => "JOBID",
            Field::Partition => "PARTITION",
            Field::User => "USER",
            Field::Account => "ACCOUNT",
            Field::QosName => "QOSNAME",
            Field::Cluster => "CLUSTER",
            Field::Nice => "NICE",
            Field::Site => "SITE",
            Field::Priority | Field::PriorityNorm => "PRIORITY",
            Field::Tres(_) => "TRES",
            Field::Part(Part::Age, _) => "AGE",
            Field::Part(Part::Association, _) => "ASSOC",
            Field::Part(Part::FairShare, _) => "FAIRSHARE",
            Field::Part(Part::JobSize, _) => "JOBSIZE",
            Field::Part(Part::Partition, _) => "PARTITION",
            Field::Part(Part::Qos, _) => "QOS",
        }
    }

    pub fn value(self, job: &v1::PriorityRecord) -> String {
        let none = v1::PriorityFactors::default();
        let weighted = job.weighted.as_ref().unwrap_or(&none);
        let factors = job.factors.as_ref().unwrap_or(&none);
        match self {
            Field::JobId => job.job.to_string(),
            Field::Partition => job.partition.clone(),
            Field::User => job.user.clone(),
            Field::Account => job.account.clone(),
            Field::QosName => job.qos.clone(),
            Field::Cluster => "(null)".to_owned(),
            Field::Nice => weighted.nice.to_string(),
            Field::Site => weighted.site.to_string(),
            Field::Priority => job.priority.to_string(),
            Field::PriorityNorm => format!("{:.14}", f64::from(job.priority) / f64::from(u32::MAX)),
            Field::Part(part, true) => format!("{:.0}", part.of(weighted)),
            Field::Part(part, false) => format!("{:.7}", part.of(factors)),
            Field::Tres(true) => tres(&weighted.tres, 0),
            Field::Tres(false) => tres(&factors.tres, 2),
        }
    }

    pub fn weight(self, list: &v1::PriorityList) -> String {
        let weights = list.weights.clone().unwrap_or_default();
        match self {
            Field::JobId => "Weights".to_owned(),
            Field::Site => "1".to_owned(),
            Field::Part(part, _) => format!("{:.0}", part.of(&weights)),
            Field::Tres(true) if list.weight_tres.is_empty() => "(null)".to_owned(),
            Field::Tres(true) => list.weight_tres.clone(),
            _ => String::new(),
        }
    }
}

/// What is asked for, by name.
fn tres(amounts: &[v1::TresAmount], decimals: usize) -> String {
    let shown = amounts.iter().filter(|a| a.amount != 0.0);
    shown.map(|a| format!("{}={:.decimals$}", a.name, a.amount)).collect::<Vec<_>>().join(",")
}

/// Columns of factors that have a weight; all of them in the long view.
pub fn default_format(settings: &Settings, list: &v1::PriorityList) -> String {
    let weights = list.weights.clone().unwrap_or_default();
    let all = settings.long && !settings.norm;
    let mut text = "%.15i %9r".to_owned();
    if settings.long || settings.users.is_some() {
        text.push_str(" %.8u");
    }
    if settings.long {
        text.push_str(" %.8o");
    }
    text.push_str(if settings.norm { " %10y" } else { " %.10Y %.10S" });
    let parts = [
        ('a', Part::Age),
        ('b', Part::Association),
        ('f', Part::FairShare),
        ('j', Part::JobSize),
        ('p', Part::Partition),
        ('q', Part::Qos),
    ];
    for (letter, part) in parts {
        if part == Part::Qos && all {
            text.push_str(" %.10n");
        }
        if all || part.of(&weights) != 0.0 {
            let column =
                if settings.norm { format!(" %10{letter}") } else { format!(" %.10{}", letter.to_ascii_uppercase()) };
            text.push_str(&column);
        }
    }
    if all {
        text.push_str(" %.11N");
    }
    if all || !list.weight_tres.is_empty() {
        text.push_str(if settings.norm { " %20t" } else { " %.20T" });
    }
    text
}

/// `[+|-]letter[,…]`; the unknown letter is the error.
pub fn parse_sort(text: &str) -> Result<Vec<(Field, bool)>, char> {
    let mut keys = Vec::new();
    let mut descending = false;
    for letter in text.chars() {
        match letter {
            ',' | ' ' | '%' => {}
            '+' => descending = false,
            '-' => descending = true,
            letter => {
                keys.push((Field::by_letter(letter).ok_or(letter)?, descending));
                descending = false;
            }
        }
    }
    Ok(keys)
}

pub fn compare(keys: &[(Field, bool)], a: &v1::PriorityRecord, b: &v1::PriorityRecord) -> Ordering {
    let by = |(field, descending): &(Field, bool)| {
        let number = |job: &v1::PriorityRecord| match field {
            Field::JobId => Some(f64::from(job.job)),
            Field::Priority | Field::PriorityNorm => Some(f64::from(job.priority)),
            Field::Nice | Field::Site | Field::Part(..) => field.value(job).parse().ok(),
            _ => None,
        };
        let order = match (number(a), number(b)) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => field.value(a).cmp(&field.value(b)),
        };
        if *descending { order.reverse() } else { order }
    };
    keys.iter().map(by).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}
