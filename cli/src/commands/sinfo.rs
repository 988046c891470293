//! `sinfo`: partitions and nodes.
//!
//! Owns the option table and the flow: settings → two lists → lines of nodes that agree in what is shown.

mod fields;
mod group;
mod json;
mod lines;
mod settings;
mod states;
mod values;

use crate::client::{Client, Controller, Retry};
use crate::error::CallError;
use crate::getopt::OptionSpec;
use crate::render::json::Style;
use crate::view::clock::Clock;
use crate::viewing;
use sluice_proto::v1;
use std::ffi::OsString;
use std::process::ExitCode;

static OPTIONS: &[OptionSpec] = &[
    OptionSpec::flag("all", "show hidden partitions, too").short('a'),
    OptionSpec::value("clusters", "clusters", "this cluster by its name, or all").short('M'),
    OptionSpec::value("cluster", "clusters", "").alias_of("clusters"),
    OptionSpec::flag("dead", "only nodes that do not answer").short('d'),
    OptionSpec::flag("exact", "share a line only between nodes of equal size").short('e'),
    OptionSpec::flag("federation", "show what the federation has: this cluster is in none"),
    OptionSpec::flag("future", "show nodes in FUTURE state: there are none").short('F'),
    OptionSpec::value("format", "format", "columns, as %[[.]width]letter").short('o'),
    OptionSpec::value("Format", "names", "columns, as name[:[.]width]").short('O'),
    OptionSpec::flag("help", "show this text"),
    OptionSpec::flag("hide", "leave out hidden partitions (the default)"),
    OptionSpec::value("iterate", "seconds", "repeat at this interval").short('i'),
    OptionSpec::maybe("json", "data_parser", "print JSON"),
    OptionSpec::flag("list-reasons", "why nodes are down, drained or failing").short('R'),
    OptionSpec::flag("local", "only this cluster"),
    OptionSpec::flag("long", "more columns").short('l'),
    OptionSpec::flag("noconvert", "sizes are always shown in their own unit"),
    OptionSpec::flag("Node", "one line for each node and partition").short('N'),
    OptionSpec::value("nodes", "hosts", "only these nodes").short('n'),
    OptionSpec::flag("noheader", "no header line").short('h'),
    OptionSpec::value("partition", "names", "only these partitions").short('p'),
    OptionSpec::flag("reservation", "list reservations: there are none").short('T'),
    OptionSpec::flag("responding", "only nodes that answer").short('r'),
    OptionSpec::value("sort", "letters", "order, as [+|-|#]letter[,…]").short('S'),
    OptionSpec::value("states", "states", "only nodes in these states; & joins, ~ excludes").short('t'),
    OptionSpec::flag("summarize", "one line for each partition").short('s'),
    OptionSpec::flag("usage", "show the options in short"),
    OptionSpec::flag("verbose", "say what is asked for").short('v'),
    OptionSpec::flag("version", "say which Slurm this behaves like").short('V'),
    OptionSpec::maybe("yaml", "data_parser", "").refused("YAML is not printed; use --json"),
];

pub fn options() -> &'static [OptionSpec] {
    OPTIONS
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(&words) {
        Ok(code) | Err(code) => code,
    }
}

fn run(words: &[OsString]) -> Result<ExitCode, ExitCode> {
    let parsed = viewing::parse("sinfo", "", OPTIONS, words)?;
    let (settings, shape) = settings::read(&parsed)?;
    let json = viewing::json_request("sinfo", &parsed)?;
    let mut client = viewing::client("sinfo")?;
    let headed = viewing::clusters("sinfo", settings.clusters.as_deref(), &client.config.cluster.clone())?;
    if settings.reservations {
        return Ok(crate::out::print_or_complain("sinfo", b"No reservations in the system\n", ExitCode::SUCCESS));
    }
    crate::client::block_on(async {
        loop {
            let (partitions, nodes) = load(&mut client).await.map_err(|error| {
                if let Some(detail) = error.detail() {
                    crate::errln!("sinfo: error: {detail}");
                }
                crate::errln!("slurm_load_partitions: {}", error.reason());
                ExitCode::from(1)
            })?;
            if settings.verbose {
                crate::errln!("{} partitions, {} nodes", partitions.partitions.len(), nodes.nodes.len());
            }
            let text = match json {
                Some(style) => print_json(&client, &settings, words, style, &partitions, &nodes),
                None => {
                    let mut out = Vec::new();
                    if headed {
                        out.extend_from_slice(format!("CLUSTER: {}\n", client.config.cluster).as_bytes());
                    }
                    let clock = Clock::from_environment(nodes.now);
                    lines::table(&settings, &shape, &clock, &partitions.partitions, &nodes.nodes, &mut out);
                    out
                }
            };
            let code = crate::out::print_or_complain("sinfo", &text, ExitCode::SUCCESS);
            let Some(pause) = settings.iterate else { return Ok(code) };
            tokio::time::sleep(pause).await;
            crate::out::print_or_complain("sinfo", b"\n", code);
        }
    })
}

async fn load(client: &mut Client) -> Result<(v1::PartitionList, v1::NodeList), CallError> {
    let partitions = client.call(Retry::Read, async |mut c: Controller| c.list_partitions(v1::Empty {}).await).await?;
    let nodes =
        client.call(Retry::Read, async |mut c: Controller| c.list_nodes(v1::ListNodesRequest::default()).await).await?;
    Ok((partitions, nodes))
}

fn print_json(
    client: &Client,
    settings: &settings::Settings,
    words: &[OsString],
    style: Style,
    partitions: &v1::PartitionList,
    nodes: &v1::NodeList,
) -> Vec<u8> {
    let clock = Clock::from_environment(nodes.now);
    let groups = lines::groups(settings, &settings.layout, &clock, &partitions.partitions, &nodes.nodes);
    let entries: Vec<serde_json::Value> = groups.iter().map(json::entry).collect();
    viewing::json_answer("sinfo", words, client, style, vec![("sinfo", entries.into())])
}
