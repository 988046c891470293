//! The tree of shares: places and columns as Slurm's, and what must hold for any tree.

use proptest::prelude::*;
use sluice_model::Time;
use sluice_sched::fairshare::decay::{Decayed, of_run, remains};
use sluice_sched::fairshare::{Algorithm, Member, Shares, Standing, standings};
use std::collections::BTreeMap;

/// `account|user|shares|usage`, a blank for each level: sshare's own form.
fn tree(lines: &str) -> (Vec<String>, Vec<Member>) {
    let mut names = Vec::new();
    let mut members = Vec::new();
    let mut open: Vec<u32> = Vec::new();
    for line in lines.lines().filter(|l| !l.is_empty()) {
        let depth = line.len() - line.trim_start().len();
        let [account, user, shares, usage] = line.trim().split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        open.truncate(depth);
        let shares = match shares {
            "parent" => Shares::Parent,
            "" => Shares::Raw(1),
            n => Shares::Raw(n.parse().unwrap()),
        };
        members.push(Member {
            parent: open.last().copied(),
            shares,
            usage: usage.parse().unwrap(),
            is_user: !user.is_empty(),
        });
        names.push(format!("{account}/{user}"));
        open.push(names.len() as u32 - 1);
    }
    (names, members)
}

fn ranked(lines: &str) -> BTreeMap<String, Standing> {
    let (names, members) = tree(lines);
    names.into_iter().zip(standings(&members, Algorithm::FairTree, 1)).collect()
}

fn six(x: f64) -> String {
    format!("{x:.6}")
}

/// The very tree was set up on Slurm 22.05, jobs of 1, 2 and 3 CPUs ran, and sshare -al was written down.
#[test]
fn the_columns_are_those_that_sshare_shows_for_the_same_tree() {
    let lines = "\
root|||1499
 root|root|1|0
 aa||40|449
  aa|bin|20|149
  aa|daemon|10|299
  aa|sys|10|0
 bb||30|599
  bb|games|2|449
  bb-cc||1|149
   cc|lp|parent|149
   cc|man|1|0
 dd||30|299
  dd|mail|parent|299
  dd|news|parent|0
 otheracct||1|0
  otheracct|slurmtest|1|0
 pp||parent|149
  pp|proxy|0|0
  pp|uucp|5|149
 testacct||1|0
  testacct|root|1|0
  testacct|slurmtest|1|0";
    let out = ranked(lines);
    // account/user, NormShares, EffectvUsage, FairShare, LevelFS
    for (name, shares, usage, factor, level) in [
        ("root/", "0.000000", 1.0, "", "inf"),
        ("root/root", "0.009259", 0.0, "1.000000", "inf"),
        ("aa/", "0.370370", 0.3, "", "1.234568"),
        ("aa/bin", "0.500000", 0.333333, "0.500000", "1.500000"),
        ("aa/daemon", "0.250000", 0.666667, "0.428571", "0.375000"),
        ("aa/sys", "0.250000", 0.0, "0.571429", "inf"),
        ("bb/", "0.277778", 0.4, "", "0.694444"),
        ("bb/games", "0.666667", 0.75, "0.214286", "0.888889"),
        ("bb-cc/", "0.333333", 0.25, "", "1.333333"),
        ("cc/lp", "0.333333", 1.0, "0.357143", "inf"),
        ("cc/man", "1.000000", 0.0, "0.357143", "inf"),
        ("dd/", "0.277778", 0.2, "", "1.388889"),
        ("dd/mail", "0.277778", 1.0, "0.714286", "inf"),
        ("dd/news", "0.277778", 0.0, "0.714286", "inf"),
        ("otheracct/slurmtest", "1.000000", 0.0, "1.000000", "inf"),
        ("pp/", "0.000000", 0.1, "", "0.000000"),
        ("pp/proxy", "0.000000", 0.0, "0.071429", "0.000000"),
        ("pp/uucp", "0.046296", 0.1, "0.142857", "0.462963"),
        ("testacct/root", "0.500000", 0.0, "1.000000", "inf"),
    ] {
        let s = &out[name];
        assert_eq!(six(s.norm_shares), shares, "{name} NormShares");
        // sshare's own usage has parts of seconds that its RawUsage column does not show.
        assert!((s.effective_usage - usage).abs() < 0.002, "{name} EffectvUsage {}", s.effective_usage);
        assert_eq!(s.factor.map(six).unwrap_or_default(), factor, "{name} FairShare");
        if level == "inf" {
            assert_eq!(s.level_fs, f64::INFINITY, "{name} LevelFS");
        } else {
            assert!((s.level_fs - level.parse::<f64>().unwrap()).abs() < 0.01, "{name} LevelFS {}", s.level_fs);
        }
    }
}

