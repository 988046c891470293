//! Configurations: read, printed, compared; and every way of getting them wrong.

use super::*;
use crate::partition::PartitionState;
use crate::time::TimeLimit;
use proptest::prelude::*;

const GOOD: &str = r#"cluster_name = "c"
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

/// `line: key: message` of every problem.
fn problems(text: &str) -> Vec<String> {
    let list = parse(text, "f").expect_err("a problem");
    list.into_iter().map(|p| format!("{}: {}: {}", p.line, p.key, p.message)).collect()
}

/// The one problem of `GOOD` with `from` replaced by `to`.
fn spoiled(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let list = problems(&GOOD.replacen(from, to, 1));
    assert_eq!(list.len(), 1, "{list:?}");
    list.into_iter().next().unwrap()
}

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
fn the_example_file_is_read_and_shows_every_key() {
    let text = include_str!("../../../etc/sluice.toml");
    let c = parse(text, "etc/sluice.toml").unwrap_or_else(|p| panic!("{p:?}"));
    assert_eq!((c.nodes.len(), c.nodes[4].cpus, c.nodes[4].memory_mb), (6, 128, 512 * 1024));
    let keys: Vec<&str> = (fields::node(&c.nodes[0]).into_iter())
        .chain(fields::partition(&c.partitions[0]))
        .chain(fields::sections(&c).into_iter().flat_map(|(_, f)| f))
        .map(|(key, _)| key)
        .collect();
    for key in keys {
        let shows = |l: &str| l.trim_start_matches("# ").starts_with(&format!("{key} = "));
        assert!(text.lines().any(shows), "etc/sluice.toml does not show {key}");
    }
}

#[test]
fn settings_that_the_example_shows_in_comments_are_the_defaults() {
    let text = include_str!("../../../etc/sluice.toml");
    let c = parse(text, "etc/sluice.toml").unwrap();
    assert_eq!((c.limits, c.timing, c.security), Default::default());
    // What the nodes and partitions show commented out, put in force, changes nothing.
    let on = ["threads_per_core = 1", "weight = 1", "state = \"UP\"", "min_nodes = 0", "priority_tier = 1"];
    let mut all = text.to_owned();
    for line in on.into_iter().chain(["allow_users = []", "hidden = false", "exclusive = false", "grace_secs = 0"]) {
        assert!(all.contains(&format!("# {line}\n")), "{line}");
        all = all.replacen(&format!("# {line}\n"), &format!("{line}\n"), 1);
    }
    assert_eq!(parse(&all, "x").unwrap().nodes, c.nodes);
    assert_eq!(parse(&all, "x").unwrap().partitions, c.partitions);
}

#[test]
fn all_problems_come_at_once_in_the_files_order() {
    let text = r#"cluster_nam = "x"
[[node]]
name = "n[1-2]"
RealMemory = 4000
cpus = "four"
[[node]]
name = "n2"
cpus = 4
memory_mb = 10
[[partition]]
name = "p"
nodes = "n[1-4]"
default_time = "2:00"
max_time = 1
MaxTimes = 3
[[partition]]
name = "p"
nodes = "n1"
[timing]
kill_wait_secs = 0
node_timeout_secs = 10
[typo]
"#;
    let expected = [
        "1: cluster_name: is missing: give the cluster a name",
        "1: cluster_nam: unknown key; did you mean 'cluster_name'?",
        "2: node n[1-2].memory_mb: is missing: the node's memory in MiB, or a text such as \"64G\"",
        "4: node n[1-2].RealMemory: unknown key; did you mean 'memory_mb'?",
        "5: node n[1-2].cpus: expected a whole number from 1 to 65536, found \"four\"",
        "7: node n2.name: node n2 is declared twice",
        "10: partition: no partition has default = true: jobs that name none would have nowhere to go",
        "12: partition p.nodes: no [[node]] declares n[3-4]",
        "13: partition p.default_time: is longer than max_time",
        "15: partition p.MaxTimes: unknown key; did you mean 'max_time'?",
        "17: partition p.name: partition p is declared twice",
        "20: timing.kill_wait_secs: expected a whole number from 1 to 86400, found 0",
        "21: timing.node_timeout_secs: node_timeout_secs (10) must be at least twice heartbeat_secs (10)",
    ];
    let found = problems(text);
    for line in expected {
        assert!(found.iter().any(|f| f == line), "missing: {line}\nfound: {found:#?}");
    }
    assert!(
        found.iter().any(|f| f.starts_with("22: typo: unknown key; known here: cluster_name, node,")),
        "{found:#?}"
    );
    assert_eq!(found.len(), expected.len() + 1, "{found:#?}");
    let text = parse(text, "/etc/sluice.toml").unwrap_err()[1].to_string();
    assert_eq!(text, "/etc/sluice.toml:1: cluster_nam: unknown key; did you mean 'cluster_name'?");
}

