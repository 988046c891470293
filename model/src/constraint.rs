//! `--constraint`, `--prefer`, `--batch`: features that nodes of the job must have.
//!
//! `&` (also `,`) means all, `|` means any, parentheses group; `&` binds tighter than `|`. `feature*count` says how many
//! nodes at least must have it. One pair of brackets may hold alternatives of which one must hold for all nodes alike
//! (`[rack1|rack2]`), or counts of nodes that are told apart (`[rack1*2&rack2*4]`). Counts and brackets stand at the top
//! or in a chain of `&`, nowhere deeper (sbatch's manual page, --constraint; details as seen on Slurm 22.05: the counts
//! of one expression never count a node twice, and a job has at least as many nodes as they add up to).

use crate::error::ParseError;
use crate::request::Constraint;
use std::fmt;

/// Deeper nesting can't be meant, and the parser recurses.
const MAX_DEPTH: usize = 32;
const MAX_TEXT: usize = 64 * 1024;
/// Counts, or alternatives in brackets, of one expression.
pub const MAX_PARTS: usize = 30;
/// Nodes of one count.
const MAX_COUNT: u64 = 1_000_000;

/// `intel&gpu`, `intel|amd`, `(intel|amd)&gpu`, `graphics*4`, `[rack1|rack2]`, `[(rack1|rack2)*1&rack3*2]`.
pub fn parse(text: &str) -> Result<Constraint, ParseError> {
    let fail = |allowed: String| ParseError::new("constraint", text, allowed);
    if text.len() > MAX_TEXT {
        return Err(fail(format!("at most {MAX_TEXT} characters")));
    }
    let mut p = Parser { rest: text, depth: 0 };
    let c = p.any().map_err(&fail)?;
    if let Some(c) = p.rest.trim_start().chars().next() {
        return Err(fail(match c {
            ')' => "a closing parenthesis without an opening one".into(),
            ']' => "a closing bracket without an opening one".into(),
            c => format!("& or | before {c:?}"),
        }));
    }
    check(&c).map_err(fail)?;
    Ok(c)
}

/// As `parse`, for `--batch`: `&`, `|` and names only.
pub fn parse_plain(text: &str) -> Result<Constraint, ParseError> {
    let c = parse(text)?;
    match is_plain(&c) {
        true => Ok(c),
        false => Err(ParseError::new("constraint", text, "features with & and |, without counts and brackets")),
    }
}

/// Neither counts nor brackets in it.
fn is_plain(c: &Constraint) -> bool {
    match c {
        Constraint::Feature(_) => true,
        Constraint::All(parts) | Constraint::Any(parts) => parts.iter().all(is_plain),
        Constraint::Count(..) | Constraint::Bracket(_) => false,
    }
}

/// Counts and brackets stand where they mean something.
pub fn check(c: &Constraint) -> Result<(), String> {
    let chain = match c {
        Constraint::All(parts) => &parts[..],
        one => std::slice::from_ref(one),
    };
    let (mut brackets, mut parts) = (0, 0);
    for part in chain {
        match part {
            Constraint::Count(of, _) if is_plain(of) => parts += 1,
            Constraint::Count(..) => return Err("a count after a feature or a parenthesis of features".into()),
            Constraint::Bracket(inner) => {
                brackets += 1;
                parts += bracket(inner)?;
            }
            other if is_plain(other) => {}
            _ => return Err("counts and brackets at the top or joined by &, not within | or parentheses".into()),
        }
    }
    if brackets > 1 {
        return Err("one pair of brackets".into());
    }
    if parts > MAX_PARTS {
        return Err(format!("{MAX_PARTS} counts or alternatives at most"));
    }
    Ok(())
}

