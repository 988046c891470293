//! Reading typed values out of a TOML table while collecting every problem with its line.

use super::problem::{ConfigProblem, did_you_mean};
use crate::error::ParseError;
use crate::memory::parse_memory_mb;
use crate::time::{TimeLimit, parse_seconds, parse_time_limit};
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use toml_edit::{Item, TableLike};

/// The file, and the problems found so far.
pub(super) struct Problems<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    pub(super) list: Vec<ConfigProblem>,
}

impl Problems<'_> {
    pub(super) fn add(&mut self, span: Option<Range<usize>>, key: impl Into<String>, message: impl Into<String>) {
        let at = span.map_or(0, |s| s.start).min(self.text.len());
        let line = 1 + self.text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count();
        self.list.push(ConfigProblem { file: self.file.to_owned(), line, key: key.into(), message: message.into() });
    }
}

/// One table and the keys that were asked for: whatever else it holds is unknown.
pub(super) struct Section<'t, 'p, 'a> {
    table: &'t dyn TableLike,
    /// Where the table begins.
    span: Option<Range<usize>>,
    /// How its keys are named in problems, such as `timing`; empty for the whole file.
    pub(super) path: String,
    known: Vec<&'static str>,
    pub(super) problems: &'p mut Problems<'a>,
}

impl<'t, 'p, 'a> Section<'t, 'p, 'a> {
    pub(super) fn new(
        table: &'t dyn TableLike,
        span: Option<Range<usize>>,
        path: impl Into<String>,
        problems: &'p mut Problems<'a>,
    ) -> Self {
        Section { table, span, path: path.into(), known: Vec::new(), problems }
    }

    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A problem with this key's value, or with the section when the key is not there.
    pub(super) fn problem(&mut self, key: &str, message: impl Into<String>) {
        let span = self.table.key(key).and_then(toml_edit::Key::span).or_else(|| self.span.clone());
        let full = self.full(key);
        self.problems.add(span, full, message);
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The item, and marks the key as known.
    pub(super) fn item(&mut self, key: &'static str) -> Option<&'t Item> {
        self.known.push(key);
        self.table.get(key)
    }

    /// Reads a key with `read`, whose None means that the value has the wrong form.
    fn value<T>(&mut self, key: &'static str, allowed: &str, read: impl Fn(&Item) -> Option<T>) -> Option<T> {
        let item = self.item(key)?;
        let value = read(item);
        if value.is_none() {
            self.problem(key, format!("expected {allowed}, found {}", shown(item)));
        }
        value
    }

    /// Reads the table of that name within this one.
    pub(super) fn subsection<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'_, '_, '_>) -> T,
    ) -> Option<T> {
        let item = self.item(key)?;
        let path = self.full(key);
        let Some(table) = item.as_table_like() else {
            self.problem(key, format!("expected a section: [{path}]"));
            return None;
        };
        let mut section = Section::new(table, item.span(), path, self.problems);
        let value = read(&mut section);
        section.finish();
        Some(value)
    }

    pub(super) fn missing(&mut self, key: &'static str, what: &str) {
        if !self.has(key) {
            let (span, full) = (self.span.clone(), self.full(key));
            self.problems.add(span, full, format!("is missing: {what}"));
        }
    }

    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.value(key, "true or false", Item::as_bool)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.value(key, "a text in quotes", |i| i.as_str().map(str::to_owned))
    }

    /// A whole number within the range.
    pub(super) fn number<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + Display + Copy,
    {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        self.value(key, &allowed, |i| i.as_integer().and_then(|n| T::try_from(n).ok()).filter(|n| range.contains(n)))
    }

    /// Like `number`, where "UNLIMITED" means None.
    pub(super) fn limit<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Option<Option<T>>
    where
        T: TryFrom<i64> + PartialOrd + Display + Copy,
    {
        let allowed = format!("a whole number from {} to {} or \"UNLIMITED\"", range.start(), range.end());
        self.value(key, &allowed, |i| match i.as_str() {
            Some(word) => word.eq_ignore_ascii_case("UNLIMITED").then_some(None),
            None => i.as_integer().and_then(|n| T::try_from(n).ok()).filter(|n| range.contains(n)).map(Some),
        })
    }

    /// MiB, or a text with a unit ("4G").
    pub(super) fn memory(&mut self, key: &'static str, least: u64) -> Option<u64> {
        let allowed = format!("MiB (at least {least}) or a text with a unit, such as \"4G\"");
        self.value(key, &allowed, |i| {
            let mb = match i.as_str() {
                Some(text) => parse_memory_mb(text).ok(),
                None => i.as_integer().and_then(|n| u64::try_from(n).ok()),
            };
            // 2^43 MiB is what a 64-bit number of bytes can say.
            mb.filter(|mb| (least..=1 << 43).contains(mb))
        })
    }

    /// Minutes, or a text as `--time` takes it.
    pub(super) fn time_limit(&mut self, key: &'static str) -> Option<TimeLimit> {
        self.value(key, "minutes or a text such as \"1-00:00:00\" or \"UNLIMITED\"", |i| match i.as_str() {
            Some(text) => parse_time_limit(text).ok(),
            None => i.as_integer().filter(|n| *n > 0).and_then(|n| parse_time_limit(&n.to_string()).ok()),
        })
    }

    /// A length of time in seconds: minutes, or a text as `--time` takes it with its seconds counted.
    pub(super) fn seconds(&mut self, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        let (least, most) = (range.start(), range.end());
        let allowed = format!("minutes or a text such as \"7-00:00:00\", from {least} to {most} seconds");
        self.value(key, &allowed, |i| {
            let seconds = match i.as_str() {
                Some(text) => parse_seconds(text).ok(),
                None => i.as_integer().and_then(|n| u64::try_from(n).ok()).and_then(|n| n.checked_mul(60)),
            };
            seconds.and_then(|s| u32::try_from(s).ok()).filter(|s| range.contains(s))
        })
    }

    /// A list of texts, or one text with commas. Empty when the key is not there.
    pub(super) fn words(&mut self, key: &'static str) -> Vec<String> {
        self.value(key, "a list of texts", |i| match (i.as_str(), i.as_array()) {
            (Some(text), _) => Some(text.split(',').map(|w| w.trim().to_owned()).collect()),
            (None, Some(list)) => list.iter().map(|v| v.as_str().map(str::to_owned)).collect(),
            (None, None) => None,
        })
        .map(|words: Vec<String>| words.into_iter().filter(|w| !w.is_empty()).collect())
        .unwrap_or_default()
    }

    /// Turns a parser's error into a problem of this key.
    pub(super) fn parsed<T>(&mut self, key: &str, result: Result<T, ParseError>) -> Option<T> {
        result.map_err(|e| self.problem(key, e.to_string())).ok()
    }

    /// Reports what was never asked for.
    pub(super) fn finish(self) {
        for (key, _) in self.table.iter() {
            if self.known.contains(&key) {
                continue;
            }
            let hint = match did_you_mean(key, &self.known) {
                Some(known) => format!("unknown key; did you mean '{known}'?"),
                None => format!("unknown key; known here: {}", self.known.join(", ")),
            };
            let full = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
            self.problems.add(self.table.key(key).and_then(toml_edit::Key::span), full, hint);
        }
    }
}

fn shown(item: &Item) -> String {
    let text: String = item.to_string().trim().chars().take(60).collect();
    if item.is_table_like() || item.is_array_of_tables() { "a table".into() } else { text }
}
