//! Which pages of a heap's private memory were stored to, by the kernel's own books: what a raw
//! heap's program stored and never flushed still reaches the file when the heap is closed.

use std::fs::File;
use std::os::unix::fs::FileExt;

use entresol_heap::Heap;

use crate::text::Failure;

const PAGE_BYTES: u64 = 4096;
const ENTRY_BYTES: u64 = 8;
/// Entries read at a time.
const CHUNK_ENTRIES: u64 = 64 << 10;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// The page is the file's own, not a copy that a store made.
const OF_FILE: u64 = 1 << 61;
/// Bytes made durable by one record at most.
const RECORD_BYTES_MAX: u64 = 8 << 20;

/// Makes all stores to live allocations durable, those included that nobody logged.
pub(crate) fn persist(heap: &Heap) -> Result<(), Failure> {
    let stored = pages(heap.base() as u64, heap.size_bytes())?;
    let mut live = Vec::new();
    heap.visit_live(|handle, bytes| live.push((handle, bytes)));
    live.sort_unstable();
    let mut ranges = Vec::new();
    let mut bytes = 0;
    for range in shared(&stored, &live) {
        bytes += range.1;
        ranges.push(range);
        if bytes >= RECORD_BYTES_MAX {
            heap.persist(&std::mem::take(&mut ranges))?;
            bytes = 0;
        }
    }
    if !ranges.is_empty() {
        heap.persist(&ranges)?;
    }
    Ok(())
}

/// What two lists of ranges, both in order, have in common.
fn shared(left: &[(u64, u64)], right: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let (mut at, mut other) = (0, 0);
    while at < left.len() && other < right.len() {
        let ends = (left[at].0 + left[at].1, right[other].0 + right[other].1);
        let start = left[at].0.max(right[other].0);
        let end = ends.0.min(ends.1);
        if start < end {
            found.push((start, end - start));
        }
        if ends.0 <= ends.1 {
            at += 1;
        } else {
            other += 1;
        }
    }
    found
}

/// Runs of pages of `bytes` bytes from `base` that were stored to, as offset and length.
fn pages(base: u64, bytes: u64) -> Result<Vec<(u64, u64)>, Failure> {
    let books = File::open("/proc/self/pagemap")
        .map_err(|_| Failure::io("cannot open /proc/self/pagemap"))?;
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let count = bytes / PAGE_BYTES;
    let mut chunk = vec![0; (CHUNK_ENTRIES * ENTRY_BYTES) as usize];
    let mut first = 0;
    while first < count {
        let entries = CHUNK_ENTRIES.min(count - first);
        let read = &mut chunk[..(entries * ENTRY_BYTES) as usize];
        books
            .read_exact_at(read, (base / PAGE_BYTES + first) * ENTRY_BYTES)
            .map_err(|_| Failure::io("cannot read /proc/self/pagemap"))?;
        for (index, entry) in read.chunks_exact(ENTRY_BYTES as usize).enumerate() {
            let entry = u64::from_le_bytes(entry.try_into().unwrap_or_default());
            if entry & (PRESENT | SWAPPED) == 0 || entry & OF_FILE != 0 {
                continue;
            }
            let offset = (first + index as u64) * PAGE_BYTES;
            match runs.last_mut() {
                Some((start, length))
                    if *start + *length == offset && *length < RECORD_BYTES_MAX =>
                {
                    *length += PAGE_BYTES;
                }
                _ => runs.push((offset, PAGE_BYTES)),
            }
        }
        first += entries;
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_share_what_lies_in_both() {
        let pages = [(4096, 8192), (20480, 4096)];
        let live = [(0, 100), (4000, 200), (8000, 64), (12000, 9000), (24000, 10000)];
        let expected = [(4096, 104), (8000, 64), (12000, 288), (20480, 520), (24000, 576)];
        assert_eq!(shared(&pages, &live), expected);
    }

    #[test]
    fn stored_pages_are_found_and_no_others() {
        let length = 16 * PAGE_BYTES as usize;
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0) }.cast::<u8>();
        for page in [3, 4, 9] {
            // SAFETY: inside the mapping.
            unsafe { base.add(page * PAGE_BYTES as usize + 7).write(1) };
        }
        let found = pages(base as u64, length as u64).unwrap();
        assert_eq!(found, [(3 * PAGE_BYTES, 2 * PAGE_BYTES), (9 * PAGE_BYTES, PAGE_BYTES)]);
        // SAFETY: mapped above, used for the last time.
        unsafe { libc::munmap(base.cast(), length) };
    }
}