fn bracket(inner: &Constraint) -> Result<usize, String> {
    let is_count = |c: &Constraint| matches!(c, Constraint::Count(of, _) if is_plain(of));
    match inner {
        Constraint::Any(parts) if parts.iter().all(is_plain) => Ok(parts.len()),
        Constraint::Any(_) => Err("alternatives in brackets without counts".into()),
        Constraint::All(parts) if parts.iter().all(is_count) => Ok(parts.len()),
        Constraint::All(_) => Err("a count for each feature that & joins in brackets".into()),
        Constraint::Bracket(_) => Err("one pair of brackets".into()),
        one if is_plain(one) || is_count(one) => Ok(1),
        _ => Err("a count after a feature or a parenthesis of features".into()),
    }
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

    /// With the count that may follow it.
    fn primary(&mut self) -> Result<Constraint, String> {
        let one = self.one()?;
        if !self.accept(&['*']) {
            return Ok(one);
        }
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let count = crate::error::digits(&text[..end], MAX_COUNT).filter(|n| *n > 0);
        let count = count.and_then(|n| u32::try_from(n).ok()).ok_or("a number of nodes from 1 up after *")?;
        self.rest = &text[end..];
        Ok(Constraint::Count(Box::new(one), count))
    }

    fn one(&mut self) -> Result<Constraint, String> {
        if self.accept(&['[']) {
            // Never deep: a bracket in a bracket is an error.
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err("one pair of brackets".into());
            }
            let inner = self.any()?;
            self.depth -= 1;
            let closed = self.accept(&[']']);
            return if closed {
                Ok(Constraint::Bracket(Box::new(inner)))
            } else {
                Err("a bracket is not closed".into())
            };
        }
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
    /// Whether a node with these features may be one of the job's: it satisfies what all nodes must, and one of the
    /// alternatives. How many nodes must have what is `Wanted`'s business.
    pub fn matches(&self, features: &[impl AsRef<str>]) -> bool {
        match self {
            Constraint::Count(..) => true,
            Constraint::Bracket(inner) => inner.matches(features),
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
            Constraint::Count(of, _) | Constraint::Bracket(of) => of.features(),
        }
    }

    /// What it says about the nodes together.
    pub fn wanted(&self) -> Wanted<'_> {
        let mut wanted = Wanted::default();
        let chain = match self {
            Constraint::All(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        for part in chain {
            match part {
                Constraint::Count(of, nodes) => wanted.counts.push((of, *nodes)),
                Constraint::Bracket(inner) => match &**inner {
                    Constraint::Any(parts) => wanted.alternatives.extend(parts),
                    Constraint::All(parts) => {
                        for part in parts {
                            if let Constraint::Count(of, nodes) = part {
                                wanted.counts.push((of, *nodes));
                            }
                        }
                    }
                    Constraint::Count(of, nodes) => wanted.counts.push((of, *nodes)),
                    other => wanted.every.push(other),
                },
                other => wanted.every.push(other),
            }
        }
        wanted
    }
}

/// A constraint taken apart. Its parts are plain: names, `&` and `|`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted<'a> {
    /// Every node has all of these.
    pub every: Vec<&'a Constraint>,
    /// At least so many nodes have this; no node counts for two of them.
    pub counts: Vec<(&'a Constraint, u32)>,
    /// All nodes have one of these, the same one.
    pub alternatives: Vec<&'a Constraint>,
}

impl Wanted<'_> {
    /// Nodes that the counts add up to.
    pub fn least_nodes(&self) -> u32 {
        self.counts.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }
}

/// As `parse` reads it.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, sep) = match self {
            Constraint::Feature(name) => return f.write_str(name),
            Constraint::Count(of, nodes) => {
                return match &**of {
                    Constraint::Feature(name) => write!(f, "{name}*{nodes}"),
                    group => write!(f, "({group})*{nodes}"),
                };
            }
            Constraint::Bracket(inner) => return write!(f, "[{inner}]"),
            Constraint::All(parts) => (parts, "&"),
            Constraint::Any(parts) => (parts, "|"),
        };
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                f.write_str(sep)?;
            }
            match part {
                Constraint::Feature(_) | Constraint::Count(..) | Constraint::Bracket(_) => write!(f, "{part}")?,
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
    fn counts_and_alternatives_are_taken_apart() {
        let c = parse("ib&graphics*4").unwrap();
        let wanted = c.wanted();
        assert_eq!((wanted.every.len(), wanted.counts[0].0.to_string(), wanted.counts[0].1), (1, "graphics".into(), 4));
        let c = parse("[(rack1|rack2)*1&(rack3)*2]").unwrap();
        let counts: Vec<_> = c.wanted().counts.iter().map(|(c, n)| (c.to_string(), *n)).collect();
        assert_eq!(counts, [("rack1|rack2".to_owned(), 1), ("rack3".to_owned(), 2)]);
        assert_eq!(c.wanted().least_nodes(), 3);
        let c = parse("x&[a|(b&c)]").unwrap();
        assert_eq!(c.wanted().alternatives.len(), 2);
        assert!(c.matches(&["x", "a"]) && c.matches(&["x", "b", "c"]) && !c.matches(&["x", "b"]));
        assert!(parse("a*2").unwrap().matches(&["other"]));
        assert_eq!(parse("[a]").unwrap().wanted().every.len(), 1);
        for text in ["ib&graphics*4", "[(rack1|rack2)*1&rack3*2]", "x&[a|(b&c)]", "[a]", "(a&b)*2"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn counts_and_brackets_are_refused_where_they_mean_nothing() {
        for bad in [
            "a*0",
            "a*",
            "a*-1",
            "a*x",
            "*2",
            "a*2|b",
            "(a*2&b)|c",
            "(a*2)*3",
            "[a*2]*3",
            "[a",
            "a]",
            "[a&b]",
            "[a|b*2]",
            "[a|b]&[c|d]",
            "[[a]]",
            "([a|b])|c",
            "a|[b]",
            "!a",
            "[]",
            "a*99999999999",
            "[a|b]x",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let many = |n: usize| format!("[{}]", vec!["a"; n].join("|"));
        assert!(parse(&many(MAX_PARTS)).is_ok() && parse(&many(MAX_PARTS + 1)).is_err());
        assert!(parse_plain("a|b&c").is_ok() && parse_plain("a*2").is_err() && parse_plain("[a|b]").is_err());
    }

    #[test]
    fn broken_expressions_are_errors_however_deep() {
        let deep = "(".repeat(50_000);
        let square = "[".repeat(50_000);
        for bad in ["", &square, "&", "a&", "|a", "a||b", "(a", "a)", "()", "a b", "a;b", &deep] {
            assert!(parse(bad).is_err(), "{bad:.20}");
        }
    }
}
