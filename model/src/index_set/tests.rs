use super::IndexSet;

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
}
