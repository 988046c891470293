//! `sprio`: the parts of the priority of pending jobs, raw and weighted.
//!
//! Owns the option table and the flow: settings → one list → lines. Source: sprio(1); columns that have no weight are
//! left out of the default view, as Slurm leaves them out.

mod fields;

use crate::client::{Controller, Retry};
use crate::getopt::{OptionSpec, Parsed};
use crate::view::columns::Layout;
use crate::viewing::{self, env};
use fields::Field;
use sluice_proto::v1;
use std::ffi::OsString;
use std::process::ExitCode;

static OPTIONS: &[OptionSpec] = &[
    OptionSpec::value("clusters", "cluster", "this cluster by its name").short('M'),
    OptionSpec::value("cluster", "cluster", "").alias_of("clusters"),
    OptionSpec::flag("federation", "show what the federation has: this cluster is in none"),
    OptionSpec::value("format", "format", "columns, as %[[.]width]letter").short('o'),
    OptionSpec::flag("help", "show this text"),
    OptionSpec::maybe("jobs", "ids", "only these jobs").short('j'),
    OptionSpec::flag("local", "only this cluster"),
    OptionSpec::flag("long", "more columns").short('l'),
    OptionSpec::flag("noheader", "no header line").short('h'),
    OptionSpec::flag("norm", "factors before their weights").short('n'),
    OptionSpec::value("partition", "names", "only in these partitions").short('p'),
    OptionSpec::flag("sibling", "show jobs of sibling clusters: there are none"),
    OptionSpec::value("sort", "letters", "order, as [+|-]letter[,…]").short('S'),
    OptionSpec::flag("usage", "show the options in short"),
    OptionSpec::value("user", "names", "only jobs of these users").short('u'),
    OptionSpec::value("users", "names", "").alias_of("user"),
    OptionSpec::flag("verbose", "say what is asked for").short('v'),
    OptionSpec::flag("version", "say which Slurm this behaves like").short('V'),
    OptionSpec::flag("weights", "show the weights, no jobs").short('w'),
];

pub fn options() -> &'static [OptionSpec] {
    OPTIONS
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(&words) {
        Ok(code) | Err(code) => code,
    }
}

fn fail(message: &str) -> ExitCode {
    crate::errln!("sprio: error: {message}");
    ExitCode::from(1)
}

struct Settings {
    /// None: the default view.
    format: Option<String>,
    long: bool,
    norm: bool,
    weights: bool,
    header: bool,
    jobs: Vec<u32>,
    users: Option<Vec<String>>,
    partitions: Vec<String>,
    sort: Vec<(Field, bool)>,
}

