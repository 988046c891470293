//! Properties that hold for every parser: any text gives a value or an error, never a panic, and quickly; what is
//! printed reads back equal.

use crate::index_set::IndexSet;
use crate::job::SignalRequest;
use crate::request::{Constraint, Distribution, GresScope, NodeCount};
use crate::time::{Time, TimeLimit};
use crate::*;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use std::time::Duration;

/// Feeds a text to every parser of the crate.
fn feed_all(text: &str) {
    let _ = hostlist::expand(text);
    let _ = IndexSet::parse(text, 1 << 20);
    let _ = array::parse_array(text, 1001);
    let _ = dependency::parse(text);
    let _ = signal::parse_signal_name(text);
    let _ = signal::parse_signal_request(text);
    let _ = gres::parse_gres(text, GresScope::Node);
    let _ = gres::parse_gpus(text, GresScope::Job);
    let _ = gres::parse_gres_spec(text);
    let _ = memory::parse_memory_mb(text);
    let _ = constraint::parse(text);
    let _ = node_count::parse(text);
    let _ = mail::parse(text);
    let _ = licenses::parse(text);
    let _ = sharing::parse_distribution(text);
    let _ = sharing::parse_exclusive(Some(text));
    let _ = sharing::parse_propagate(Some(text));
    let _ = job_target::parse(text);
    let _ = job_target::parse_list(text);
    let _ = layout::decompress(text);
    let _ = tres::parse_tres(text);
    let _ = time::parse_time_limit(text);
    let _ = time::parse_when(text, Time::from_secs(1_800_000_000), &TimeZone::UTC);
    let _ = time::format_time_with(Time::from_secs(1_800_000_000), &TimeZone::UTC, text);
    let _ = directive::parse(text.as_bytes(), "SBATCH");
    let _ = filename::expand(text.as_bytes(), &filename::FilenameContext::default());
    let _ = config::parse(text, "x");
}

/// Texts made of what the grammars are made of, so that parsers get far into them.
fn spicy() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "0",
        "1",
        "12",
        "99999999999",
        "4294967295",
        "4294967296",
        "18446744073709551616",
        "-",
        ":",
        ",",
        "_",
        ".",
        "[",
        "]",
        "(",
        ")",
        "%",
        "&",
        "|",
        "*",
        "?",
        "+",
        "=",
        "@",
        "/",
        "\\",
        "#",
        "\"",
        "'",
        " ",
        "\n",
        "node",
        "gpu",
        "after",
        "afterok",
        "singleton",
        "now",
        "days",
        "T",
        "PM",
        "noon",
        "USR1",
        "B",
        "k",
        "G",
        "block",
        "plane=",
        "mem",
        "cpu",
        "gres/",
        "ALL",
        "#SBATCH",
        "é",
        "\u{1F600}",
        "\0",
    ]);
    prop::collection::vec(pieces, 0..14).prop_map(|p| p.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_a_parser_panic(text in spicy(), other in any::<String>()) {
        feed_all(&text);
        feed_all(&other);
    }
}

#[test]
fn texts_of_a_hundred_thousand_characters_are_dealt_with() {
    for piece in [
        "1",
        ",",
        "-",
        "[",
        "]",
        "(",
        "a&",
        "1,",
        "1-2,",
        "n[1-9],",
        ":1",
        "_",
        "x",
        "0-1048575:3,",
        "é",
        "%j",
        "afterok:1,",
        "[[a]]\n",
        "a=[",
        "\\\"",
    ] {
        feed_all(&piece.repeat(100_000 / piece.len() + 1));
    }
}

fn name() -> impl Strategy<Value = String> {
    "[a-z]{1,3}[0-9]{0,4}"
}

fn constraints() -> impl Strategy<Value = Constraint> {
    let leaf = "[a-z][a-z0-9_]{0,4}".prop_map(Constraint::Feature);
    leaf.prop_recursive(4, 20, 3, |inner| {
        let parts = prop::collection::vec(inner, 2..4);
        prop_oneof![parts.clone().prop_map(Constraint::All), parts.prop_map(Constraint::Any)]
    })
}

