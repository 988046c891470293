//! The words of a command: `key=value`, `key+=value`, `key-=value`, and words alone.

use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    Plain,
    Add,
    Remove,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// As written, for messages.
    pub text: String,
    /// Before the `=`; the whole word when there is none.
    pub key: String,
    pub value: Option<String>,
    pub sign: Sign,
}

pub fn parse(text: &str) -> Word {
    let Some((key, value)) = text.split_once('=') else {
        return Word { text: text.to_owned(), key: text.to_owned(), value: None, sign: Sign::Plain };
    };
    let (key, sign) = match (key.strip_suffix('+'), key.strip_suffix('-')) {
        (Some(key), _) => (key, Sign::Add),
        (None, Some(key)) => (key, Sign::Remove),
        (None, None) => (key, Sign::Plain),
    };
    let quoted = |q: char| value.strip_prefix(q).and_then(|v| v.strip_suffix(q));
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    Word { text: text.to_owned(), key: key.to_owned(), value: Some(value.to_owned()), sign }
}

/// Items of a comma separated list.
pub fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned).collect()
}

pub fn lower_list(value: &str) -> Vec<String> {
    list(&value.to_lowercase())
}

pub fn lower_set(value: &str) -> BTreeSet<String> {
    lower_list(value).into_iter().collect()
}

/// The entry that is meant: an exact name in any case, else the first one that begins so (three letters at least).
pub fn find<'t, T>(table: &'t [(&'static str, T)], written: &str) -> Option<&'t T> {
    let written = written.to_ascii_lowercase();
    let exact = table.iter().find(|(name, _)| name.eq_ignore_ascii_case(&written));
    let begins = |(name, _): &&(&'static str, T)| name.to_ascii_lowercase().starts_with(&written);
    exact.or_else(|| table.iter().find(begins).filter(|_| written.len() >= 3)).map(|(_, entry)| entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_quotes_and_words_alone_are_told_apart() {
        let w = parse("qos+=high,low");
        assert_eq!((w.key.as_str(), w.value.as_deref(), w.sign), ("qos", Some("high,low"), Sign::Add));
        assert_eq!(parse("qos-=high").sign, Sign::Remove);
        assert_eq!(parse("grptres=cpu=10,mem=-1").value.as_deref(), Some("cpu=10,mem=-1"));
        assert_eq!(parse("description='a b'").value.as_deref(), Some("a b"));
        assert_eq!(parse("tree").value, None);
    }

    #[test]
    fn beginnings_of_three_letters_will_do() {
        let table = [("GrpJobs", 1), ("GrpJobsAccrue", 2), ("Name", 3)];
        assert_eq!(find(&table, "grpjobs"), Some(&1));
        assert_eq!(find(&table, "grpjobsa"), Some(&2));
        assert_eq!(find(&table, "nam"), Some(&3));
        assert_eq!(find(&table, "na"), None);
        assert_eq!(find(&table, "x"), None);
    }
}
