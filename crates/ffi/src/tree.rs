//! Ordered maps: byte strings to words.

use std::ops::Bound;

use entresol_heap::Transaction;
use entresol_heap::collections::{RadixTree, TreeRange, TreeView};

use crate::address::heap_at;
use crate::text;
use crate::text::Failure;
use crate::transaction::transaction_at;

const WORD_BYTES: usize = 8;

/// A view and the entries of it that are still to come. Fields are dropped in this order, the
/// entries before the view that they borrow from.
struct Range {
    entries: TreeRange<'static>,
    /// Read, but too large for where it should have gone.
    waiting: Option<(Vec<u8>, u64)>,
    _view: Box<TreeView>,
}

export! {
    /// Makes an ordered map; its handle.
    entresol_tree_create, Java_io_entresol_heap_engine_Jni_treeCreate(transaction) {
        // SAFETY: the caller's promise.
        let transaction = unsafe { transaction_at(transaction) };
        Ok(RadixTree::create(transaction)?.handle() as i64)
    }
}

export! {
    /// Opens an ordered map; its address.
    entresol_tree_open, Java_io_entresol_heap_engine_Jni_treeOpen(heap, handle) {
        // SAFETY: the caller's promise.
        let heap = unsafe { heap_at(heap) };
        let tree = RadixTree::open(heap, handle as u64)?;
        Ok(Box::into_raw(Box::new(tree)) as i64)
    }
}

export! {
    /// Releases the address of an ordered map.
    entresol_tree_close, Java_io_entresol_heap_engine_Jni_treeClose(tree) {
        // SAFETY: given out by `entresol_tree_open`, and used for the last time.
        drop(unsafe { Box::from_raw(tree as *mut RadixTree) });
        Ok(0)
    }
}

export! {
    /// How many entries.
    entresol_tree_entries, Java_io_entresol_heap_engine_Jni_treeEntries(tree) {
        // SAFETY: the caller's promise.
        Ok(unsafe { tree_at(tree) }.entries()? as i64)
    }
}

export! {
    /// Address of a count that is odd while words of the map change, and differs afterwards.
    entresol_tree_version, Java_io_entresol_heap_engine_Jni_treeVersion(tree) {
        // SAFETY: the caller's promise.
        Ok(unsafe { tree_at(tree) }.version().as_ptr() as i64)
    }
}

export! {
    /// 1 if the key is there, with its value at `out`; else 0.
    entresol_tree_get, Java_io_entresol_heap_engine_Jni_treeGet(tree, key, length, out) {
        // SAFETY: the caller's promise.
        let (tree, key) = unsafe { (tree_at(tree), text::bytes(key, length)) };
        let found = tree.get(key)?;
        // SAFETY: the caller's promise.
        Ok(unsafe { give(found, out) })
    }
}

export! {
    /// Puts an entry, in a transaction of its own if `transaction` is 0. 1 if the key was there,
    /// with the value before at `out`; else 0.
    entresol_tree_put,
    Java_io_entresol_heap_engine_Jni_treePut(tree, transaction, key, length, value, out) {
        // SAFETY: the caller's promise.
        let (tree, key) = unsafe { (tree_at(tree), text::bytes(key, length)) };
        // SAFETY: the caller's promise.
        let before = unsafe {
            within(tree, transaction, |commit| Ok(tree.put(commit, key, value as u64)?))?
        };
        // SAFETY: the caller's promise.
        Ok(unsafe { give(before, out) })
    }
}

export! {
    /// Removes an entry, if it is there, as `entresol_tree_put` puts one.
    entresol_tree_remove,
    Java_io_entresol_heap_engine_Jni_treeRemove(tree, transaction, key, length, out) {
        // SAFETY: the caller's promise.
        let (tree, key) = unsafe { (tree_at(tree), text::bytes(key, length)) };
        // SAFETY: the caller's promise.
        let before =
            unsafe { within(tree, transaction, |commit| Ok(tree.remove(commit, key)?))? };
        // SAFETY: the caller's promise.
        Ok(unsafe { give(before, out) })
    }
}

export! {
    /// Makes other transactions that change the map wait until this one ends, and changes nothing.
    entresol_tree_hold, Java_io_entresol_heap_engine_Jni_treeHold(tree, transaction) {
        // SAFETY: the caller's promise.
        let tree = unsafe { tree_at(tree) };
        // SAFETY: the caller's promise.
        tree.hold(unsafe { transaction_at(transaction) })?;
        Ok(0)
    }
}

export! {
    /// Removes all entries.
    entresol_tree_clear, Java_io_entresol_heap_engine_Jni_treeClear(tree, transaction) {
        // SAFETY: the caller's promise.
        let tree = unsafe { tree_at(tree) };
        // SAFETY: the caller's promise.
        unsafe { within(tree, transaction, |commit| Ok(tree.clear(commit, |_, _| {})?))? };
        Ok(0)
    }
}

export! {
    /// Frees the map with all entries; its address is still to be released.
    entresol_tree_destroy, Java_io_entresol_heap_engine_Jni_treeDestroy(tree, transaction) {
        // SAFETY: the caller's promise.
        let tree = unsafe { tree_at(tree) };
        // SAFETY: the caller's promise.
        unsafe { within(tree, transaction, |commit| Ok(tree.clone().destroy(commit)?))? };
        Ok(0)
    }
}