#[test]
fn each_absurd_value_is_one_problem_that_says_what_is_allowed() {
    for (from, to, says) in [
        ("\"c\"", "\"a b\"", "1: cluster_name: expected at most 40 letters"),
        ("node[1-3]\"\ncpus", "node[1-99999999]\"\ncpus", "3: node node[1-99999999].name: invalid host list"),
        ("cpus = 4", "cpus = -1", "4: node node[1-3].cpus: expected a whole number from 1 to 65536, found -1"),
        ("cpus = 4", "cpus = 4\nsockets = 3", "4: node node[1-3].cpus: 4 is neither the threads nor the cores"),
        ("cpus = 4", "threads_per_core = 2", "2: node node[1-3].cpus: is missing: give cpus, or sockets"),
        ("\"4G\"", "0", "5: node node[1-3].memory_mb: expected MiB (at least 1)"),
        ("\"4G\"", "4.5", "5: node node[1-3].memory_mb: expected MiB (at least 1)"),
        ("\"gpu:1\"", "\"gpu:x:y:z\"", "6: node node[1-3].gres: invalid GRES 'gpu:x:y:z'"),
        ("\"gpu:1\"", "\"gpu:a100:1\"", "6: node node[1-3].gres: gpu:a100:1: declared twice"),
        ("\"fast,ib\"", "\"fa|st\"", "7: node node[1-3].features: 'fa|st' can't be a feature's name"),
        ("\"fast,ib\"", "1", "7: node node[1-3].features: expected a list of texts, found 1"),
        ("cpus = 4", "cpus = 4\naddress = \"a[1-2]:70\"", "5: node node[1-3].address: names 2 hosts for 3 nodes"),
        ("cpus = 4", "cpus = 4\naddress = \"host\"", "5: node node[1-3].address: expected host:port"),
        ("\"main\"", "\"a,b\"", "9: partition a,b.name: expected 1 to 64 letters"),
        ("nodes = \"node[1-3]\"", "nodes = []", "10: partition main.nodes: names no node"),
        ("default = true", "default = false", "8: partition: no partition has default = true"),
        ("default = true", "default = true\nhidden = 1", "12: partition main.hidden: expected true or false, found 1"),
        ("\"1-00:00:00\"", "\"soon\"", "12: partition main.max_time: expected minutes or a text such as"),
        (
            "default = true",
            "default = true\nstate = \"up and away\"",
            "12: partition main.state: expected UP, DOWN, DRAIN or INACTIVE",
        ),
        (
            "default = true",
            "max_nodes = 0",
            "11: partition main.max_nodes: expected a whole number from 1 to 1000000 or \"UNLIMITED\"",
        ),
        ("default = true", "allow_users = [\"a b\"]", "11: partition main.allow_users: 'a b' is no name"),
        ("matlab = 3", "matlab = -3", "15: licenses.matlab: expected how many there are"),
        ("matlab = 3", "\"a|b\" = 3", "15: licenses.a|b: a licence's name has"),
        (
            "[licenses]\nmatlab",
            "[mail]\nprogram = \"mail\"\n[licenses]\nmatlab",
            "15: mail.program: expected an absolute path",
        ),
        (
            "[licenses]\nmatlab = 3",
            "[scheduling]\nqueue_depth = 0",
            "15: scheduling.queue_depth: expected a whole number",
        ),
        (
            "[licenses]\nmatlab = 3",
            "[limits]\nmax_array_size = 99999999999",
            "15: limits.max_array_size: expected a whole number",
        ),
        ("[[partition]]", "[partition]", "8: partition: expected sections with double brackets: [[partition]]"),
        ("[licenses]\nmatlab = 3", "[[timing]]", "14: timing: expected a section: [timing]"),
    ] {
        let found = spoiled(from, to);
        assert!(found.starts_with(says), "{found}\n  expected {says}");
    }
}

