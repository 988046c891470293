//! Configurations: read, printed, compared; and every way of getting them wrong.

use super::*;
use crate::time::TimeLimit;

const GOOD: &str = r#"
cluster_name = "c"
[[node]]
name = "node[1-3]"
cpus = 4
memory_mb = "4G"
gres = ["gpu:a100:2", "gpu:1"]
features = "fast,ib"
[[partition]]
name = "main"
nodes = "node[1-3]"
default = true
max_time = "1-00:00:00"
default_time = 30
[licenses]
matlab = 3
"#;

#[test]
fn a_small_file_gives_nodes_partitions_and_defaults() {
    let c = parse(GOOD, "x").unwrap();
    assert_eq!(c.nodes.len(), 3);
    assert_eq!((c.nodes[2].name.as_str(), c.nodes[2].memory_mb, c.nodes[2].cores_per_socket), ("node3", 4096, 4));
    assert_eq!(c.nodes[0].features, ["fast", "ib"]);
    assert_eq!(c.partitions[0].default_time, Some(TimeLimit::Minutes(30)));
    assert_eq!(c.timing, TimingConfig::default());
    assert_eq!(c.licenses["matlab"], 3);
}

#[test]
fn what_is_printed_reads_back_equal() {
    let c = parse(GOOD, "x").unwrap();
    assert_eq!(parse(&to_toml(&c), "y").unwrap(), c);
    assert!(diff(&c, &c).is_empty());
}
