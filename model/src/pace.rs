//! How fast one may go on: so many at once, then so many a second.
//!
//! The generic cell rate algorithm (ITU-T I.371, annex A) in its virtual scheduling form, which is a token bucket that keeps
//! one number. Whoever comes too early is told how long to wait, and has their turn then: nothing is refused, and turns are
//! given in the order of asking.

/// One user's pace. Times are microseconds of any clock that does not run backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pace {
    /// When the next one would come if they came evenly.
    even: i64,
}

impl Pace {
    /// Microseconds until one more may go, of `rate` a second and `burst` at once; takes the turn when that is not longer
    /// than `longest`. A rate of 0 holds nobody back.
    pub fn take(&mut self, now: i64, rate: u32, burst: u32, longest: i64) -> Result<i64, i64> {
        if rate == 0 {
            return Ok(0);
        }
        let interval = 1_000_000 / i64::from(rate);
        let even = self.even.max(now);
        let wait = (even - now - interval * (i64::from(burst.max(1)) - 1)).max(0);
        if wait > longest {
            return Err(wait);
        }
        self.even = even + interval;
        Ok(wait)
    }

    /// It is as if nobody had come yet.
    pub fn is_fresh(&self, now: i64) -> bool {
        self.even <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_through_and_then_one_each_interval_in_the_order_of_asking() {
        let mut pace = Pace::default();
        let waits: Vec<_> = (0..6).map(|_| pace.take(1_000, 10, 3, i64::MAX)).collect();
        assert_eq!(waits, [0, 0, 0, 100_000, 200_000, 300_000].map(Ok));
        // Who waited their turn has it; a second later the bucket has three again.
        let mut late = pace;
        assert!(!pace.is_fresh(301_000) && pace.is_fresh(601_000));
        let waits: Vec<_> = (0..4).map(|_| late.take(601_000, 10, 3, i64::MAX)).collect();
        assert_eq!(waits, [0, 0, 0, 100_000].map(Ok));
    }

    #[test]
    fn a_turn_that_is_too_far_away_is_not_taken() {
        let mut pace = Pace::default();
        let waits: Vec<_> = (0..5).map(|_| pace.take(0, 1, 1, 2_000_000)).collect();
        assert_eq!(waits, [Ok(0), Ok(1_000_000), Ok(2_000_000), Err(3_000_000), Err(3_000_000)]);
        assert_eq!(pace.take(0, 0, 1, 0), Ok(0), "no rate, no wait");
    }
}
