//! Work on many items on several threads, handed over in order: decoding at a start, making the records of a long list.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Works on all items, `unit` of them at a time, and gives each result with its item's number to `each`, in order, on the
/// calling thread, until one is refused.
pub fn in_order<I: Sync, T: Send, E>(
    items: &[I],
    unit: usize,
    work: impl Fn(&I) -> T + Sync,
    mut each: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    let units: Vec<&[I]> = items.chunks(unit.max(1)).collect();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(4)).min(units.len());
    if threads <= 1 {
        return items.iter().enumerate().try_for_each(|(n, item)| each(n, work(item)));
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // Bounded, so that results don't pile up before the one that is waited for.
        let (sender, receiver) = mpsc::sync_channel::<(usize, Vec<T>)>(2 * threads);
        for _ in 0..threads {
            let (sender, next, units, work) = (sender.clone(), &next, &units, &work);
            scope.spawn(move || {
                let take = || {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    units.get(n).map(|unit| (n, *unit))
                };
                while let Some((n, unit)) = take() {
                    // Refused when an earlier result ended the whole.
                    if sender.send((n, unit.iter().map(work).collect())).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut early, mut due, mut number) = (BTreeMap::new(), 0, 0);
        for (n, results) in receiver {
            early.insert(n, results);
            while let Some(results) = early.remove(&due) {
                due += 1;
                for result in results {
                    each(number, result)?;
                    number += 1;
                }
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_a_refusal_ends_it() {
        let items: Vec<usize> = (0..1000).collect();
        for unit in [1, 7, 5000] {
            let mut seen = Vec::new();
            let whole: Result<(), ()> = in_order(
                &items,
                unit,
                |n| n * 2,
                |n, double| {
                    assert_eq!(double, 2 * n);
                    seen.push(double / 2);
                    Ok(())
                },
            );
            assert_eq!(whole, Ok(()));
            assert_eq!(seen, items);
            let refused = in_order(&items, unit, |n| *n, |n, _| if n == 500 { Err(n) } else { Ok(()) });
            assert_eq!(refused, Err(500));
        }
        assert_eq!(in_order(&[] as &[u8], 1, |n| *n, |_, _| Err(())), Ok(()));
    }
}
