//! JSON as Slurm's commands print it.
//!
//! Owns the printer (two blanks a level, `/` escaped, empty lists over two lines) and the parts that every answer has:
//! `meta`, `errors`, `warnings`, and numbers that may be absent or infinite. The shapes are those of data_parser
//! v0.0.45 (`shared/slurm-26.05-output/*-json.txt`).

use serde_json::{Map, Value, json};

/// The data parser whose shapes we print.
pub const DATA_PARSER: &str = "data_parser/v0.0.45";

/// `--json`'s and `SLURM_JSON`'s choice of white space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    #[default]
    Pretty,
    Compact,
}

/// What `--json[=VALUE]` asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    Print(Style),
    /// `--json=list`: name the data parsers.
    List,
}

/// Reads the option's value and `SLURM_JSON`. Other versions of the data parser are refused by name.
pub fn request(value: Option<&str>, environment: Option<&str>) -> Result<Request, String> {
    let mut style = match environment {
        Some("compact") => Style::Compact,
        _ => Style::Pretty,
    };
    let Some(value) = value.filter(|v| !v.is_empty()) else { return Ok(Request::Print(style)) };
    if value == "list" {
        return Ok(Request::List);
    }
    let mut parts = value.split('+');
    let parser = parts.next().unwrap_or_default();
    if !matches!(parser, "" | "default" | "latest" | "v0.0.45" | "data_parser/v0.0.45") {
        return Err(format!("Unable to find plugin: {parser}: only {DATA_PARSER} is available"));
    }
    for flag in parts {
        match flag {
            "compact" => style = Style::Compact,
            "pretty" | "prefer_refs" | "complex" => {}
            other => return Err(format!("unknown data_parser flag: {other}")),
        }
    }
    Ok(Request::Print(style))
}

/// `--json=list`
pub fn list_text() -> String {
    format!("Possible data_parser plugins:\n{DATA_PARSER}\n")
}

/// `{"set": true, "infinite": false, "number": n}`
pub fn number(n: impl Into<i64>) -> Value {
    json!({"set": true, "infinite": false, "number": n.into()})
}

pub fn large_number(n: u64) -> Value {
    json!({"set": true, "infinite": false, "number": n})
}

pub fn unset() -> Value {
    json!({"set": false, "infinite": false, "number": 0})
}

pub fn infinite() -> Value {
    json!({"set": false, "infinite": true, "number": 0})
}

pub fn number_or_unset(n: Option<impl Into<i64>>) -> Value {
    n.map_or_else(unset, number)
}

/// Seconds since the epoch of a time in milliseconds; absent is 0.
pub fn time(ms: Option<i64>) -> Value {
    number(seconds(ms))
}

pub fn seconds(ms: Option<i64>) -> i64 {
    ms.map_or(0, |ms| ms.div_euclid(1000))
}

/// Minutes of a time limit.
pub fn limit(limit: Option<sluice_model::TimeLimit>) -> Value {
    match limit {
        None => unset(),
        Some(sluice_model::TimeLimit::Unlimited) => infinite(),
        Some(sluice_model::TimeLimit::Minutes(m)) => number(m),
    }
}

/// Exit code or signal of a process, with the word for it.
pub fn exit(status: Option<&sluice_proto::v1::ExitStatus>) -> Value {
    let (code, signal) = status.map_or((0, 0), |s| (s.code, s.signal));
    let word = match (code, signal) {
        (0, 0) => "SUCCESS",
        (_, 0) => "ERROR",
        _ => "SIGNALED",
    };
    let name = u8::try_from(signal).ok().filter(|s| *s > 0).map(sluice_model::signal::name).unwrap_or_default();
    json!({
        "status": [word],
        "return_code": number(code),
        "signal": {
            "id": if signal == 0 { unset() } else { number(signal) },
            "name": name,
        },
    })
}

/// Who asks and with which words: part of `meta`.
pub struct Asker<'a> {
    pub program: &'a str,
    pub words: &'a [String],
    pub cluster: &'a str,
    /// `26.05.0`
    pub version: &'a str,
    pub user: &'a str,
    pub group: &'a str,
}

