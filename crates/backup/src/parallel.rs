//! Work on many objects by a few threads: a place far away answers slowly, and often.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

/// Threads of one work.
pub(crate) const THREADS: usize = 4;

/// Calls `work` for each of `items`, by several threads, and `note` for each result, one at a time.
/// No further item is begun once `note` says so by an error, which is returned.
pub(crate) fn each<T: Sync, R: Send, E: Send>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    note: impl FnMut(&T, R) -> Result<(), E> + Send,
) -> Result<(), E> {
    let queue = Mutex::new(items.iter());
    let noted = Mutex::new((note, Ok(())));
    thread::scope(|scope| {
        for _ in 0..THREADS.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let item = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(item) = item else { break };
                    let result = work(item);
                    let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                    if noted.1.is_err() {
                        break;
                    }
                    noted.1 = (noted.0)(item, result);
                }
            });
        }
    });
    noted.into_inner().unwrap_or_else(PoisonError::into_inner).1
}