proptest! {
    #[test]
    fn host_lists_fold_and_expand_as_exact_inverses(
        mut names in prop::collection::vec(name(), 0..20), sort in any::<bool>()
    ) {
        if sort {
            names.sort();
        }
        prop_assert_eq!(hostlist::expand(&hostlist::fold(&names)).unwrap(), names);
    }

    #[test]
    fn numbered_hosts_fold_and_expand_as_exact_inverses(
        numbers in prop::collection::vec((0u64..130, 1usize..4), 1..40)
    ) {
        let names: Vec<String> = numbers.iter().map(|(n, w)| format!("n{n:0w$}", w = *w)).collect();
        let folded = hostlist::fold(&names);
        prop_assert_eq!(folded.matches('n').count(), 1);
        prop_assert_eq!(hostlist::expand(&folded).unwrap(), names);
    }

    #[test]
    fn time_limits_read_back(minutes in 1u32..=1 << 31) {
        let limit = TimeLimit::Minutes(minutes);
        prop_assert_eq!(time::parse_time_limit(&minutes.to_string()).unwrap(), limit);
        prop_assert_eq!(time::parse_time_limit(&time::format_time_limit(limit)).unwrap(), limit);
        prop_assert_eq!(time::parse_time_limit(&time::format_time_limit_long(limit)).unwrap(), limit);
    }

    #[test]
    fn times_print_and_read_back(secs in 0i64..4_000_000_000) {
        let t = Time::from_secs(secs);
        let text = time::format_time(t, &TimeZone::UTC);
        prop_assert_eq!(time::parse_when(&text, Time::from_secs(0), &TimeZone::UTC).unwrap(), t);
    }

    #[test]
    fn durations_of_any_length_print(secs in any::<u64>(), nanos in 0u32..1_000_000_000, ms in any::<i64>()) {
        let d = Duration::new(secs, nanos);
        prop_assert!(time::format_elapsed(d).len() <= time::format_elapsed_long(d).len());
        let _ = time::format_time(Time(ms), &TimeZone::UTC);
    }

    #[test]
    fn amounts_of_memory_read_back(mb in 0u64..=1 << 53) {
        prop_assert_eq!(memory::parse_memory_mb(&memory::format_memory_mb(mb)).unwrap(), mb);
    }

    #[test]
    fn constraints_print_to_what_means_the_same(
        c in constraints(), features in prop::collection::vec("[a-z][a-z0-9_]{0,4}", 0..4)
    ) {
        let again = constraint::parse(&c.to_string()).unwrap();
        let named: Vec<&str> = c.features().into_iter().step_by(2).chain(features.iter().map(String::as_str)).collect();
        prop_assert_eq!(again.matches(&named), c.matches(&named));
        prop_assert_eq!(again.to_string(), c.to_string());
    }

    #[test]
    fn small_requests_read_back(
        min in 1u32.., more in 0u32..1000, size in 1u32..1 << 20,
        signal in 1u8..=64, before_secs in 0u32..=65_535, b in any::<bool>(), r in any::<bool>()
    ) {
        let count = NodeCount { min, max: Some(min.saturating_add(more)) };
        prop_assert_eq!(node_count::parse(&count.to_string()).unwrap(), count);
        let request = SignalRequest { signal, before_secs, batch_shell: b, reservation: r };
        let text = signal::format_signal_request(&request);
        prop_assert_eq!(signal::parse_signal_request(&text).unwrap(), request, "{}", text);
        let plane = Distribution::Plane(size);
        prop_assert_eq!(sharing::parse_distribution(&plane.to_string()).unwrap(), (Some(plane), None));
    }

    #[test]
    fn layouts_place_every_rank_once_and_within_room(
        tasks in 0u32..200, room in prop::collection::vec(0u32..40, 1..12), plane in 1u32..6,
        overcommit in any::<bool>()
    ) {
        for d in [Distribution::Block, Distribution::Cyclic, Distribution::Plane(plane)] {
            let fits = tasks <= room.iter().sum();
            let Some(ranks) = layout::tasks_per_node(tasks, &room, d, overcommit) else {
                prop_assert!(!fits && !overcommit);
                continue;
            };
            prop_assert!(fits || overcommit);
            if fits {
                prop_assert!(ranks.iter().zip(&room).all(|(r, room)| r.len() as u32 <= *room));
            }
            prop_assert!(ranks.iter().all(|r| r.is_sorted()));
            let counts: Vec<u32> = ranks.iter().map(|r| r.len() as u32).collect();
            prop_assert_eq!(layout::decompress(&layout::compress(&counts)).unwrap(), counts);
            let mut all = ranks.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..tasks).collect::<Vec<_>>());
        }
    }

    #[test]
    fn environment_blocks_hold_what_was_put_in(
        vars in prop::collection::btree_map(
            prop::collection::vec(1u8.., 1..4), prop::collection::vec(1u8.., 0..4), 0..8
        )
    ) {
        let vars: Vec<(Vec<u8>, Vec<u8>)> = vars.into_iter().filter(|(n, _)| !n.contains(&b'=')).collect();
        let block = env_block::build(vars.iter().map(|(n, v)| (n, v)));
        let back: Vec<(Vec<u8>, Vec<u8>)> = env_block::vars(&block).map(|(n, v)| (n.to_vec(), v.to_vec())).collect();
        prop_assert_eq!(&back, &vars);
        for (n, v) in &vars {
            prop_assert_eq!(env_block::get(&block, n), Some(&v[..]));
        }
    }

    #[test]
    fn words_in_quotes_survive_a_directive(words in prop::collection::vec("[ -~]{1,12}", 1..5)) {
        // Every character behind a backslash: sbatch's own rule for keeping it.
        let escaped = |w: &String| w.chars().flat_map(|c| ['\\', c]).collect::<String>();
        let line = words.iter().map(escaped).collect::<Vec<_>>().join(" ");
        let script = format!("#!/bin/sh\n#SBATCH {line}\n");
        let read = directive::parse(script.as_bytes(), "SBATCH").unwrap();
        prop_assert_eq!(read, words.into_iter().map(String::into_bytes).collect::<Vec<_>>());
    }
}
