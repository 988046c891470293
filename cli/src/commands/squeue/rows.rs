//! Rows of jobs: written as the records pass by, put in order at the end.
//!
//! Owns the memory of a long table: the text of all rows and a few numbers for each, never the records.

use super::fields::Info;
use super::lines;
use super::settings::Settings;
use super::sort::{self, Key, Rank};
use super::values::Context;
use crate::view::columns::Layout;
use crate::view::job as facts;
use sluice_proto::v1;
use std::collections::BTreeMap;

pub struct Rows<'a> {
    settings: &'a Settings,
    layout: &'a Layout<&'static Info>,
    context: &'a Context<'a>,
    keys: Vec<Key>,
    tiers: Option<&'a BTreeMap<String, u32>>,
    text: Vec<u8>,
    rows: Vec<Row>,
    /// `keys.len()` numbers for each row; for texts, numbers out of `texts`.
    ranks: Vec<i64>,
    /// Texts that rows are compared by, in the order met.
    texts: BTreeMap<Vec<u8>, i64>,
    scratch: Vec<u8>,
}

/// Where a row's text ends (it starts where the one before ends), and what decides between equal rows.
struct Row {
    end: usize,
    order: (u32, u32),
}

impl<'a> Rows<'a> {
    /// `size` is a guess at the bytes to come.
    pub fn new(
        settings: &'a Settings,
        layout: &'a Layout<&'static Info>,
        context: &'a Context<'a>,
        keys: Vec<Key>,
        tiers: Option<&'a BTreeMap<String, u32>>,
        size: usize,
    ) -> Self {
        Rows {
            settings,
            layout,
            context,
            keys,
            tiers,
            text: Vec::with_capacity(size),
            rows: Vec::new(),
            ranks: Vec::new(),
            texts: BTreeMap::new(),
            scratch: Vec::new(),
        }
    }

    /// Adds the job's row, or its rows where arrays or partitions are shown apart.
    pub fn add(&mut self, job: &v1::JobRecord) {
        if let Some(named) = facts::narrow(job, &self.settings.jobs) {
            return self.add_whole(&named);
        }
        self.add_whole(job);
    }

    fn add_whole(&mut self, job: &v1::JobRecord) {
        let split_array = self.settings.split_arrays && job.array_pending.is_some();
        let split_partition = self.settings.by_partition && job.partition.contains(',');
        if !split_array && !split_partition {
            return self.add_one(job);
        }
        let settings = self.settings;
        let mut add = |task: &v1::JobRecord| match split_partition {
            true => lines::split_partitions(settings, task.clone()).iter().for_each(|part| self.add_one(part)),
            false => self.add_one(task),
        };
        match split_array {
            // The controller selects whole records: of those that stand for many tasks only the named ones are wanted.
            true => facts::for_each_task(job, |task| {
                if lines::wanted(&settings.jobs, task) {
                    add(task);
                }
            }),
            false => add(job),
        }
    }

    fn add_one(&mut self, job: &v1::JobRecord) {
        let context = self.context;
        for key in &self.keys {
            let rank = match sort::rank(key.field, job, self.tiers) {
                Rank::Number(n) => n,
                Rank::Text => {
                    self.scratch.clear();
                    context.write(key.field, job, &mut self.scratch);
                    match self.texts.get(self.scratch.as_slice()) {
                        Some(number) => *number,
                        None => {
                            let number = i64::try_from(self.texts.len()).unwrap_or(i64::MAX);
                            self.texts.insert(self.scratch.clone(), number);
                            number
                        }
                    }
                }
            };
            self.ranks.push(rank);
        }
        self.layout.row_with(
            &mut self.text,
            |info, out| context.write(info.field, job, out),
            |info| info.field.is_duration(),
        );
        self.rows.push(Row { end: self.text.len(), order: facts::order(job) });
    }

    /// All rows, in order.
    pub fn finish(mut self) -> Vec<u8> {
        self.order_texts();
        let width = self.keys.len();
        let ranks = |row: usize| &self.ranks[row * width..(row + 1) * width];
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|a, b| {
            for (key, (x, y)) in self.keys.iter().zip(ranks(*a).iter().zip(ranks(*b))) {
                let by_key = if key.descending { y.cmp(x) } else { x.cmp(y) };
                if by_key.is_ne() {
                    return by_key;
                }
            }
            self.rows[*a].order.cmp(&self.rows[*b].order)
        });
        if order.is_sorted() {
            return self.text;
        }
        let mut out = Vec::with_capacity(self.text.len());
        for row in order {
            let start = if row == 0 { 0 } else { self.rows[row - 1].end };
            out.extend_from_slice(&self.text[start..self.rows[row].end]);
        }
        out
    }

    /// Puts the place of each text among all texts where its number was.
    fn order_texts(&mut self) {
        let mut place = vec![0; self.texts.len()];
        for (at, number) in (0..).zip(self.texts.values()) {
            if let Some(slot) = usize::try_from(*number).ok().and_then(|n| place.get_mut(n)) {
                *slot = at;
            }
        }
        let width = self.keys.len();
        // Whether a key compares numbers or texts depends on its field alone.
        let blank = v1::JobRecord::default();
        for (column, key) in self.keys.iter().enumerate() {
            if sort::rank(key.field, &blank, self.tiers) != Rank::Text {
                continue;
            }
            for rank in self.ranks.iter_mut().skip(column).step_by(width) {
                if let Some(at) = usize::try_from(*rank).ok().and_then(|n| place.get(n)) {
                    *rank = *at;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Shown;
    use super::super::settings::test::of;
    use super::*;
    use crate::view::fixture;

    fn ids(words: &[&str]) -> Vec<String> {
        let settings = of(&[&["-h", "-o", "%i"], words].concat()).ok().unwrap();
        let clock = fixture::clock();
        let context = Context { clock: &clock, cluster: "c", bitstr_len: 64 };
        let Shown::Jobs(layout) = &settings.shown else { panic!("jobs are shown") };
        let mut rows = Rows::new(&settings, layout, &context, settings.order().ok().unwrap(), None, 0);
        fixture::jobs().iter().for_each(|job| rows.add(job));
        String::from_utf8(rows.finish()).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_default_order_is_state_then_falling_priority() {
        assert_eq!(ids(&[]), ["7", "3_[2-5%2]", "5", "6", "4", "2", "3_0", "3_1", "1"]);
    }

    #[test]
    fn start_times_rise_and_unknown_ones_come_last() {
        let order = ids(&["--start"]);
        assert_eq!(order[4..], ["5", "3_[2-5%2]", "4", "6", "7"]);
    }

    #[test]
    fn numbers_and_texts_order_both_ways() {
        assert_eq!(ids(&["-S", "i"]), ["1", "2", "3_0", "3_1", "3_[2-5%2]", "4", "5", "6", "7"]);
        assert_eq!(ids(&["-S", "-i"]), ["7", "6", "5", "4", "3_[2-5%2]", "3_1", "3_0", "2", "1"]);
        assert_eq!(ids(&["-S", "j,-i"]), ["3_[2-5%2]", "3_1", "3_0", "7", "6", "1", "4", "5", "2"]);
        assert_eq!(ids(&["-S", "-j,i"])[..2], ["2", "5"]);
        assert_eq!(ids(&["-S", "N,i"]).last().unwrap(), "2");
    }
}
