//! Removal of merged changes from the tree of a table.
//!
//! Removal never fails. Where it would like a smaller cell, or one for two nodes in one, and the
//! arena is full, the nodes stay as they are.

use crate::pending::arena::{Arena, Cell};
use crate::pending::draft::Draft;
use crate::pending::entry;
use crate::pending::node::{Fence, KEYS_MAX, Node};
use crate::pending::weight::Weight;
use crate::sequence::Sequence;

/// A node with fewer keys joins a neighbour, if both have room for some more keys in one.
const FEW: usize = KEYS_MAX / 4;
const JOINED_MAX: usize = KEYS_MAX * 3 / 4;

/// Which changes go. A bound that a node does not have within its own is `None` there: the node
/// cannot be searched for it.
#[derive(Clone, Copy)]
pub(super) struct Cut<'a> {
    pub(super) low: Option<&'a [u8]>,
    pub(super) high: Option<&'a [u8]>,
    pub(super) through: Sequence,
}

/// Removes changes from a tree, and tells what they were.
pub(super) fn remove(arena: &mut Arena, root: &mut Cell, cut: &Cut<'_>) -> Weight {
    let mut dropped = Weight::default();
    *root = prune(arena, *root, cut, None, &mut dropped).unwrap_or(Cell::NONE);
    while *root != Cell::NONE {
        let node = Node::at(arena, *root);
        if node.level == 0 || node.count > 0 {
            break;
        }
        let only = node.child(0);
        arena.free(*root);
        *root = only;
    }
    dropped
}

/// Removes changes below a node. The answer is where the node lies then, or `None` if it is gone.
fn prune(
    arena: &mut Arena,
    cell: Cell,
    cut: &Cut<'_>,
    fence: Fence,
    dropped: &mut Weight,
) -> Option<Cell> {
    let node = Node::at(arena, cell);
    if node.level == 0 {
        return prune_leaf(arena, cell, cut, fence, dropped);
    }
    let first = cut.low.map_or(0, |low| node.child_of(low, fence));
    let last = match cut.high {
        None => node.count,
        // A bound that equals the high end has only keys beyond it to its right.
        Some(high) => node.search(high, fence).unwrap_or_else(|index| index),
    };
    let mut draft = Draft::of(arena, cell);
    let mut changed = false;
    for child in first..=last {
        let before = draft.children[child];
        let fence = Node::at(arena, cell).fence(child, fence);
        let within = Cut {
            low: cut.low.filter(|_| child == first),
            high: cut.high.filter(|_| child == last),
            ..*cut
        };
        let after = prune(arena, before, &within, fence, dropped);
        draft.children[child] = after.unwrap_or(Cell::NONE);
        changed |= after != Some(before);
    }
    changed |= drop_children(arena, &mut draft);
    if draft.children[0] == Cell::NONE {
        arena.free(cell);
        return None;
    }
    changed |= join_children(arena, &mut draft, first.saturating_sub(1), last + 1);
    Some(if changed { draft.put_back(arena, cell) } else { cell })
}

fn prune_leaf(
    arena: &mut Arena,
    cell: Cell,
    cut: &Cut<'_>,
    fence: Fence,
    dropped: &mut Weight,
) -> Option<Cell> {
    let leaf = Node::at(arena, cell);
    let place = |key| leaf.search(key, fence).unwrap_or_else(|index| index);
    let (first, last) = (cut.low.map_or(0, place), cut.high.map_or(leaf.count, place));
    let mut draft = Draft::of(arena, cell);
    let mut kept = first;
    for index in first..draft.count {
        if index < last {
            let (stays, weight) = entry::trim(arena, draft.cells[index], cut.through);
            dropped.add(weight);
            if stays.is_none() {
                continue;
            }
        }
        draft.prefixes[kept] = draft.prefixes[index];
        draft.cells[kept] = draft.cells[index];
        kept += 1;
    }
    if kept == 0 {
        arena.free(cell);
        return None;
    }
    let changed = draft.count > kept;
    draft.count = kept;
    Some(if changed { draft.put_back(arena, cell) } else { cell })
}

/// Takes the children that are gone out of a node, each with the bound to its left; the first one
/// with the bound to its right.
fn drop_children(arena: &mut Arena, draft: &mut Draft) -> bool {
    let mut kept: Option<usize> = None;
    for child in 0..=draft.count {
        let gone = draft.children[child] == Cell::NONE;
        let bound = child.checked_sub(1);
        let to = kept.map_or(0, |kept| kept + 1);
        if let Some(bound) = bound {
            // The bound to the left of the first child that stays has nothing on its other side.
            if gone || kept.is_none() {
                arena.free(draft.cells[bound]);
            } else {
                draft.prefixes[to - 1] = draft.prefixes[bound];
                draft.cells[to - 1] = draft.cells[bound];
            }
        }
        if !gone {
            draft.children[to] = draft.children[child];
            kept = Some(to);
        }
    }
    let before = draft.count;
    match kept {
        None => draft.children[0] = Cell::NONE,
        Some(kept) => draft.count = kept,
    }
    kept.is_none_or(|kept| kept < before)
}

/// Joins children that have few keys with their right neighbours, among those with such numbers.
fn join_children(arena: &mut Arena, draft: &mut Draft, first: usize, last: usize) -> bool {
    let before = draft.count;
    let mut child = first;
    while child < draft.count && child < last {
        if !join(arena, draft, child) {
            child += 1;
        }
    }
    draft.count < before
}

/// Joins a child with its right neighbour, if one of both has few keys.
fn join(arena: &mut Arena, parent: &mut Draft, child: usize) -> bool {
    let pair = [parent.children[child], parent.children[child + 1]];
    let [left, right] = pair.map(|cell| Node::at(arena, cell).count);
    if left.min(right) >= FEW || left + right >= JOINED_MAX {
        return false;
    }
    let bound = parent.cells[child];
    let mut joined = Draft::of(arena, pair[0]);
    let other = Draft::of(arena, pair[1]);
    if joined.level > 0 {
        joined.cells[joined.count] = bound;
        joined.count += 1;
        joined.children[joined.count..=joined.count + other.count]
            .copy_from_slice(&other.children[..=other.count]);
    }
    joined.cells[joined.count..joined.count + other.count]
        .copy_from_slice(&other.cells[..other.count]);
    joined.count += other.count;
    let skip = if joined.count == 0 { 0 } else { joined.common(arena) };
    joined.make_prefixes(arena, skip.min(joined.skip.max(other.skip)));
    let Ok(cell) = joined.place(arena) else { return false };
    pair.into_iter().for_each(|old| arena.free(old));
    if joined.level == 0 {
        arena.free(bound);
    }
    parent.children[child] = cell;
    parent.cells.copy_within(child + 1..parent.count, child);
    parent.prefixes.copy_within(child + 1..parent.count, child);
    parent.children.copy_within(child + 2..=parent.count, child + 1);
    parent.count -= 1;
    true
}

/// Frees a whole tree.
pub(super) fn clear(arena: &mut Arena, cell: Cell) {
    let node = Draft::of(arena, cell);
    for index in 0..node.count {
        match node.level {
            0 => entry::free(arena, node.cells[index]),
            _ => arena.free(node.cells[index]),
        }
    }
    if node.level > 0 {
        node.children[..=node.count].iter().for_each(|child| clear(arena, *child));
    }
    arena.free(cell);
}
