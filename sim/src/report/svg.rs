//! Three plots in one drawing: jobs that wait and share of the machine in use over time (means over equal intervals), and
//! the distribution of waits, a line for each policy.

use super::Entry;
use crate::trace::Trace;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const PLOT: f64 = WIDTH - LEFT - RIGHT;
const HEIGHT: f64 = 200.0;
const GAP: f64 = 70.0;
const TOP: f64 = 60.0;
/// Intervals of the time axis.
const BINS: usize = 450;
/// Told apart also by those who don't see all colours (Okabe and Ito).
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933"];

/// x and y within 0 … 1.
type Line = Vec<(f64, f64)>;

struct Axis {
    title: String,
    /// Place within 0 … 1, label.
    marks: Vec<(f64, String)>,
}

pub fn svg(trace: &Trace, entries: &[Entry]) -> String {
    let height = TOP + 3.0 * (HEIGHT + GAP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    legend(&mut out, trace, entries);
    let (from, to) = span(trace, entries);
    let days = Axis { title: "days".to_owned(), marks: linear((to - from) as f64 / 86_400.0) };
    let series: Vec<Series> = entries.iter().map(|e| Series::of(trace, e, from, to)).collect();
    let most = series.iter().flat_map(|s| &s.queue).copied().fold(1.0, f64::max);
    let queue = Axis { title: "jobs waiting".to_owned(), marks: linear(most) };
    plot(&mut out, 0, &days, &queue, series.iter().map(|s| steps(&s.queue, most)));
    let used = Axis {
        title: if trace.on_gpus() { "GPUs in use, %" } else { "processors in use, %" }.to_owned(),
        marks: [0, 25, 50, 75, 100].map(|p| (f64::from(p) / 100.0, p.to_string())).into(),
    };
    plot(&mut out, 1, &days, &used, series.iter().map(|s| steps(&s.used, 1.0)));
    let longest = entries.iter().map(|e| e.metrics.longest_wait).max().unwrap_or(1).max(10) as f64;
    let waits = Axis { title: "wait, at most".to_owned(), marks: waits_axis(longest) };
    let share = Axis {
        title: "jobs, %".to_owned(),
        marks: [0, 25, 50, 75, 100].map(|p| (f64::from(p) / 100.0, p.to_string())).into(),
    };
    plot(&mut out, 2, &waits, &share, entries.iter().map(|e| distribution(trace, e, longest)));
    out.push_str("</svg>\n");
    out
}

fn escaped(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .map(|c| match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&quot;".to_owned(),
            c => c.to_string(),
        })
        .collect()
}

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

fn legend(out: &mut String, trace: &Trace, entries: &[Entry]) {
    // Writing to a String can't fail.
    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"20\" font-size=\"15\">{}</text>", escaped(&trace.name));
    let mut x = LEFT;
    for (at, entry) in entries.iter().enumerate() {
        let end = x + 24.0;
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} 38H{end:.1}\" stroke=\"{}\" stroke-width=\"2\"/><text x=\"{:.1}\" y=\"42\">{}</text>",
            colour(at),
            end + 5.0,
            escaped(&entry.policy)
        );
        x = end + 20.0 + 7.5 * entry.policy.chars().count() as f64;
    }
}

/// First submission and last end of all replays.
fn span(trace: &Trace, entries: &[Entry]) -> (i64, i64) {
    let from = trace.jobs.first().map_or(0, |j| j.submit);
    let to = entries.iter().flat_map(|e| e.replay.ends.iter().copied()).max().unwrap_or(from);
    (from, to.max(from + 1))
}

/// Means over the intervals.
struct Series {
    queue: Vec<f64>,
    used: Vec<f64>,
}

impl Series {
    fn of(trace: &Trace, entry: &Entry, from: i64, to: i64) -> Series {
        let (mut queue, mut used) = (vec![0.0; BINS], vec![0.0; BINS]);
        let on_gpus = trace.on_gpus();
        let bin = (to - from) as f64 / BINS as f64;
        for (at, job) in trace.jobs.iter().enumerate() {
            let Some(start) = entry.replay.starts[at] else { continue };
            let size = f64::from(if on_gpus { job.gpus } else { job.cpus });
            spread(&mut queue, bin, job.submit - from, start - from, 1.0);
            let end = entry.replay.ends[at];
            spread(&mut used, bin, end - job.run - from, end - from, size / entry.metrics.machine.max(1) as f64);
        }
        Series { queue, used }
    }
}

