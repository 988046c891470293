//! From records to lines. No call is made here.

use super::fields::Info;
use super::group::{self, Group};
use super::settings::{Settings, Shape};
use super::values::Context;
use crate::view::clock::Clock;
use crate::view::columns::Layout;
use sluice_proto::v1;

/// The lines' nodes, in order.
pub fn groups<'a>(
    settings: &Settings,
    layout: &Layout<&'static Info>,
    clock: &Clock,
    partitions: &'a [v1::PartitionRecord],
    nodes: &'a [v1::NodeRecord],
) -> Vec<Group<'a>> {
    let context = Context { clock };
    let columns: Vec<&'static Info> = layout.fields().collect();
    let mut groups = group::group(settings, &columns, &context, partitions, nodes);
    group::sort(&mut groups, &settings.sort, &context);
    groups
}

pub fn table(
    settings: &Settings,
    shape: &Shape,
    clock: &Clock,
    partitions: &[v1::PartitionRecord],
    nodes: &[v1::NodeRecord],
    out: &mut Vec<u8>,
) {
    let layout = shape.layout(partitions, nodes);
    if settings.header {
        if settings.timed {
            out.extend_from_slice(format!("{}\n", clock.heading()).as_bytes());
        }
        layout.row(out, |info, out| out.extend_from_slice(info.header.as_bytes()));
    }
    let context = Context { clock };
    for group in groups(settings, &layout, clock, partitions, nodes) {
        layout.row(out, |info, out| out.extend_from_slice(context.text(info.field, &group).as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::test::of;
    use super::*;
    use crate::view::{fixture, recorded};

    fn print(words: &[&str], change: impl FnOnce(&mut Vec<v1::NodeRecord>)) -> String {
        let (settings, shape) = of(words);
        let mut nodes = fixture::nodes();
        change(&mut nodes);
        let mut out = Vec::new();
        table(&settings, &shape, &fixture::clock(), &fixture::partitions(), &nodes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_default_view_is_as_recorded() {
        recorded::assert_same(print(&[], |_| ()).lines(), include_str!("../../../tests/data/sinfo.txt").lines());
    }

    #[test]
    fn the_summary_is_as_recorded() {
        recorded::assert_same(print(&["-s"], |_| ()).lines(), include_str!("../../../tests/data/sinfo-s.txt").lines());
    }

    #[test]
    fn the_long_node_view_is_as_recorded_but_for_the_order_of_partitions() {
        let ours = print(&["-lN"], |_| ());
        let (mut ours, mut recorded): (Vec<&str>, Vec<&str>) =
            (ours.lines().collect(), include_str!("../../../tests/data/sinfo-l.txt").lines().collect());
        assert_eq!(ours[..3], [recorded[0], recorded[1], recorded[3]]);
        ours.sort_unstable();
        recorded.sort_unstable();
        recorded::assert_same(ours, recorded);
    }

    #[test]
    fn reasons_are_listed_only_for_nodes_with_trouble() {
        let header = "REASON               USER      TIMESTAMP           NODELIST\n";
        assert_eq!(print(&["-R"], |_| ()), header);
        let drain = |nodes: &mut Vec<v1::NodeRecord>| {
            for node in &mut nodes[5..7] {
                node.drain = true;
                node.reason = Some("bad disk".into());
                node.reason_user = Some("root".into());
                node.reason_uid = Some(0);
                node.reason_time = Some(fixture::NOW);
            }
        };
        let line = "bad disk             root      2026-11-30T09:59:56 node[5-6]\n";
        assert_eq!(print(&["-R"], drain), format!("{header}{line}"));
        assert!(print(&["-lR"], drain).contains("root(0)      2026-11-30T09:59:56 drain  node[5-6]\n"));
    }

    #[test]
    fn partitions_without_any_matching_node_show_an_empty_line() {
        let expected = "primary*     up   infinite      0    n/a \nsecond       up 1-00:00:00      0    n/a \n";
        assert_eq!(print(&["-h", "-t", "down"], |_| ()), expected);
        assert_eq!(print(&["-h", "-N", "-t", "down"], |_| ()), "");
        assert_eq!(print(&["-h", "-p", "nope"], |_| ()), "");
    }

    #[test]
    fn silent_nodes_carry_a_star_and_form_their_own_line() {
        let text = print(&["-h", "-p", "primary"], |nodes| (nodes[7].down, nodes[7].not_responding) = (true, true));
        assert!(text.starts_with("primary*     up   infinite      1  down* node7\n"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn unlike_sizes_share_a_line_with_a_plus_unless_exact() {
        let bigger = |nodes: &mut Vec<v1::NodeRecord>| nodes[3].memory_mb = 4096;
        assert_eq!(print(&["-h", "-p", "second", "-o", "%m %N"], bigger), "2048+ node[0-3]\n");
        let exact = print(&["-h", "-e", "-p", "second", "-o", "%m %N"], bigger);
        assert_eq!(exact, "2048 node[0-2]\n4096 node3\n");
    }

    #[test]
    fn nodes_count_once_where_partitions_are_not_told_apart() {
        assert_eq!(print(&["-h", "-o", "%D %N %C"], |_| ()), "8 node[0-7] 4/28/0/32\n");
        assert_eq!(
            print(&["-h", "-O", "NodeAIOT:.12,PartitionName:|"], |_| ()),
            "     2/6/0/8primary|\n     2/2/0/4second|\n"
        );
    }

    #[test]
    fn all_fields_print_with_bars() {
        let text = print(&["-o", "%all", "-p", "second"], |_| ());
        let bars = |line: &str| line.matches('|').count();
        let mut lines = text.lines();
        let header = lines.next().unwrap();
        assert!(header.starts_with("AVAIL|ACTIVE_FEATURES|CPUS|TMP_DISK|FREE_MEM|AVAIL_FEATURES|GROUPS|"));
        assert!(header.ends_with("|SOCKETS |CORES |THREADS "));
        assert!(lines.all(|l| bars(l) == bars(header)));
    }

    #[test]
    fn orders_may_be_asked_for() {
        let names = |words: &[&str]| print(words, |_| ()).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(names(&["-h", "-N", "-p", "second", "-o", "%N", "-S", "-N"]), ["node3", "node2", "node1", "node0"]);
        assert_eq!(names(&["-h", "-o", "%R", "-S", "-P"]), ["second", "primary"]);
    }
}
