//! Several things done at once, and taken in their order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

struct State<R> {
    /// The next to be begun, and the next to be taken.
    begun: usize,
    taken: usize,
    done: BTreeMap<usize, R>,
    /// Nobody wants the rest.
    over: bool,
}

/// A thread that panics leaves no result: then nobody may wait for it.
struct Panicked<'a, R>(&'a Mutex<State<R>>, &'a Condvar);

impl<R> Drop for Panicked<'_, R> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).over = true;
            self.1.notify_all();
        }
    }
}

/// Works on the items with that many threads and hands what comes of it to `take`, in the items' order; its first error
/// ends the work. No more than twice as many results are waiting to be taken as there are threads.
pub fn in_order<T: Sync, R: Send, E>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    if threads <= 1 || items.len() <= 1 {
        // On this thread: another's memory would not be used again here.
        return items.iter().enumerate().try_for_each(|(at, item)| take(at, work(item)));
    }
    let threads = threads.min(items.len());
    let ahead = threads * 2;
    let state = Mutex::new(State { begun: 0, taken: 0, done: BTreeMap::new(), over: false });
    let changed = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let wait = |guard| changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
    let worker = || {
        let _guard = Panicked(&state, &changed);
        loop {
            let at = {
                let mut now: MutexGuard<'_, State<R>> = lock();
                while !now.over && now.begun < items.len() && now.begun >= now.taken + ahead {
                    now = wait(now);
                }
                if now.over || now.begun >= items.len() {
                    return;
                }
                now.begun += 1;
                now.begun - 1
            };
            let result = work(&items[at]);
            lock().done.insert(at, result);
            changed.notify_all();
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(worker);
        }
        let mut taken = Ok(());
        for at in 0..items.len() {
            let mut now = lock();
            let result = loop {
                match now.done.remove(&at) {
                    Some(result) => break Some(result),
                    None if now.over => break None,
                    None => now = wait(now),
                }
            };
            now.taken = at + 1;
            drop(now);
            changed.notify_all();
            let Some(result) = result else { break };
            taken = take(at, result);
            if taken.is_err() {
                break;
            }
        }
        lock().over = true;
        changed.notify_all();
        taken
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn results_come_in_order_and_not_far_ahead() {
        let items: Vec<usize> = (0..200).collect();
        let (begun, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for threads in [0, 1, 3, 500] {
            begun.store(0, Ordering::SeqCst);
            taken.store(0, Ordering::SeqCst);
            let mut got = Vec::new();
            let work = |item: &usize| {
                let ahead = begun.fetch_add(1, Ordering::SeqCst) - taken.load(Ordering::SeqCst).min(*item);
                assert!(ahead <= 2 * threads.clamp(1, 200) + 1, "{ahead} ahead of what is taken");
                // The first takes longest.
                thread::sleep(Duration::from_micros(if item.is_multiple_of(10) { 500 } else { 1 }));
                item * 2
            };
            let done: Result<(), ()> = in_order(&items, threads, work, |at, result| {
                taken.store(at + 1, Ordering::SeqCst);
                got.push((at, result));
                Ok(())
            });
            assert_eq!(done, Ok(()));
            assert_eq!(got, items.iter().map(|i| (*i, i * 2)).collect::<Vec<_>>());
        }
        assert_eq!(in_order(&[] as &[u8], 4, |i| *i, |_, _| Err(())), Ok(()));
    }

    #[test]
    fn the_first_error_ends_it() {
        let items: Vec<usize> = (0..1000).collect();
        let begun = AtomicUsize::new(0);
        let work = |item: &usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            *item
        };
        assert_eq!(in_order(&items, 4, work, |at, _| if at == 5 { Err("enough") } else { Ok(()) }), Err("enough"));
        assert!(begun.load(Ordering::SeqCst) < 100);
    }

    #[test]
    fn a_panic_is_passed_on() {
        let work = |item: &usize| assert_ne!(*item, 3, "no");
        let caught = std::panic::catch_unwind(|| in_order(&[1, 2, 3, 4, 5], 2, work, |_, ()| Ok::<(), ()>(())));
        assert!(caught.is_err());
    }
}
