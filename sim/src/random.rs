//! Random numbers from a seed: the same seed gives the same trace.
//!
//! SplitMix64 (Steele, Lea, Flood 2014) below, and on top of it the few distributions that workload models need. The
//! logarithms are the platform's: another C library may give a last digit otherwise.

#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In (0, 1].
    pub fn unit(&mut self) -> f64 {
        ((self.number() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }

    /// 0 … n−1; 0 when n is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.number() % n as u64) as usize }
    }

    /// Mean 0, deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let (a, b) = (self.unit(), self.unit());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Shape at least 1 (Marsaglia and Tsang 2000).
    pub fn gamma(&mut self, shape: f64, scale: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v * scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_and_normal_have_their_means_and_deviations() {
        let mut random = Random::new(7);
        let n = 20_000;
        let mean = (0..n).map(|_| random.gamma(4.0, 2.5)).sum::<f64>() / f64::from(n);
        assert!((mean - 10.0).abs() < 0.2, "{mean}");
        let squares = (0..n).map(|_| random.normal().powi(2)).sum::<f64>() / f64::from(n);
        assert!((squares - 1.0).abs() < 0.05, "{squares}");
    }
}