#[test]
fn what_is_no_toml_gives_the_line_where_reading_stopped() {
    let found = spoiled("cpus = 4", "cpus = = 4");
    assert!(found.starts_with("4: : is no valid TOML"), "{found}");
    assert!(spoiled("cpus = 4", "cpus = 4\ncpus = 5").starts_with("5: : is no valid TOML"));
    assert!(problems("")[0].starts_with("1: cluster_name: is missing"));
    assert_eq!(problems("").len(), 3);
}

#[test]
fn one_partition_is_the_default_and_two_defaults_are_one_too_many() {
    let alone = GOOD.replace("default = true\n", "");
    assert!(parse(&alone, "x").unwrap().partitions[0].default);
    let two = format!("{GOOD}[[partition]]\nname = \"b\"\nnodes = \"ALL\"\ndefault = true\n");
    assert_eq!(problems(&two), ["19: partition b.default: partition main is the default already"]);
}

#[test]
fn patterns_of_addresses_go_node_by_node() {
    let text = GOOD.replace("cpus = 4", "cpus = 4\naddress = \"10.0.0.[7-9]:6818\"");
    let c = parse(&text, "x").unwrap();
    assert_eq!(c.nodes[2].address.as_deref(), Some("10.0.0.9:6818"));
    assert_eq!(parse(&to_toml(&c), "y").unwrap(), c);
    let ipv6 = "[[node]]\nname = \"m\"\ncpus = 1\nmemory_mb = 1\naddress = \"[::1]:99\"\n[[partition]]";
    let c = parse(&GOOD.replace("[[partition]]", ipv6), "x").unwrap();
    assert_eq!(c.nodes[3].address.as_deref(), Some("[::1]:99"));
}

#[test]
fn a_comparison_names_each_change_once() {
    let old = parse(GOOD, "x").unwrap();
    let mut new = parse(&GOOD.replace("cpus = 4", "cpus = 8").replace("matlab = 3", "fluent = 1"), "x").unwrap();
    new.timing.kill_wait_secs = 20;
    new.nodes[2].weight = 5;
    new.nodes.push(crate::NodeSpec { name: "extra".into(), ..new.nodes[0].clone() });
    new.partitions[0].state = PartitionState::Down;
    new.partitions[0].default_time = None;
    assert_eq!(
        diff(&old, &new),
        [
            "node node[1-3]: cpus: 4 -> 8",
            "node node[1-3]: cores_per_socket: 4 -> 8",
            "node node3: weight: 1 -> 5",
            "node extra: added",
            "partition main: default_time: \"00:30:00\" -> (none)",
            "partition main: state: \"UP\" -> \"DOWN\"",
            "timing.kill_wait_secs: 30 -> 20",
            "licenses.fluent: added, 1",
            "licenses.matlab: removed",
        ]
    );
    assert!(diff(&old, &old).is_empty());
    new.nodes.swap(0, 1);
    assert!(diff(&old, &new).contains(&"node: the order changes".to_owned()));
}

