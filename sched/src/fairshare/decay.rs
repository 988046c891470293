//! Usage that fades: half of it is forgotten after each half-life.
//!
//! Owns the closed forms, so that nobody has to visit every account every few minutes: what was `value` at one time is
//! value x 2^(-(t - at) / H) later, and a run with constant rate r from a to b adds r H / ln 2 x (1 - 2^(-(b-a)/H)) as
//! of b. Promises that cutting a run into pieces, or looking in between, changes nothing but rounding (test).

use sluice_model::Time;

/// An amount as of a moment. Never negative, always finite.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decayed {
    pub value: f64,
    pub at: Time,
}

/// Milliseconds in which half is forgotten; None: nothing is.
pub type HalfLife = Option<i64>;

impl Decayed {
    /// As of `now`; of a moment that has passed already, as it stands.
    pub fn seen_at(self, now: Time, half_life: HalfLife) -> f64 {
        self.value * remains(now.0.saturating_sub(self.at.0), half_life)
    }

    /// Adds `rate` units a second from `start` to `end`.
    #[must_use]
    pub fn with_run(self, rate: f64, start: Time, end: Time, half_life: HalfLife) -> Decayed {
        let at = self.at.max(end);
        let run = Decayed { value: of_run(rate, start, end, half_life), at: end };
        Decayed { value: self.seen_at(at, half_life) + run.seen_at(at, half_life), at }
    }
}

/// The part that is left after so long.
pub fn remains(elapsed_ms: i64, half_life: HalfLife) -> f64 {
    match half_life {
        Some(half) if half > 0 && elapsed_ms > 0 => (-(elapsed_ms as f64) / half as f64).exp2(),
        _ => 1.0,
    }
}

/// What a run of constant rate (units a second) comes to at its end.
pub fn of_run(rate: f64, start: Time, end: Time, half_life: HalfLife) -> f64 {
    let ms = end.0.saturating_sub(start.0).max(0) as f64;
    match half_life {
        Some(half) if half > 0 => {
            // 1 - 2^x without losing what is small.
            let forgotten = -(-(ms / half as f64) * std::f64::consts::LN_2).exp_m1();
            rate * (half as f64 / 1000.0) / std::f64::consts::LN_2 * forgotten
        }
        _ => rate * ms / 1000.0,
    }
}