#[test]
fn all_users_of_an_account_that_had_less_stand_before_all_of_its_sibling() {
    let out = ranked("root|||100\n a||1|90\n  a|idle|1|0\n  a|busy|1|90\n b||1|10\n  b|busy|1|10\n  b|idle|1|0");
    let order = ["b/idle", "b/busy", "a/idle", "a/busy"];
    let factors: Vec<f64> = order.iter().map(|n| out[*n].factor.unwrap()).collect();
    assert_eq!(factors, [1.0, 0.75, 0.5, 0.25]);
}

#[test]
fn tied_accounts_are_one_family_and_a_tied_user_shares_the_place_of_the_first() {
    // a and b are level, and so is user u beside them.
    let out = ranked("root|||30\n a||1|10\n  a|x|1|10\n  a|y|1|0\n b||1|10\n  b|x|1|10\n  b|y|1|0\n root|u|1|10");
    let factor = |n: &str| out[n].factor.unwrap();
    assert_eq!(factor("root/u"), 1.0);
    assert_eq!((factor("a/y"), factor("b/y")), (1.0, 1.0));
    assert_eq!((factor("a/x"), factor("b/x")), (0.4, 0.4));
}

#[test]
fn nobody_has_used_anything_and_all_stand_first() {
    let out = ranked("root|||0\n a||3|0\n  a|x|1|0\n  a|y|9|0\n b||1|0\n  b|x|1|0");
    assert!(out.values().filter_map(|s| s.factor).all(|f| f == 1.0));
}

#[test]
fn without_fair_tree_the_factor_is_a_power_of_usage_by_shares() {
    let (names, members) = tree("root|||100\n a||3|60\n  a|x|1|60\n  a|y|1|0\n b||1|40\n  b|z|1|40");
    let out = standings(&members, Algorithm::Classic, 1);
    let of = |name: &str| out[names.iter().position(|n| n == name).unwrap()];
    // Just below the root effective usage is usage; further down it is mixed with the parent's.
    assert!((of("a/x").effective_usage - 0.6).abs() < 1e-12);
    assert!((of("a/y").effective_usage - 0.3).abs() < 1e-12);
    assert!((of("a/y").factor.unwrap() - (-0.3_f64 / 0.375).exp2()).abs() < 1e-12);
    assert!((of("b/z").factor.unwrap() - (-0.4_f64 / 0.25).exp2()).abs() < 1e-12);
    let mild = standings(&members, Algorithm::Classic, 4);
    assert!(mild.iter().zip(&out).all(|(m, o)| m.factor >= o.factor), "dampening forgives");
    let deep = standings(&members, Algorithm::DepthOblivious, 1);
    assert!(deep.iter().filter_map(|s| s.factor).all(|f| (0.0..=1.0).contains(&f)));
}

#[test]
fn a_list_that_is_no_tree_is_ranked_all_the_same() {
    let loose = |parent, is_user| Member { parent, is_user, usage: 1.0, ..Member::default() };
    // Two accounts in a circle, a user below a user, a parent that does not exist, an account that is its own parent.
    let members = [
        loose(None, false),
        loose(Some(2), false),
        loose(Some(1), false),
        loose(Some(1), true),
        loose(Some(3), true),
        loose(Some(99), true),
        loose(Some(6), false),
        Member { usage: f64::NAN, ..loose(Some(6), true) },
    ];
    for algorithm in [Algorithm::FairTree, Algorithm::Classic, Algorithm::DepthOblivious] {
        let out = standings(&members, algorithm, 1);
        for (m, s) in members.iter().zip(&out) {
            assert_eq!(s.factor.is_some(), m.is_user);
            assert!(s.factor.is_none_or(|f| (0.0..=1.0).contains(&f)), "{algorithm:?} {s:?}");
        }
    }
    assert!(standings(&[], Algorithm::FairTree, 1).is_empty());
}

fn any_members() -> impl Strategy<Value = Vec<Member>> {
    let member = (0_u32..1000, 0_u32..5, prop::bool::weighted(0.1), 0_u32..4, any::<bool>());
    prop::collection::vec(member, 1..24).prop_map(|rows| {
        let mut members = vec![Member::default()];
        for (parent, shares, own, usage, is_user) in rows {
            let accounts: Vec<u32> = (0..members.len() as u32).filter(|m| !members[*m as usize].is_user).collect();
            let shares = if own { Shares::Parent } else { Shares::Raw(shares) };
            let parent = accounts[parent as usize % accounts.len()];
            members.push(Member { parent: Some(parent), shares, usage: f64::from(usage) * 10.0, is_user });
        }
        members
    })
}

/// Charges what each has used itself upwards, as the engine does (accounts: by users who are gone).
fn charged(mut members: Vec<Member>) -> Vec<Member> {
    let own: Vec<f64> = members.iter().map(|m| m.usage).collect();
    for at in 1..members.len() {
        let mut up = members[at].parent;
        while let Some(p) = up {
            members[p as usize].usage += own[at];
            up = members[p as usize].parent;
        }
    }
    members
}

