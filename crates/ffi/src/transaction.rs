//! Transactions: allocations, frees and the root; and the commit of a caller's ranges, whose undo
//! the caller keeps.

use std::time::Duration;

use entresol_heap::{Durability, Heap, Savepoint, Transaction};

use crate::address::heap_at;
use crate::text::Failure;

/// What a transaction's address refers to.
struct Begun {
    transaction: Transaction,
    savepoints: Vec<Savepoint>,
}

export! {
    /// Begins a transaction; its address.
    entresol_transaction_begin, Java_io_entresol_heap_engine_Jni_transactionBegin(heap) {
        // SAFETY: the caller's promise.
        let heap = unsafe { heap_at(heap) };
        let begun = Begun { transaction: begin(heap), savepoints: Vec::new() };
        Ok(Box::into_raw(Box::new(begun)) as i64)
    }
}

export! {
    /// Allocates zeroed bytes; the handle.
    entresol_transaction_allocate,
    Java_io_entresol_heap_engine_Jni_transactionAllocate(transaction, bytes) {
        // SAFETY: the caller's promise.
        let begun = unsafe { begun_at(transaction) };
        Ok(begun.transaction.allocate(bytes as u64)? as i64)
    }
}

export! {
    /// Frees an allocation.
    entresol_transaction_free,
    Java_io_entresol_heap_engine_Jni_transactionFree(transaction, handle) {
        // SAFETY: the caller's promise.
        let begun = unsafe { begun_at(transaction) };
        begun.transaction.free(handle as u64)?;
        Ok(0)
    }
}

export! {
    /// Sets the root.
    entresol_transaction_set_root,
    Java_io_entresol_heap_engine_Jni_transactionSetRoot(transaction, root) {
        // SAFETY: the caller's promise.
        let begun = unsafe { begun_at(transaction) };
        begun.transaction.set_root(root as u64)?;
        Ok(0)
    }
}

export! {
    /// The number of a savepoint.
    entresol_transaction_savepoint,
    Java_io_entresol_heap_engine_Jni_transactionSavepoint(transaction) {
        // SAFETY: the caller's promise.
        let begun = unsafe { begun_at(transaction) };
        begun.savepoints.push(begun.transaction.savepoint());
        Ok(begun.savepoints.len() as i64 - 1)
    }
}

export! {
    /// Rolls back to a savepoint; it and later ones are gone.
    entresol_transaction_rollback,
    Java_io_entresol_heap_engine_Jni_transactionRollback(transaction, savepoint) {
        // SAFETY: the caller's promise.
        let begun = unsafe { begun_at(transaction) };
        let place = usize::try_from(savepoint).ok();
        let Some(to) = place.and_then(|place| begun.savepoints.get(place).copied()) else {
            let sentence = format!(
                "the transaction has no savepoint {savepoint}; it has {}, numbered from 0",
                begun.savepoints.len()
            );
            return Err(Failure { kind: 2, sentence });
        };
        begun.transaction.rollback(to)?;
        begun.savepoints.truncate(savepoint as usize);
        Ok(0)
    }
}

export! {
    /// Commits `count` pairs of offset and length at `ranges`, with their current bytes, and the
    /// transaction, if there is one, which is gone afterwards. After a failure the caller undoes
    /// its stores, but not after one of the kind `UNSETTLED`: they are seen as committed.
    entresol_transaction_commit,
    Java_io_entresol_heap_engine_Jni_transactionCommit(heap, transaction, ranges, count, level) {
        // SAFETY: the caller's promise.
        let heap = unsafe { heap_at(heap) };
        let mut commit = if transaction == 0 {
            begin(heap)
        } else {
            // SAFETY: given out by `entresol_transaction_begin`, and used for the last time.
            unsafe { Box::from_raw(transaction as *mut Begun) }.transaction
        };
        for index in 0..count as usize {
            let pair = ranges as *const u64;
            // SAFETY: the caller's promise: `count` pairs are there.
            let (offset, length) =
                unsafe { (pair.add(index * 2).read(), pair.add(index * 2 + 1).read()) };
            commit.log(offset, length)?;
        }
        finish(commit, level)?;
        Ok(0)
    }
}