fn configs() -> impl Strategy<Value = ClusterConfig> {
    let numbers = prop::collection::btree_set(0u32..30, 1..12);
    let word = "[a-z]{1,3}";
    (
        numbers,
        prop::collection::vec(any::<u16>(), 24),
        prop::collection::vec(word, 0..3),
        any::<[bool; 8]>(),
        "\\PC{0,12}",
    )
        .prop_map(|(numbers, r, words, b, text)| {
            let mut c = parse(GOOD, "x").unwrap();
            let few = |i: usize, max: u16| r[i] % max;
            let base = c.nodes[0].clone();
            c.nodes = numbers
                .iter()
                .map(|n| crate::NodeSpec { name: crate::NodeName::new(format!("n{n}")), ..base.clone() })
                .collect();
            for (i, node) in c.nodes.iter_mut().enumerate() {
                node.weight = u32::from(few(i, 2));
                node.address = (few(i, 7) == 0).then(|| format!("h{i}:{}", 1 + few(i, 9)));
                node.features = words.clone();
                node.tmp_disk_mb = r[3].into();
            }
            let p = &mut c.partitions[0];
            p.nodes = c.nodes.iter().filter(|n| n.weight > 0).map(|n| n.name.clone()).collect();
            if p.nodes.is_empty() {
                p.nodes.push(c.nodes[0].name.clone());
            }
            p.max_time = if b[0] { TimeLimit::Unlimited } else { TimeLimit::Minutes(1 + u32::from(r[4])) };
            p.default_time = b[1].then_some(p.max_time);
            p.max_nodes = b[2].then_some(1 + u32::from(r[5]));
            p.allow_users = words.clone();
            (p.hidden, p.exclusive, p.root_only) = (b[3], b[4], b[5]);
            p.max_memory_per_node_mb = b[6].then_some(1 + u64::from(r[6]));
            c.partitions.push(crate::PartitionSpec { name: "other".into(), default: false, ..c.partitions[0].clone() });
            c.scheduling.default_memory_per_node_mb = b[7].then_some(1 + u64::from(r[7]));
            c.timing.kill_wait_secs = 1 + u32::from(r[8]);
            c.security.administrators = words;
            c.mail.program = b[0].then(|| format!("/{text}"));
            c.limits.submit_rate = u32::from(r[9]);
            let delay = u32::from(r[10]);
            let rule = RequeueRule { retries: b[2].then_some(1), delay_secs: Some(delay), longest_delay_secs: None };
            c.requeue.rules[RequeueCause::ExitCode as usize] = rule;
            c.requeue.exit_codes =
                if b[3] { crate::IndexSet::range(1, 1 + u32::from(r[11] % 200)) } else { crate::IndexSet::new() };
            c.accounting.enforce.safe = b[1];
            c.accounting.enforce.limits = b[1];
            c.accounting.enforce.associations = b[1];
            c.mail.domain = Some(text);
            c
        })
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_equal(c in configs()) {
        let text = to_toml(&c);
        prop_assert_eq!(parse(&text, "y"), Ok(c), "{}", text);
    }

    #[test]
    fn a_comparison_is_empty_exactly_for_equal_configurations(a in configs(), b in configs()) {
        prop_assert_eq!(diff(&a, &b).is_empty(), a == b);
    }
}

#[test]
fn the_priority_section_is_read_and_printed_as_slurm_names_it() {
    let text = format!(
        "{GOOD}[priority]\ntype = \"multifactor\"\nweight_age = 1000\nweight_tres = \"CPU=1000,GRES/gpu=3000.5\"\n\
         max_age = \"30\"\ndecay_half_life = \"14-0\"\nusage_reset_period = \"monthly\"\ncalc_period = \"0:10\"\n\
         flags = [\"no_normal_all\", \"MAX_TRES\"]\n"
    );
    let c = parse(&text, "f").unwrap();
    let p = &c.priority;
    assert_eq!((p.kind, p.weight_age, p.weight_qos), (PriorityKind::Multifactor, 1000, 0));
    assert_eq!((p.max_age_secs, p.decay_half_life_secs, p.calc_period_secs), (1800, 14 * 86_400, 10));
    assert_eq!(p.weight_tres.to_string(), "cpu=1000,gres/gpu=3000.5");
    assert_eq!(p.usage_reset, UsageReset::Monthly);
    assert!(p.flags.has(PriorityFlags::NO_NORMAL_PART) && !p.flags.has(PriorityFlags::INCR_ONLY));
    assert_eq!(parse(&to_toml(&c), "again").unwrap(), c);
    let unsaid = parse(GOOD, "f").unwrap().priority;
    assert_eq!((unsaid.kind, &unsaid), (PriorityKind::SmallestFirst, &PriorityConfig::default()));
}