export! {
    /// Moves the upper half of the entries to a new map; its handle, 0 if there are too few.
    entresol_tree_split, Java_io_entresol_heap_engine_Jni_treeSplit(tree, transaction) {
        // SAFETY: the caller's promise.
        let tree = unsafe { tree_at(tree) };
        // SAFETY: the caller's promise.
        let other = unsafe { within(tree, transaction, |commit| Ok(tree.split(commit)?))? };
        Ok(other.map_or(0, |other| other.handle() as i64))
    }
}

export! {
    /// A view of the entries between two bounds: six words at `bounds`, for each the address and
    /// length of a key and 0 for none, 1 for inclusive, 2 for exclusive. The view's address.
    entresol_tree_range, Java_io_entresol_heap_engine_Jni_treeRange(tree, transaction, bounds) {
        // SAFETY: the caller's promise.
        let tree = unsafe { tree_at(tree) };
        let view = if transaction == 0 {
            tree.try_view()?
        } else {
            // SAFETY: the caller's promise.
            tree.view_in(unsafe { transaction_at(transaction) })?
        };
        let view = Box::new(view);
        // SAFETY: the caller's promise.
        let (lower, upper) = unsafe { (bound(bounds, 0), bound(bounds, 3)) };
        // SAFETY: the view stays where it is, and lives longer than what borrows from it.
        let held: &'static TreeView = unsafe { &*std::ptr::from_ref(view.as_ref()) };
        let range = Range { entries: held.range(lower, upper), waiting: None, _view: view };
        Ok(Box::into_raw(Box::new(range)) as i64)
    }
}

export! {
    /// Puts as many of the next entries to `out` as fit into `bytes`: {value, length of the key,
    /// the key, filled up to 8 bytes} each. Their number; where not one fits, -(the bytes it needs)
    /// goes to the first word of `out` and the result is 0. 0 with a first word of 0: no more.
    entresol_range_next, Java_io_entresol_heap_engine_Jni_rangeNext(range, backwards, out, bytes) {
        // SAFETY: the caller's promise.
        let range = unsafe { &mut *(range as *mut Range) };
        let mut count = 0;
        let mut used = 0;
        // SAFETY: the caller's promise.
        unsafe { (out as *mut i64).write(0) };
        loop {
            let next = match range.waiting.take() {
                Some(entry) => Some(entry),
                None => range.read(backwards != 0)?,
            };
            let Some((key, value)) = next else { return Ok(count) };
            let needed = 2 * WORD_BYTES + key.len().next_multiple_of(WORD_BYTES);
            if used + needed > bytes as usize {
                if count == 0 {
                    // SAFETY: as above.
                    unsafe { (out as *mut i64).write(-(needed as i64)) };
                }
                range.waiting = Some((key, value));
                return Ok(count);
            }
            let place = (out as usize + used) as *mut u64;
            // SAFETY: the caller's promise; what is needed fits.
            unsafe {
                place.write(value);
                place.add(1).write(key.len() as u64);
                std::ptr::copy_nonoverlapping(key.as_ptr(), place.add(2).cast(), key.len());
            }
            used += needed;
            count += 1;
        }
    }
}

export! {
    /// Releases a view.
    entresol_range_close, Java_io_entresol_heap_engine_Jni_rangeClose(range) {
        // SAFETY: given out by `entresol_tree_range`, and used for the last time.
        drop(unsafe { Box::from_raw(range as *mut Range) });
        Ok(0)
    }
}

impl Range {
    fn read(&mut self, is_backwards: bool) -> Result<Option<(Vec<u8>, u64)>, Failure> {
        let entry = if is_backwards { self.entries.next_back() } else { self.entries.next() };
        Ok(entry.transpose()?.map(|(key, value)| (key.to_vec(), value)))
    }
}

/// Runs `body` in a transaction, one of its own if there is none.
///
/// # Safety
/// `transaction` is 0 or a transaction's address.
unsafe fn within<T>(
    tree: &RadixTree,
    transaction: i64,
    body: impl FnOnce(&mut Transaction) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if transaction != 0 {
        // SAFETY: the caller's promise.
        return body(unsafe { transaction_at(transaction) });
    }
    crate::transaction::alone(tree.heap(), 0, body)
}

/// # Safety
/// A word fits at `out`.
unsafe fn give(found: Option<u64>, out: i64) -> i64 {
    let Some(value) = found else { return 0 };
    // SAFETY: the caller's promise.
    unsafe { (out as *mut u64).write(value) };
    1
}

/// # Safety
/// Three words of a bound are at `bounds` from word `first` on, and its key is where they say.
unsafe fn bound<'a>(bounds: i64, first: usize) -> Bound<&'a [u8]> {
    // SAFETY: the caller's promise.
    let word = |index: usize| unsafe { (bounds as *const i64).add(first + index).read() };
    // SAFETY: the caller's promise.
    let key = || unsafe { text::bytes(word(0), word(1)) };
    match word(2) {
        1 => Bound::Included(key()),
        2 => Bound::Excluded(key()),
        _ => Bound::Unbounded,
    }
}

/// # Safety
/// `address` is an open ordered map's.
unsafe fn tree_at<'a>(address: i64) -> &'a RadixTree {
    // SAFETY: the caller's promise.
    unsafe { &*(address as *const RadixTree) }
}
