//! Reading the recorded outputs of Slurm 26.05 in `tests/data`. Tests only.

use serde_json::Value;

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("the recorded JSON is valid")
}

/// Printed as Slurm prints it, line by line: a difference shows where it is.
pub fn lines(value: &Value) -> Vec<String> {
    let bytes = crate::render::json::to_bytes(value, crate::render::json::Style::Pretty);
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}

/// Compares line by line and says where the first difference is.
#[track_caller]
pub fn assert_same<'a>(ours: impl IntoIterator<Item = &'a str>, recorded: impl IntoIterator<Item = &'a str>) {
    let (mut ours, mut recorded) = (ours.into_iter(), recorded.into_iter());
    let mut before = "";
    for number in 1.. {
        match (ours.next(), recorded.next()) {
            (None, None) => break,
            (a, b) if a == b => before = a.unwrap_or_default(),
            (a, b) => panic!("line {number} after {before:?}:\n     ours {a:?}\n recorded {b:?}"),
        }
    }
}

#[track_caller]
pub fn assert_same_json(ours: &Value, recorded: &Value) {
    let (ours, recorded) = (lines(ours), lines(recorded));
    assert_same(ours.iter().map(String::as_str), recorded.iter().map(String::as_str));
}

/// Every path of keys in the value, list items merged: `jobs[].time.limit.set`.
pub fn paths(value: &Value) -> std::collections::BTreeSet<String> {
    let mut out = std::collections::BTreeSet::new();
    collect("", value, &mut out);
    out
}

fn collect(at: &str, value: &Value, out: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, item) in map {
                let path = format!("{at}.{key}");
                collect(&path, item, out);
                out.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(&format!("{at}[]"), item, out)),
        _ => {}
    }
}