/// The whole answer: the records, then `meta`, `errors`, `warnings`.
pub fn answer(records: Vec<(&str, Value)>, asker: &Asker<'_>) -> Value {
    let mut version = asker.version.split('.');
    let mut part = || version.next().unwrap_or("0").to_owned();
    let (major, minor, micro) = (part(), part(), part());
    let mut command = vec![Value::from(asker.program)];
    command.extend(asker.words.iter().map(|w| Value::from(w.as_str())));
    let mut all = Map::new();
    for (key, value) in records {
        all.insert(key.to_owned(), value);
    }
    all.insert(
        "meta".to_owned(),
        json!({
            "plugin": {
                "type": "",
                "name": "",
                "data_parser": DATA_PARSER,
                "accounting_storage": "accounting_storage/slurmdbd",
            },
            "client": {"source": "", "user": asker.user, "group": asker.group},
            "command": command,
            "slurm": {
                "version": {"major": major, "micro": micro, "minor": minor},
                "release": asker.version,
                "cluster": asker.cluster,
            },
        }),
    );
    all.insert("errors".to_owned(), json!([]));
    all.insert("warnings".to_owned(), json!([]));
    Value::Object(all)
}

/// Appends the value as text, without a line end.
pub fn write(value: &Value, style: Style, out: &mut Vec<u8>) {
    write_at(value, style, 0, out);
}

pub fn to_bytes(value: &Value, style: Style) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, style, &mut out);
    out.push(b'\n');
    out
}

fn write_at(value: &Value, style: Style, depth: usize, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            write_list(style, depth, (b'[', b']'), items.iter(), out, |item, out| {
                write_at(item, style, depth + 1, out);
            });
        }
        Value::Object(map) => {
            write_list(style, depth, (b'{', b'}'), map.iter(), out, |(key, item), out| {
                write_string(key, out);
                out.extend_from_slice(if style == Style::Pretty { b": " } else { b":" });
                write_at(item, style, depth + 1, out);
            });
        }
        scalar => out.extend_from_slice(scalar.to_string().as_bytes()),
    }
}

fn write_list<T>(
    style: Style,
    depth: usize,
    (open, close): (u8, u8),
    items: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    mut item: impl FnMut(T, &mut Vec<u8>),
) {
    let new_line = |depth: usize, out: &mut Vec<u8>| {
        if style == Style::Pretty {
            out.push(b'\n');
            out.resize(out.len() + 2 * depth, b' ');
        }
    };
    out.push(open);
    for (n, value) in items.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        new_line(depth + 1, out);
        item(value, out);
    }
    new_line(depth, out);
    out.push(close);
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in crate::text::lossy(text).bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_strings_look_like_slurms() {
        let value = json!({"a": [], "b": {"path": "/tmp\n\"x\""}, "c": [1, true, 2.0]});
        let text = String::from_utf8(to_bytes(&value, Style::Pretty)).unwrap();
        let expected = "{\n  \"a\": [\n  ],\n  \"b\": {\n    \"path\": \"\\/tmp\\n\\\"x\\\"\"\n  },\n  \"c\": [\n    1,\n    true,\n    2.0\n  ]\n}\n";
        assert_eq!(text, expected);
        let compact = String::from_utf8(to_bytes(&value, Style::Compact)).unwrap();
        assert_eq!(compact, "{\"a\":[],\"b\":{\"path\":\"\\/tmp\\n\\\"x\\\"\"},\"c\":[1,true,2.0]}\n");
        assert_eq!(serde_json::from_str::<Value>(&compact).unwrap(), value);
    }

    #[test]
    fn control_characters_and_bytes_that_are_no_text_stay_valid_json() {
        assert_eq!(to_bytes(&json!(crate::text::hold(b"a\xffb")), Style::Compact), "\"a\u{fffd}b\"\n".as_bytes());
        let value = json!("\u{1}\u{7f}\t");
        let bytes = to_bytes(&value, Style::Compact);
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), value);
    }

    #[test]
    fn other_data_parsers_are_refused_by_name() {
        assert_eq!(request(None, Some("compact")), Ok(Request::Print(Style::Compact)));
        assert_eq!(request(Some("v0.0.45"), None), Ok(Request::Print(Style::Pretty)));
        assert_eq!(request(Some("v0.0.45+compact"), None), Ok(Request::Print(Style::Compact)));
        assert_eq!(request(Some("list"), None), Ok(Request::List));
        assert!(request(Some("v0.0.40"), None).unwrap_err().contains("v0.0.40"));
    }

    #[test]
    fn exits_are_worded() {
        use sluice_proto::v1::ExitStatus;
        assert_eq!(exit(Some(&ExitStatus { code: 3, signal: 0 }))["status"], json!(["ERROR"]));
        let killed = exit(Some(&ExitStatus { code: 0, signal: 9 }));
        assert_eq!(killed["status"], json!(["SIGNALED"]));
        assert_eq!(killed["signal"]["id"]["number"], json!(9));
        assert_eq!(exit(None)["status"], json!(["SUCCESS"]));
    }
}