fn run(words: &[OsString]) -> Result<ExitCode, ExitCode> {
    let parsed = viewing::parse("sprio", "", OPTIONS, words)?;
    let settings = settings(&parsed)?;
    let mut client = viewing::client("sprio")?;
    let asked = parsed.last("clusters").map(|g| g.text()).or_else(|| env("SLURM_CLUSTERS"));
    viewing::clusters("sprio", asked.as_deref(), &client.config.cluster.clone())?;
    let call = client.call(Retry::Read, async |mut c: Controller| c.list_priorities(v1::Empty {}).await);
    let list = crate::client::block_on(call).map_err(|error| {
        crate::error::print_call_error("sprio", "", &error);
        ExitCode::from(1)
    })?;
    if list.kind == "fifo" {
        crate::errln!("You are not running a supported priority plugin");
        crate::errln!("({}).", list.plugin);
        crate::errln!("Only 'priority/multifactor' is supported.");
        return Err(ExitCode::from(1));
    }
    let (text, found) = table(&settings, &list);
    if !found && !settings.jobs.is_empty() {
        crate::errln!("Unable to find jobs matching user/id(s) specified");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(crate::out::print_or_complain("sprio", &text, ExitCode::SUCCESS))
}

fn settings(parsed: &Parsed) -> Result<Settings, ExitCode> {
    // `-j 7`: the value is optional and so stands apart, but Slurm takes it all the same.
    let apart = parsed.last("jobs").is_some_and(|g| g.text().is_empty());
    let operands: Vec<String> = parsed.operands.iter().map(|o| o.to_string_lossy().into_owned()).collect();
    if let Some(operand) = operands.first().filter(|_| !apart) {
        crate::errln!("sprio: error: Unrecognized option: {operand}");
        crate::out::talk_bytes(crate::help::usage_text("sprio", "", OPTIONS).as_bytes());
        return Err(ExitCode::from(1));
    }
    let list = |key: &str| parsed.all(key).flat_map(|g| viewing::list(&g.text())).collect::<Vec<_>>();
    let mut jobs = Vec::new();
    for id in list("jobs").into_iter().chain(operands.iter().flat_map(|o| viewing::list(o))) {
        // A task is its array's job here.
        let number = id.split('_').next().unwrap_or_default().parse::<u32>().ok().filter(|n| *n > 0);
        jobs.push(number.ok_or_else(|| fail(&format!("Invalid job id: {id}")))?);
    }
    let users = parsed.last("user").map(|g| {
        let (known, unknown) = viewing::users(&viewing::list(&g.text()));
        unknown.iter().for_each(|user| crate::errln!("sprio: error: Invalid user: {user}\n"));
        known
    });
    let sort = parsed.last("sort").map_or_else(|| "i".to_owned(), |g| g.text());
    let settings = Settings {
        format: parsed.last("format").map(|g| g.text()).or_else(|| env("SPRIO_FORMAT")),
        long: parsed.has("long"),
        norm: parsed.has("norm"),
        weights: parsed.has("weights"),
        header: !parsed.has("noheader"),
        jobs,
        users,
        partitions: list("partition"),
        sort: fields::parse_sort(&sort).map_err(|c| fail(&format!("Invalid sort specification: {c}")))?,
    };
    if parsed.has("verbose") {
        let shown = |text: Option<String>| text.filter(|t| !t.is_empty()).unwrap_or_else(|| "(null)".to_owned());
        crate::errln!("-----------------------------");
        crate::errln!("format     = {}", shown(settings.format.clone()));
        crate::errln!("job_flag   = {}", u8::from(!settings.jobs.is_empty()));
        crate::errln!("jobs       = {}", shown(parsed.last("jobs").map(|g| g.text())));
        crate::errln!("partition  = {}", shown(parsed.last("partition").map(|g| g.text())));
        crate::errln!("users      = {}\n", shown(parsed.last("user").map(|g| g.text())));
    }
    Ok(settings)
}

/// The columns; with an unknown letter Slurm complains and goes on.
fn layout(settings: &Settings, list: &v1::PriorityList) -> Layout<Field> {
    let text = settings.format.clone().unwrap_or_else(|| fields::default_format(settings, list));
    let (layout, unknown) = Layout::parse_letters(&text, Field::by_letter);
    unknown.iter().for_each(|c| crate::errln!("sprio: error: Invalid job format specification: {c}"));
    layout
}

/// The lines, and whether any job was among them.
fn table(settings: &Settings, list: &v1::PriorityList) -> (Vec<u8>, bool) {
    let layout = layout(settings, list);
    let mut out = Vec::new();
    if settings.header {
        layout.row(&mut out, |field, out| out.extend_from_slice(field.header().as_bytes()));
    }
    if settings.weights {
        layout.row(&mut out, |field, out| out.extend_from_slice(field.weight(list).as_bytes()));
        return (out, true);
    }
    let mut jobs: Vec<&v1::PriorityRecord> = list.jobs.iter().filter(|job| settings.shows(job)).collect();
    // Stable: what compares equal stays in the controller's order, by job and partition.
    jobs.sort_by(|a, b| fields::compare(&settings.sort, a, b));
    for job in &jobs {
        layout.row(&mut out, |field, out| out.extend_from_slice(field.value(job).as_bytes()));
    }
    (out, !jobs.is_empty())
}

impl Settings {
    fn shows(&self, job: &v1::PriorityRecord) -> bool {
        (self.jobs.is_empty() || self.jobs.contains(&job.job))
            && (self.partitions.is_empty() || self.partitions.contains(&job.partition))
            && self.users.as_ref().is_none_or(|u| u.contains(&job.user) || u.contains(&job.uid.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(parts: [f64; 6], tres: &[(&str, f64)], nice: i32) -> v1::PriorityFactors {
        let [age, association, fairshare, job_size, partition, qos] = parts;
        let tres = tres.iter().map(|(name, amount)| v1::TresAmount { name: (*name).into(), amount: *amount }).collect();
        v1::PriorityFactors { age, association, fairshare, job_size, partition, qos, tres, site: 0, nice }
    }

    /// The jobs whose lines Slurm 22.05 was seen to print.
    fn list() -> v1::PriorityList {
        let job = |job, partition: &str, user: &str, priority, raw, weighted| v1::PriorityRecord {
            job,
            partition: partition.into(),
            user: user.into(),
            uid: job,
            account: "aa".into(),
            qos: "normal".into(),
            priority,
            factors: Some(raw),
            weighted: Some(weighted),
        };
        v1::PriorityList {
            jobs: vec![
                job(
                    7,
                    "debug",
                    "daemon",
                    5219,
                    factors(
                        [0.0, 0.0, 6.0 / 14.0, 0.208_333_3, 0.125, 0.25],
                        &[("cpu", 1.0 / 12.0), ("mem", 0.0083)],
                        0,
                    ),
                    factors([0.0, 0.0, 4285.714, 208.333, 125.0, 500.0], &[("cpu", 83.33), ("mem", 16.67)], 0),
                ),
                job(
                    12,
                    "long",
                    "man",
                    5421,
                    factors([0.0, 1.0, 5.0 / 14.0, 0.25, 0.5, 0.25], &[("cpu", 0.1667), ("mem", 0.0167)], 100),
                    factors([0.0, 500.0, 3571.43, 250.0, 500.0, 500.0], &[("cpu", 166.7), ("mem", 33.3)], 100),
                ),
            ],
            weights: Some(factors([1000.0, 500.0, 10_000.0, 1000.0, 1000.0, 2000.0], &[], 0)),
            kind: "multifactor".into(),
            plugin: "priority/multifactor".into(),
            weight_tres: "cpu=1000,mem=2000".into(),
            now: 0,
        }
    }

    fn print(words: &[&str], change: impl FnOnce(&mut v1::PriorityList)) -> String {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let parsed = crate::getopt::parse(OPTIONS, &words, crate::getopt::Operands::Mixed).expect("the words parse");
        let mut list = list();
        change(&mut list);
        let settings = settings(&parsed).expect("the settings are good");
        String::from_utf8(table(&settings, &list).0).unwrap()
    }

    #[test]
    fn the_default_view_has_a_column_for_each_weight() {
        assert_eq!(
            print(&[], |_| ()),
            "          JOBID PARTITION   PRIORITY       SITE        AGE      ASSOC  FAIRSHARE    JOBSIZE  PARTITION        QOS                 TRES\n\
             \x20             7 debug           5219          0          0          0       4286        208        125        500        cpu=83,mem=17\n\
             \x20            12 long            5421          0          0        500       3571        250        500        500       cpu=167,mem=33\n"
        );
        let few = print(&["-h", "-j7"], |list| {
            list.weights = Some(factors([1000.0, 0.0, 10_000.0, 0.0, 0.0, 0.0], &[], 0));
            list.weight_tres.clear();
        });
        assert_eq!(few, "              7 debug           5219          0          0       4286\n");
    }

    #[test]
    fn the_long_view_is_that_of_26_05() {
        let text = print(&["-l", "-j", "7"], |_| ());
        let header = "          JOBID PARTITION     USER  ACCOUNT   PRIORITY       SITE        AGE      ASSOC  FAIRSHARE    JOBSIZE  PARTITION    QOSNAME        QOS        NICE                 TRES";
        assert_eq!(text.lines().next(), Some(header));
        assert!(text.contains("    125     normal        500           0        cpu=83,mem=17"));
    }

    #[test]
    fn norm_shows_factors_and_weights_shows_weights() {
        assert_eq!(
            print(&["-n", "-u", "7"], |_| ()),
            "          JOBID PARTITION     USER PRIORITY   AGE        ASSOC      FAIRSHARE  JOBSIZE    PARTITION  QOS        TRES                \n\
             \x20             7 debug       daemon 0.00000121 0.0000000  0.0000000  0.4285714  0.2083333  0.1250000  0.2500000  cpu=0.08,mem=0.01   \n"
        );
        assert_eq!(
            print(&["-w", "-h"], |_| ()),
            "        Weights                               1       1000        500      10000       1000       1000       2000    cpu=1000,mem=2000\n"
        );
    }

    #[test]
    fn formats_and_orders_are_read_by_letter() {
        assert_eq!(
            print(&["-h", "-o", "%i|%.6r|%6u|%N|%o|%n", "-S", "-Y"], |_| ()),
            "12|  long|man   |100|aa|normal\n7| debug|daemon|0|aa|normal\n"
        );
        assert_eq!(print(&["-h", "-o", "%y %t", "-p", "long"], |_| ()), "0.00000126217492 cpu=0.17,mem=0.02\n");
        assert!(fields::parse_sort("x").is_err());
    }

    #[test]
    fn a_priority_that_was_given_has_no_parts() {
        let text = print(&["-h", "-j7"], |list| (list.jobs[0].factors, list.jobs[0].weighted) = (None, None));
        assert!(text.starts_with("              7 debug           5219          0          0          0          0 "));
    }
}
