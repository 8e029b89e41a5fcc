//! Runs a function over items in parallel and returns the results in input order.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// Calls `work` for each item on one thread per core, each with the stack that the linter needs.
/// Returns the results in the order of the items.
pub fn map_items<Item: Sync, Done: Send>(
    items: &[Item],
    work: impl Fn(&Item) -> Done + Sync,
) -> io::Result<Vec<Done>> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let next = AtomicUsize::new(0);
    let labour = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return done;
            };
            done.push((index, work(item)));
        }
    };
    std::thread::scope(|scope| {
        let mut hands = Vec::new();
        for _ in 0..cores.min(items.len()) {
            let hand = Builder::new().stack_size(antifreeze_lint::STACK_BYTES);
            match hand.spawn_scoped(scope, labour) {
                Ok(hand) => hands.push(hand),
                // Fewer threads do the same work.
                Err(_) if !hands.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        let mut done: Vec<(usize, Done)> = Vec::with_capacity(items.len());
        for hand in hands {
            match hand.join() {
                Ok(part) => done.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done.sort_unstable_by_key(|(index, _)| *index);
        Ok(done.into_iter().map(|(_, done)| done).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_done_once_and_in_order() {
        let items: Vec<usize> = (0..1000).collect();
        let doubled = map_items(&items, |item| item * 2).unwrap();
        assert!(
            doubled
                .iter()
                .enumerate()
                .all(|(index, item)| *item == index * 2)
        );
        assert_eq!(doubled.len(), items.len());
        assert!(map_items(&[0; 0], |_| ()).unwrap().is_empty());
    }
}