#[test]
fn a_wrong_priority_setting_is_named_with_its_line_and_what_is_allowed() {
    let with = |line: &str| {
        let list = problems(&format!("{GOOD}[priority]\n{line}\n"));
        assert_eq!(list.len(), 1, "{list:?}");
        list.into_iter().next().unwrap()
    };
    assert_eq!(
        with("type = \"random\""),
        "17: priority.type: expected one of smallest_first, fifo, multifactor, found \"random\""
    );
    assert!(with("weight_age = -1").starts_with("17: priority.weight_age: expected a whole number from 0"));
    assert!(with("flags = [\"FOO\"]").contains("'FOO' is no priority flag; known: ACCRUE_ALWAYS"));
    assert!(with("weight_tres = \"cpu=x\"").contains("invalid TRES weight 'x'"));
    assert!(with("decay_half_life = 0").contains("needs usage_reset_period"));
    assert!(with("usage_reset_period = \"hourly\"").contains("NONE, NOW, DAILY"));
    assert!(with("weight_fair_share = 1").contains("did you mean 'weight_fairshare'?"));
}

#[test]
fn usage_is_forgotten_at_the_midnight_that_the_period_names() {
    let tz = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
    let at = |text: &str| crate::Time(format!("{text}+02:00").parse::<jiff::Timestamp>().unwrap().as_millisecond());
    // A Monday.
    let now = at("2026-11-30T15:00:00");
    for (period, due) in [
        (UsageReset::Daily, "2026-11-30T00:00:00"),
        (UsageReset::Weekly, "2026-11-29T00:00:00"),
        (UsageReset::Monthly, "2026-11-01T00:00:00"),
        (UsageReset::Quarterly, "2026-10-01T00:00:00"),
        (UsageReset::Yearly, "2026-01-01T00:00:00"),
    ] {
        assert_eq!(period.last_due(now, &tz), Some(at(due)), "{period:?}");
        assert_eq!(period.last_due(at(due), &tz), Some(at(due)), "{period:?} at that very moment");
    }
    assert_eq!(UsageReset::Now.last_due(now, &tz), None);
}

#[test]
fn usage_is_forgotten_once_for_each_period_that_began_and_with_now_once_for_each_start() {
    let tz = jiff::tz::TimeZone::UTC;
    let day = |n: i64| crate::Time(n * 86_400_000);
    let (morning, noon) = (crate::Time(day(10).0 + 1), crate::Time(day(10).0 + 43_200_000));
    let due = |period: UsageReset, last, started| period.is_due(last, started, noon, &tz);
    assert!(due(UsageReset::Daily, Some(day(9)), morning), "a period began while the controller was down");
    assert!(!due(UsageReset::Daily, Some(morning), day(1)), "it was done today");
    assert!(!due(UsageReset::Daily, None, morning), "it was never done, and no period began since the start");
    assert!(due(UsageReset::Daily, None, day(9)));
    assert!(due(UsageReset::Now, None, morning) && due(UsageReset::Now, Some(day(9)), morning));
    assert!(!due(UsageReset::Now, Some(morning), morning), "once is enough");
    assert!(!due(UsageReset::None, None, day(1)));
}

