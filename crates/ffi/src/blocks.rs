//! Lists of blocks, in pieces: all live ones of a heap, or those of a radix tree.

use entresol_heap::Heap;
use entresol_heap::collections::{RadixTree, TreeBlocks};

use crate::address::heap_at;
use crate::text::Failure;

/// A list that is being read.
enum Blocks {
    /// Live ones from `next` on; `read` came along and are not yet given.
    OfHeap {
        heap: Heap,
        next: u64,
        read: Vec<u64>,
    },
    OfTree(TreeBlocks),
}

export! {
    /// The live blocks of a heap: those that are live whenever a piece is read. The list's address.
    entresol_blocks_of_heap, Java_io_entresol_heap_engine_Jni_blocksOfHeap(heap) {
        // SAFETY: the caller's promise.
        let heap = unsafe { heap_at(heap) }.clone();
        Ok(give(Blocks::OfHeap { heap, next: 0, read: Vec::new() }))
    }
}

export! {
    /// The blocks of a radix tree, which must not change meanwhile. The list's address.
    entresol_blocks_of_tree, Java_io_entresol_heap_engine_Jni_blocksOfTree(heap, handle) {
        // SAFETY: the caller's promise.
        let tree = RadixTree::open(unsafe { heap_at(heap) }, handle as u64)?;
        Ok(give(Blocks::OfTree(tree.blocks()?)))
    }
}

export! {
    /// Puts the next handles to `out`, `count` at most; how many, 0 at the end.
    entresol_blocks_next, Java_io_entresol_heap_engine_Jni_blocksNext(blocks, out, count) {
        // SAFETY: the caller's promise.
        let blocks = unsafe { &mut *(blocks as *mut Blocks) };
        for index in 0..count as usize {
            let Some(handle) = blocks.next(count as usize)? else { return Ok(index as i64) };
            // SAFETY: the caller's promise: `count` words fit.
            unsafe { (out as *mut u64).add(index).write(handle) };
        }
        Ok(count)
    }
}

export! {
    /// Releases a list.
    entresol_blocks_close, Java_io_entresol_heap_engine_Jni_blocksClose(blocks) {
        // SAFETY: given out by `give`, and used for the last time.
        drop(unsafe { Box::from_raw(blocks as *mut Blocks) });
        Ok(0)
    }
}

impl Blocks {
    fn next(&mut self, most: usize) -> Result<Option<u64>, Failure> {
        match self {
            Blocks::OfTree(tree) => Ok(tree.next_block()?),
            Blocks::OfHeap { heap, next, read } => {
                if read.is_empty() {
                    *read = heap.live_from(*next, most);
                    *next = read.last().map_or(*next, |last| last + 1);
                    read.reverse();
                }
                Ok(read.pop())
            }
        }
    }
}

fn give(blocks: Blocks) -> i64 {
    Box::into_raw(Box::new(blocks)) as i64
}