const ALL: [Algorithm; 3] = [Algorithm::FairTree, Algorithm::Classic, Algorithm::DepthOblivious];

proptest! {
    #[test]
    fn the_order_of_the_list_does_not_matter(members in any_members(), seed in any::<u64>()) {
        let members = charged(members);
        // A permutation drawn from the seed.
        let mut to: Vec<usize> = (0..members.len()).collect();
        let mut x = seed | 1;
        for at in (1..to.len()).rev() {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            to.swap(at, (x >> 33) as usize % (at + 1));
        }
        let mut shuffled = vec![Member::default(); members.len()];
        for (from, at) in to.iter().enumerate() {
            let parent = members[from].parent.map(|p| to[p as usize] as u32);
            shuffled[*at] = Member { parent, ..members[from] };
        }
        for algorithm in ALL {
            let (a, b) = (standings(&members, algorithm, 1), standings(&shuffled, algorithm, 1));
            for (from, at) in to.iter().enumerate() {
                let (x, y) = (a[from].factor, b[*at].factor);
                prop_assert_eq!(x.is_some(), y.is_some());
                prop_assert!((x.unwrap_or(0.0) - y.unwrap_or(0.0)).abs() < 1e-9, "{:?}", algorithm);
            }
        }
    }

    #[test]
    fn who_uses_more_never_rises_and_every_factor_lies_between_0_and_1(
        members in any_members(), who in any::<prop::sample::Index>(), more in 1_u32..100
    ) {
        let users: Vec<usize> = (0..members.len()).filter(|m| members[*m].is_user).collect();
        prop_assume!(!users.is_empty());
        let who = users[who.index(users.len())];
        let mut busier = members.clone();
        busier[who].usage += f64::from(more);
        for algorithm in ALL {
            let before = standings(&charged(members.clone()), algorithm, 1);
            let after = standings(&charged(busier.clone()), algorithm, 1);
            prop_assert!(after.iter().filter_map(|s| s.factor).all(|f| (0.0..=1.0).contains(&f)));
            // The mixtures with the parents' usage of the others are no monotone functions; Slurm's aren't either.
            if algorithm == Algorithm::FairTree {
                prop_assert!(after[who].factor.unwrap() <= before[who].factor.unwrap() + 1e-9, "{:?}", algorithm);
            }
        }
    }

    #[test]
    fn more_shares_never_lower_a_place(members in any_members(), who in any::<prop::sample::Index>(), more in 1_u32..10) {
        let users: Vec<usize> = (0..members.len()).filter(|m| members[*m].is_user).collect();
        prop_assume!(!users.is_empty());
        let who = users[who.index(users.len())];
        let Shares::Raw(shares) = members[who].shares else { return Ok(()) };
        let members = charged(members);
        let mut richer = members.clone();
        richer[who].shares = Shares::Raw(shares + more);
        let before = standings(&members, Algorithm::FairTree, 1);
        let after = standings(&richer, Algorithm::FairTree, 1);
        prop_assert!(after[who].factor >= before[who].factor);
    }

    #[test]
    fn looking_in_between_and_cutting_a_run_change_nothing(
        start in 0_i64..10_000_000, first in 0_i64..10_000_000, second in 0_i64..10_000_000,
        half in prop::option::of(1_000_i64..100_000_000), rate in 0_u32..1000
    ) {
        let (a, b, c) = (Time(start), Time(start + first), Time(start + first + second));
        let rate = f64::from(rate);
        let whole = of_run(rate, a, c, half);
        let pieces = of_run(rate, a, b, half) * remains(second, half) + of_run(rate, b, c, half);
        prop_assert!((whole - pieces).abs() <= 1e-9 * whole.max(1.0), "{whole} {pieces}");
        let zero = Decayed { value: 7.0, at: a };
        let once = zero.seen_at(c, half);
        let twice = Decayed { value: zero.seen_at(b, half), at: b }.seen_at(c, half);
        prop_assert!((once - twice).abs() <= 1e-9);
        let (x, y) = (zero.with_run(rate, a, b, half).with_run(rate, b, c, half), zero.with_run(rate, a, c, half));
        prop_assert!((x.value - y.value).abs() <= 1e-9 * y.value.max(1.0));
        prop_assert!(whole <= rate * (first + second) as f64 / 1000.0 + 1e-6, "a decayed run is never more than the run");
    }
}

#[test]
fn after_a_half_life_half_is_left() {
    assert_eq!(remains(7 * 86_400_000, Some(7 * 86_400_000)), 0.5);
    assert_eq!(remains(1, None), 1.0);
    let day = 86_400_000;
    assert_eq!(of_run(4.0, Time(0), Time(day), None), 345_600.0);
    // In the long run a steady rate levels out at rate x H / ln 2.
    let steady = of_run(1.0, Time(0), Time(1000 * day), Some(day));
    assert!((steady - 86_400.0 / std::f64::consts::LN_2).abs() < 1e-6);
}
