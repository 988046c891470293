//! The simulation's only source of chance: the same seed, the same numbers.

use sluice_sim::random::Random;

#[derive(Clone, Debug)]
pub struct Rng(Random);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(Random::new(seed))
    }
    pub fn number(&mut self) -> u64 {
        self.0.number()
    }
    /// 0 … n−1; 0 when n is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.number() % n }
    }
    /// Both ends included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).unsigned_abs()) as i64
    }
    /// True so many times in a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.below(from.len() as u64) as usize) }
    }
}
