//! Index sets against `BTreeSet`, their canonical form, their texts.

use super::IndexSet;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn a_million_task_array_is_one_run_and_loses_its_first_cheaply() {
    let mut s = IndexSet::range(0, 999_999);
    for i in 0..1000 {
        assert_eq!(s.pop_first(), Some(i));
    }
    assert_eq!(s.ranges().collect::<Vec<_>>(), [(1000, 999_999, 1)]);
}

#[test]
fn steps_are_printed_and_read_back() {
    let (s, step) = IndexSet::parse("0-12:4,20,1", 100).unwrap();
    assert_eq!(step, 4);
    assert_eq!(s.to_string(), "0-1,4-12:4,20");
    assert_eq!(s.plain().to_string(), "0-1,4,8,12,20");
    assert_eq!(IndexSet::parse("0-12:4", 100).unwrap().0.to_string(), "0-12:4");
    assert_eq!(IndexSet::parse("0,4", 100).unwrap().0.to_string(), "0,4");
    assert_eq!(IndexSet::new().to_string(), "");
}

#[test]
fn array_lists_have_steps_where_squeue_prints_them() {
    for (text, same) in [
        ("0-98:2", "0-98:2"),
        ("0,2,4,6,8,10,12", "0-12:2"),
        ("0-8:2", "0,2,4,6,8"),
        ("0-12:4,20", "0,4,8,12,20"),
        ("0-3,8-20:4", "0-3,8,12,16,20"),
        ("1,,2,", "1-2"),
    ] {
        assert_eq!(IndexSet::parse(text, 100).unwrap().0.array_text(), same, "{text}");
    }
}

#[test]
fn the_ends_of_the_number_range_are_members_like_any_other() {
    let mut s = IndexSet::range_step(u32::MAX - 8, u32::MAX, 4);
    assert_eq!(s.len(), 3);
    assert!(s.insert(0) && s.contains(u32::MAX) && s.remove(u32::MAX) && !s.remove(u32::MAX));
    assert_eq!(IndexSet::range(0, u32::MAX).len(), 1 << 32);
    assert_eq!(IndexSet::range(0, u32::MAX).difference(&IndexSet::single(7)).len(), (1 << 32) - 1);
    assert_eq!(IndexSet::range(5, 4), IndexSet::new());
    assert_eq!(IndexSet::range_step(1, 9, 0), IndexSet::range(1, 9));
}

#[test]
fn ranges_from_elsewhere_must_be_in_order() {
    assert_eq!(IndexSet::from_ranges([(0, 8, 4), (9, 9, 1)]).unwrap().to_string(), "0-8:4,9");
    assert_eq!(IndexSet::from_ranges([(3, 3, 0)]), Some(IndexSet::single(3)));
    for bad in
        [vec![(3, 1, 1)], vec![(0, 8, 3)], vec![(0, 8, 0)], vec![(5, 6, 1), (1, 2, 1)], vec![(0, 8, 4), (4, 4, 1)]]
    {
        assert_eq!(IndexSet::from_ranges(bad.clone()), None, "{bad:?}");
    }
}

#[test]
fn texts_that_overflow_or_mean_nothing_are_refused() {
    let commas = ",".repeat(100_000);
    for bad in [
        "",
        "-1",
        "1e9",
        "0-99999999999",
        "0-99999999999999999999",
        "3-1",
        "1-",
        "-",
        "1-2-3",
        "1:2",
        "1-9:0",
        "100",
        &commas,
    ] {
        assert!(IndexSet::parse(bad, 100).is_err(), "{bad:.20}");
    }
    assert!(IndexSet::parse("0", 0).is_err());
}

fn few() -> impl Strategy<Value = BTreeSet<u32>> {
    // Mostly regular stretches, so that runs with steps appear, break and meet.
    let stretch = (0u32..60, 1u32..6, 0u32..8).prop_map(|(a, step, n)| (0..=n).map(move |i| a + i * step).collect());
    let loose = proptest::collection::btree_set(0u32..70, 0..12);
    proptest::collection::vec(prop_oneof![stretch, loose], 0..4)
        .prop_map(|parts: Vec<BTreeSet<u32>>| parts.into_iter().flatten().collect())
}

fn made(set: &BTreeSet<u32>) -> IndexSet {
    set.iter().copied().collect()
}

proptest! {
    #[test]
    fn set_operations_agree_with_a_plain_set_and_stay_canonical(a in few(), b in few()) {
        let (x, y) = (made(&a), made(&b));
        prop_assert_eq!(x.union(&y), made(&(&a | &b)));
        prop_assert_eq!(x.intersection(&y), made(&(&a & &b)));
        prop_assert_eq!(x.difference(&y), made(&(&a - &b)));
        prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
        prop_assert_eq!(x.is_disjoint(&y), a.is_disjoint(&b));
        prop_assert_eq!(x.len(), a.len() as u64);
        prop_assert_eq!((x.first(), x.last()), (a.first().copied(), a.last().copied()));
        prop_assert_eq!(x.iter().collect::<Vec<_>>(), a.iter().copied().collect::<Vec<_>>());
        for n in 0..=110 {
            prop_assert_eq!(x.contains(n), a.contains(&n));
        }
    }

    #[test]
    fn inserting_and_removing_one_by_one_agrees_with_a_plain_set(
        start in few(), steps in proptest::collection::vec((any::<bool>(), 0u32..80), 0..40)
    ) {
        let (mut plain, mut set) = (start.clone(), made(&start));
        for (insert, n) in steps {
            if insert {
                prop_assert_eq!(set.insert(n), plain.insert(n));
            } else {
                prop_assert_eq!(set.remove(n), plain.remove(&n));
            }
            prop_assert_eq!(&set, &made(&plain));
        }
        while let Some(n) = plain.pop_first() {
            prop_assert_eq!(set.pop_first(), Some(n));
            prop_assert_eq!(&set, &made(&plain));
        }
        prop_assert_eq!(set.pop_first(), None);
    }

    #[test]
    fn texts_and_ranges_read_back_equal(a in few(), n in 0u64..30) {
        let x = made(&a);
        if !a.is_empty() {
            prop_assert_eq!(&IndexSet::parse(&x.to_string(), 1000).unwrap().0, &x);
            let plain = x.plain().to_string();
            prop_assert!(!plain.contains(':'));
            prop_assert_eq!(&IndexSet::parse(&plain, 1000).unwrap().0, &x);
        }
        prop_assert_eq!(IndexSet::from_ranges(x.ranges()), Some(x.clone()));
        prop_assert_eq!(x.take(n), a.iter().copied().take(n as usize).collect());
        let mut grown = IndexSet::new();
        grown.extend(a.iter().copied());
        prop_assert_eq!(grown, x);
    }
}
