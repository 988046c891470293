//! `--constraint`: features that every node of the job must have.
//!
//! `&` (also `,`) means all, `|` means any, parentheses group; `&` binds tighter than `|`. Slurm's node counts
//! (`a*2`) and matching OR (`[a|b]`) are refused by name.

use crate::error::ParseError;
use crate::request::Constraint;
use std::fmt;

/// Deeper nesting can't be meant, and the parser recurses.
const MAX_DEPTH: usize = 32;
const MAX_TEXT: usize = 64 * 1024;

/// `intel&gpu`, `intel|amd`, `(intel|amd)&gpu`.
pub fn parse(text: &str) -> Result<Constraint, ParseError> {
    let fail = |allowed: String| ParseError::new("constraint", text, allowed);
    if text.len() > MAX_TEXT {
        return Err(fail(format!("at most {MAX_TEXT} characters")));
    }
    if text.contains(['[', ']']) {
        return Err(fail("matching OR with brackets, [a|b], is not supported".into()));
    }
    if text.contains('*') {
        return Err(fail("node counts, feature*count, are not supported".into()));
    }
    let mut p = Parser { rest: text, depth: 0 };
    let c = p.any().map_err(&fail)?;
    if !p.rest.trim_start().is_empty() {
        return Err(fail("a closing parenthesis without an opening one".into()));
    }
    Ok(c)
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn accept(&mut self, any_of: &[char]) -> bool {
        let trimmed = self.rest.trim_start();
        match trimmed.strip_prefix(any_of) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn any(&mut self) -> Result<Constraint, String> {
        let mut parts = vec![self.all()?];
        while self.accept(&['|']) {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Constraint::Any(parts) })
    }

    fn all(&mut self) -> Result<Constraint, String> {
        let mut parts = vec![self.primary()?];
        while self.accept(&['&', ',']) {
            parts.push(self.primary()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Constraint::All(parts) })
    }

    fn primary(&mut self) -> Result<Constraint, String> {
        if self.accept(&['(']) {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(format!("parentheses may nest {MAX_DEPTH} deep at most"));
            }
            let inner = self.any()?;
            self.depth -= 1;
            return if self.accept(&[')']) { Ok(inner) } else { Err("a parenthesis is not closed".into()) };
        }
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !is_feature_char(c)).unwrap_or(text.len());
        if end == 0 {
            return Err(match text.chars().next() {
                Some(c) => format!("a feature's name is expected before {c:?}"),
                None => "a feature's name is expected at the end".into(),
            });
        }
        self.rest = &text[end..];
        Ok(Constraint::Feature(text[..end].to_owned()))
    }
}

/// What a feature's name may hold.
pub fn is_feature_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '=' | '+' | '/' | '@')
}

impl Constraint {
    /// Whether a node with these features satisfies it.
    pub fn matches(&self, features: &[impl AsRef<str>]) -> bool {
        match self {
            Constraint::Feature(name) => features.iter().any(|f| f.as_ref() == name),
            Constraint::All(parts) => parts.iter().all(|p| p.matches(features)),
            Constraint::Any(parts) => parts.iter().any(|p| p.matches(features)),
        }
    }

    /// Every feature named in it, in the order written.
    pub fn features(&self) -> Vec<&str> {
        match self {
            Constraint::Feature(name) => vec![name],
            Constraint::All(parts) | Constraint::Any(parts) => parts.iter().flat_map(Constraint::features).collect(),
        }
    }
}

/// As `parse` reads it.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, sep) = match self {
            Constraint::Feature(name) => return f.write_str(name),
            Constraint::All(parts) => (parts, "&"),
            Constraint::Any(parts) => (parts, "|"),
        };
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                f.write_str(sep)?;
            }
            match part {
                Constraint::Feature(name) => f.write_str(name)?,
                group => write!(f, "({group})")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, features: &[&str]) -> bool {
        parse(text).unwrap().matches(features)
    }

    #[test]
    fn and_or_and_parentheses_decide_by_the_nodes_features() {
        assert!(matches("intel", &["intel", "ib"]));
        assert!(!matches("intel&ib", &["intel"]));
        assert!(matches("intel,ib", &["intel", "ib"]));
        assert!(matches("intel|amd", &["amd"]));
        assert!(!matches("(intel|amd)&gpu", &["amd"]));
        assert!(matches("(intel|amd)&gpu", &["amd", "gpu"]));
        assert!(matches("a&b|c", &["c"]));
        assert!(matches(" a & ( b | c ) ", &["a", "c"]));
    }

    #[test]
    fn what_is_printed_reads_back_equal() {
        for text in ["a", "a&b", "a|b&c", "(a|b)&c", "((a))", "a&(b&c)", "(a|b)|c"] {
            let c = parse(text).unwrap();
            assert_eq!(parse(&c.to_string()).unwrap(), c, "{text}");
        }
        assert_eq!(parse("(a|b)&c").unwrap().features(), ["a", "b", "c"]);
    }

    #[test]
    fn counts_and_matching_or_are_refused_by_name() {
        assert!(parse("graphics*4").unwrap_err().allowed.contains("feature*count"));
        assert!(parse("[rack1|rack2]").unwrap_err().allowed.contains("[a|b]"));
    }

    #[test]
    fn broken_expressions_are_errors_however_deep() {
        let deep = "(".repeat(50_000);
        for bad in ["", "&", "a&", "|a", "a||b", "(a", "a)", "()", "a b", "a;b", &deep] {
            assert!(parse(bad).is_err(), "{bad:.20}");
        }
    }
}
