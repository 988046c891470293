//! Amounts as `sacct` prints them: `--units`, `--noconvert`, CPU times with their milliseconds.
//!
//! Source: sacct(1); rounding as Slurm was seen to do it.

/// Powers of 1024 above bytes.
const LETTERS: &str = "KMGTP";

/// The unit of amounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Units {
    /// The largest one in which the amount is whole.
    #[default]
    Auto,
    /// `--noconvert`: as stored.
    Stored,
    /// `--units`: this power of 1024, from 1 for K.
    Fixed(u32),
}

impl Units {
    pub fn parse(letter: &str) -> Option<Units> {
        let mut letters = letter.chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else { return None };
        LETTERS.find(letter.to_ascii_uppercase()).map(|at| Units::Fixed(at as u32 + 1))
    }

    /// `1644K`, `38725`
    pub fn bytes(self, bytes: u64) -> String {
        self.scaled(bytes, 0)
    }

    /// `1100M`, `2G`
    pub fn memory_mb(self, mb: u64) -> String {
        match self {
            // Slurm's own word for none.
            Units::Stored if mb > 0 => format!("{mb}M"),
            _ => self.scaled(mb, 2),
        }
    }

    /// `0.06M`: what was read or written.
    pub fn disk(self, bytes: u64) -> String {
        match self {
            Units::Auto if bytes > 0 => in_unit(bytes, 0, 2),
            _ => self.scaled(bytes, 0),
        }
    }

    /// `amount` is in the unit `power`.
    fn scaled(self, amount: u64, power: u32) -> String {
        match self {
            _ if amount == 0 => "0".to_owned(),
            Units::Stored => format!("{amount}{}", letter(power)),
            Units::Fixed(wanted) => in_unit(amount, power, wanted),
            Units::Auto => {
                let (mut amount, mut power) = (amount, power);
                while amount % 1024 == 0 && (power as usize) < LETTERS.len() {
                    amount /= 1024;
                    power += 1;
                }
                format!("{amount}{}", letter(power))
            }
        }
    }
}

fn letter(power: u32) -> String {
    (power as usize).checked_sub(1).and_then(|at| LETTERS.chars().nth(at)).map(String::from).unwrap_or_default()
}

/// Whole when it is whole in that unit, else with two decimals.
fn in_unit(amount: u64, power: u32, wanted: u32) -> String {
    let value = amount as f64 * 1024f64.powi(power as i32 - wanted as i32);
    let letter = letter(wanted);
    if value.fract() == 0.0 { format!("{value:.0}{letter}") } else { format!("{value:.2}{letter}") }
}

/// `00:00.019` below an hour when there are milliseconds, else `00:00:12`, `1-02:03:04`.
pub fn cpu_time(microseconds: u64) -> String {
    let (seconds, ms) = (microseconds / 1_000_000, microseconds / 1000 % 1000);
    if seconds < 3600 && ms > 0 {
        format!("{:02}:{:02}.{ms:03}", seconds / 60, seconds % 60)
    } else {
        crate::view::clock::elapsed_long(i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_use_the_largest_whole_unit_unless_told_otherwise() {
        assert_eq!(Units::Auto.bytes(135_168), "132K");
        assert_eq!(Units::Auto.bytes(38_725), "38725");
        assert_eq!(Units::Auto.memory_mb(1100), "1100M");
        assert_eq!(Units::Auto.memory_mb(2048), "2G");
        assert_eq!(Units::Auto.disk(6977), "0.01M");
        assert_eq!(Units::Stored.memory_mb(2048), "2048M");
        assert_eq!(Units::Stored.bytes(135_168), "135168");
        assert_eq!(Units::parse("K").unwrap().memory_mb(1100), "1126400K");
        assert_eq!(Units::parse("g").unwrap().memory_mb(1100), "1.07G");
        assert_eq!(Units::parse("G").unwrap().bytes(135_168), "0.00G");
        assert_eq!(Units::parse("M").unwrap().bytes(0), "0");
        assert_eq!((Units::parse("X"), Units::parse(""), Units::parse("KM")), (None, None, None));
    }

    #[test]
    fn cpu_times_show_milliseconds_below_an_hour() {
        assert_eq!(cpu_time(0), "00:00:00");
        assert_eq!(cpu_time(19_400), "00:00.019");
        assert_eq!(cpu_time(62_003_000), "01:02.003");
        assert_eq!(cpu_time(62_000_000), "00:01:02");
        assert_eq!(cpu_time(90_000_500_000), "1-01:00:00");
    }
}