#[test]
fn what_is_said_of_requeues_is_read_by_cause_and_mistakes_are_named() {
    let text = "[requeue]\nexit_codes = \"1-9,18\"\nhold_exit_codes = \"99\"\n[requeue.node_failure]\nretries = 10\n\
                delay_secs = 30\nlongest_delay_secs = 3600\n[requeue.exit_code]\nretries = 0\n";
    let c = parse(&format!("{GOOD}{text}"), "f").unwrap();
    let exit = |code| c.requeue.after_exit(crate::state::ExitStatus { code, signal: 0 });
    assert_eq!([0, 9, 18, 99].map(exit), {
        [AfterExit::Ends, AfterExit::Requeued, AfterExit::Requeued, AfterExit::RequeuedHeld]
    });
    assert_eq!(c.requeue.retries(RequeueCause::ExitCode, &c.limits), Some(0));
    assert_eq!(c.requeue.delay_secs(RequeueCause::NodeFailure, 2, &c.timing), 60);
    assert_eq!(parse(&to_toml(&c), "again").unwrap(), c);
    let wrong = "[requeue]\nexit_codes = \"0-3\"\n[requeue.node_failures]\n[requeue.exit_code]\nretry = 1\n\
                 delay_secs = 60\nlongest_delay_secs = 30\n";
    assert_eq!(
        problems(&format!("{GOOD}{wrong}")),
        [
            "17: requeue.exit_codes: '0-3' is no list of exit codes from 1 to 255, such as \"1-9,18\"",
            "18: requeue.node_failures: unknown key; did you mean 'node_failure'?",
            "20: requeue.exit_code.retry: unknown key; known here: retries, delay_secs, longest_delay_secs",
            "22: requeue.exit_code.longest_delay_secs: 30 is less than delay_secs (60)",
        ]
    );
}

fn with_topology(topology: &str) -> Result<ClusterConfig, Vec<ConfigProblem>> {
    let text = format!(
        "cluster_name = \"c\"\n[[node]]\nname = \"n[1-4]\"\ncpus = 8\nmemory_mb = 100\ngres = \
         [\"gpu:2(mem=8G;cores=0-3/4-7;links=0,1/1,0)\"]\n[[partition]]\nname = \"p\"\nnodes = \"ALL\"\nleast_loaded = \
         true\n{topology}"
    );
    parse(&text, "x")
}

#[test]
fn a_topology_is_printed_as_it_is_read() {
    for topology in [
        "",
        "[topology]\nswitch = [{ name = \"s0\", nodes = \"n[1-2]\" }, { name = \"t\", switches = \"s0\" }]\n",
        "[topology]\nblock_sizes = [2, 4]\n[[topology.block]]\nname = \"a\"\nnodes = \"n[1-2]\"\n[[topology.block]]\nname \
         = \"b\"\nnodes = \"n[3-4]\"\n",
    ] {
        let config = with_topology(topology).unwrap_or_else(|p| panic!("{p:?}"));
        assert_eq!(parse(&to_toml(&config), "x").unwrap(), config);
    }
}

#[test]
fn a_topology_that_can_not_be_is_refused_with_the_reason() {
    for (topology, problem) in [
        ("[topology]\nswitch = [{ name = \"s\" }]", "either nodes or switches"),
        ("[topology]\nswitch = [{ name = \"s\", nodes = \"n9\" }]", "no [[node]] declares n9"),
        ("[topology]\nswitch = [{ name = \"s\", switches = \"t\" }]", "there is no switch t"),
        (
            "[topology]\nswitch = [{ name = \"s\", switches = \"t\" }, { name = \"t\", switches = \"s\" }]",
            "below itself",
        ),
        ("[topology]\nswitch = [{ name = \"s\", nodes = \"n1\" }, { name = \"t\", nodes = \"n1\" }]", "named twice"),
        ("[topology]\nswitch = [{ name = \"s\", nodes = \"n1\" }, { name = \"s\", nodes = \"n2\" }]", "given twice"),
        ("[topology]\nblock = [{ name = \"b\", nodes = \"n1\" }]\nblock_sizes = [2]", "fewer nodes"),
        ("[topology]\nblock = [{ name = \"b\", nodes = \"n1\" }]\nblock_sizes = [1, 3]", "2, 4, 8"),
        ("[topology]\nblock_sizes = [1]", "only with"),
    ] {
        let problems = with_topology(&format!("{topology}\n")).expect_err(topology);
        let text: String = problems.iter().map(ToString::to_string).collect();
        assert!(text.contains(problem), "{topology}: {text}");
    }
}