export! {
    /// Aborts a transaction, which is gone afterwards.
    entresol_transaction_abort,
    Java_io_entresol_heap_engine_Jni_transactionAbort(transaction) {
        // SAFETY: given out by `entresol_transaction_begin`, and used for the last time.
        unsafe { Box::from_raw(transaction as *mut Begun) }.transaction.abort();
        Ok(0)
    }
}

/// A transaction that never waits for another: the thread may carry others that have to go on, so
/// the caller waits.
fn begin(heap: &Heap) -> Transaction {
    heap.begin().with_patience(Duration::ZERO)
}

/// Commits at a level: 0 is the heap's own.
pub(crate) fn finish(transaction: Transaction, level: i64) -> Result<(), Failure> {
    match durability(level, 0) {
        None => transaction.commit()?,
        Some(durability) => transaction.commit_with(durability)?,
    }
    Ok(())
}

/// A level by its number; 0 is whatever applies without one.
pub(crate) fn durability(level: i64, argument: i64) -> Option<Durability> {
    /// Microseconds that a group waits if nothing else is said.
    const DELAY_US: u32 = 200;
    /// Milliseconds between syncs if nothing else is said.
    const EPOCH_MS: u32 = 100;
    let given = u32::try_from(argument).ok().filter(|&argument| argument > 0);
    match level {
        1 => Some(Durability::Sync),
        2 => Some(Durability::Group { delay_us: given.unwrap_or(DELAY_US) }),
        3 => Some(Durability::Buffered { epoch_ms: given.unwrap_or(EPOCH_MS) }),
        4 => Some(Durability::None),
        _ => None,
    }
}

/// Runs `body` in a transaction of its own.
pub(crate) fn alone<T>(
    heap: &Heap,
    level: i64,
    body: impl FnOnce(&mut Transaction) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut transaction = begin(heap);
    let result = body(&mut transaction)?;
    finish(transaction, level)?;
    Ok(result)
}

/// # Safety
/// As of `begun_at`.
pub(crate) unsafe fn transaction_at<'a>(address: i64) -> &'a mut Transaction {
    // SAFETY: the caller's promise.
    &mut unsafe { begun_at(address) }.transaction
}

/// # Safety
/// `address` is one of `entresol_transaction_begin`, and no other thread uses it meanwhile.
unsafe fn begun_at<'a>(address: i64) -> &'a mut Begun {
    // SAFETY: the caller's promise.
    unsafe { &mut *(address as *mut Begun) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::heap::{entresol_heap_create, entresol_heap_is_live, entresol_heap_release};
    use crate::text;

    /// A number past the last savepoint was taken for the last one, and undid what followed that.
    #[test]
    fn a_rollback_to_a_savepoint_that_is_none_fails_and_undoes_nothing() {
        let path = std::env::temp_dir().join(format!("entresol-savepoint-{}", std::process::id()));
        let (name, label) = (path.as_os_str().as_bytes(), [0_u8; 16]);
        let (at, length) = (name.as_ptr() as i64, name.len() as i64);
        // SAFETY: path and label are readable; addresses are used as they were given out.
        unsafe {
            let label = label.as_ptr() as i64;
            let heap = entresol_heap_create(at, length, 4 << 20, 0, label, 0, 0, 1, 0);
            assert!(heap > 0);
            let transaction = entresol_transaction_begin(heap);
            assert_eq!(entresol_transaction_savepoint(transaction), 0);
            assert_eq!(entresol_transaction_savepoint(transaction), 1);
            let handle = entresol_transaction_allocate(transaction, 64);
            for unknown in [2, 7, i64::MAX, -1, i64::MIN] {
                let failed = entresol_transaction_rollback(transaction, unknown);
                assert!(failed < 0, "{unknown}");
                let (kind, sentence) = text::take(-failed);
                assert_eq!(kind, 2, "{sentence}");
                assert!(sentence.contains("no savepoint"), "{sentence}");
                assert_eq!(entresol_heap_is_live(heap, handle), 1);
            }
            assert_eq!(entresol_transaction_rollback(transaction, 1), 0);
            assert_eq!(entresol_heap_is_live(heap, handle), 0);
            assert!(entresol_transaction_rollback(transaction, 1) < 0);
            assert_eq!(entresol_transaction_rollback(transaction, 0), 0);
            entresol_transaction_abort(transaction);
            entresol_heap_release(heap);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