/// Adds `amount` to the mean of each interval for the part of it that lies between.
fn spread(bins: &mut [f64], bin: f64, from: i64, to: i64, amount: f64) {
    let (from, to) = (from as f64 / bin, to as f64 / bin);
    let last = bins.len() - 1;
    let (first, final_one) = ((from.floor() as usize).min(last), (to.floor() as usize).min(last));
    for (at, mean) in bins.iter_mut().enumerate().take(final_one + 1).skip(first) {
        let inside = to.min(at as f64 + 1.0) - from.max(at as f64);
        *mean += amount * inside.max(0.0);
    }
}

fn steps(values: &[f64], most: f64) -> Line {
    let n = values.len() as f64;
    let point = |(at, v): (usize, &f64)| [(at as f64 / n, v / most), ((at + 1) as f64 / n, v / most)];
    values.iter().enumerate().flat_map(point).collect()
}

/// Logarithmic from one second on; no wait at all lies at the left edge.
fn place(wait: f64, longest: f64) -> f64 {
    wait.max(1.0).ln() / longest.ln()
}

fn distribution(trace: &Trace, entry: &Entry, longest: f64) -> Line {
    let started = entry.replay.starts.iter().zip(&entry.replay.ends).zip(&trace.jobs).filter(|((s, _), _)| s.is_some());
    let mut waits: Vec<i64> = started.map(|((_, end), job)| end - job.submit - job.run).collect();
    waits.sort_unstable();
    if waits.is_empty() {
        return Line::new();
    }
    let share = |wait: f64| waits.partition_point(|w| *w as f64 <= wait) as f64 / waits.len() as f64;
    (0..=BINS)
        .map(|at| {
            let x = at as f64 / BINS as f64;
            let wait = if at == 0 { 0.0 } else { (x * longest.ln()).exp() + 1e-6 };
            (x, share(wait))
        })
        .collect()
}

fn waits_axis(longest: f64) -> Vec<(f64, String)> {
    [
        (1.0, "1 s"),
        (10.0, "10 s"),
        (60.0, "1 min"),
        (600.0, "10 min"),
        (3600.0, "1 h"),
        (86_400.0, "1 d"),
        (864_000.0, "10 d"),
    ]
    .into_iter()
    .filter(|(wait, _)| *wait <= longest)
    .map(|(wait, label)| (place(wait, longest), label.to_owned()))
    .collect()
}

/// Five or so round values up to `most`.
fn linear(most: f64) -> Vec<(f64, String)> {
    let rough = (most / 5.0).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|f| f * power).find(|s| *s >= rough).unwrap_or(rough);
    let digits = usize::from(step < 1.0) * 2;
    (0..=5).map(|n| f64::from(n) * step).filter(|v| *v <= most).map(|v| (v / most, format!("{v:.digits$}"))).collect()
}

fn plot(out: &mut String, row: usize, x: &Axis, y: &Axis, lines: impl Iterator<Item = Line>) {
    let top = TOP + row as f64 * (HEIGHT + GAP);
    let bottom = top + HEIGHT;
    let middle = LEFT + PLOT / 2.0;
    let _ = writeln!(
        out,
        "<g>\n<rect x=\"{LEFT}\" y=\"{top}\" width=\"{PLOT}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#888\"/>\n\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
         <text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        bottom + 36.0,
        escaped(&x.title),
        top + HEIGHT / 2.0,
        escaped(&y.title)
    );
    for (at, label) in &x.marks {
        let at = LEFT + at * PLOT;
        let _ = writeln!(
            out,
            "<path d=\"M{at:.1} {bottom}v5\" stroke=\"#888\"/><text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            bottom + 18.0
        );
    }
    for (at, label) in &y.marks {
        let at = bottom - at * HEIGHT;
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT + PLOT,
            LEFT - 6.0,
            at + 4.0
        );
    }
    for (at, line) in lines.enumerate() {
        let mut path = String::new();
        for (i, (px, py)) in line.iter().enumerate() {
            let letter = if i == 0 { 'M' } else { 'L' };
            let (px, py) = (LEFT + px * PLOT, bottom - py.clamp(0.0, 1.0) * HEIGHT);
            let _ = write!(path, "{letter}{px:.1} {py:.1}");
        }
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.3\" stroke-linejoin=\"round\"/>",
            colour(at)
        );
    }
    out.push_str("</g>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_an_interval_counts_for_the_part_of_it_that_it_covers() {
        let mut bins = vec![0.0; 4];
        spread(&mut bins, 10.0, 5, 25, 1.0);
        assert_eq!(bins, [0.5, 1.0, 0.5, 0.0]);
    }

    #[test]
    fn axes_have_round_marks() {
        let labels: Vec<String> = linear(121.0).into_iter().map(|m| m.1).collect();
        assert_eq!(labels, ["0", "50", "100"]);
    }
}
