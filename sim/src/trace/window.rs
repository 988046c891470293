//! Parts and changes of a trace: a window of submit times, and run times rounded up to make limits.

use super::Trace;

/// Submit times from the first to the last second, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    pub from: Option<i64>,
    pub to: Option<i64>,
}

impl Window {
    pub fn cut(self, trace: &mut Trace) {
        let inside = |t: i64| self.from.is_none_or(|from| t >= from) && self.to.is_none_or(|to| t <= to);
        trace.jobs.retain(|j| inside(j.submit));
    }
}

/// Limits that users might ask for, ascending, in seconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitSteps(Vec<i64>);

impl LimitSteps {
    /// `1h,4h,12h,1d`: whole numbers of s, m, h, d or w.
    pub fn parse(text: &str) -> Result<LimitSteps, String> {
        let mut steps = Vec::new();
        for word in text.split(',').map(str::trim) {
            let unit = match word.chars().last() {
                Some('s') => 1,
                Some('m') => 60,
                Some('h') => 3600,
                Some('d') => 86_400,
                Some('w') => 7 * 86_400,
                _ => 0,
            };
            let count = word.get(..word.len().saturating_sub(1)).and_then(|n| n.parse::<u32>().ok()).filter(|n| *n > 0);
            match count {
                Some(count) if unit > 0 => steps.push(i64::from(count) * unit),
                _ => {
                    return Err(format!(
                        "'{word}' is no time: expected a whole number with s, m, h, d or w, as in 1h,4h,12h,1d"
                    ));
                }
            }
        }
        steps.sort_unstable();
        steps.dedup();
        Ok(LimitSteps(steps))
    }

    /// Every requested time becomes the smallest step that covers the run; a run longer than all steps keeps its length.
    /// How many of those there were.
    pub fn apply(&self, trace: &mut Trace) -> usize {
        let mut beyond = 0;
        for job in &mut trace.jobs {
            let step = self.0.iter().find(|step| **step >= job.run);
            beyond += usize::from(step.is_none());
            job.requested = step.copied().unwrap_or(job.run);
        }
        trace.no_requests = false;
        beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_whole_numbers_with_a_unit() {
        assert_eq!(LimitSteps::parse("4h, 1h,1d").unwrap().0, [3600, 14_400, 86_400]);
        for bad in ["", "1", "h", "0h", "1y", "1.5h", "1h,,2h", "é"] {
            assert!(LimitSteps::parse(bad).is_err(), "{bad}");
        }
    }
}
