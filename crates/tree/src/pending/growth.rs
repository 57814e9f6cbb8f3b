//! Inserts into the tree of a table.
//!
//! Each step here leaves a whole tree, and takes all cells that it needs before it changes
//! anything. A step that finds the arena full changes nothing; steps before it may have split
//! nodes, which is of no consequence.

use crate::pending::arena::{Arena, Cell, Full};
use crate::pending::cells;
use crate::pending::draft::Draft;
use crate::pending::node::{self, KEYS_MAX, Node};
use crate::pending::path::{Path, Step};

/// Makes a tree of one entry.
pub(super) fn plant(arena: &mut Arena, entry: Cell) -> Result<Cell, Full> {
    let mut root = Draft::new(0);
    root.insert(arena, 0, entry, Cell::NONE);
    root.place(arena)
}

/// Inserts the entry of a key that the tree does not have; `step` is the last one to its place.
pub(super) fn insert(
    arena: &mut Arena,
    root: &mut Cell,
    step: Step,
    entry: Cell,
) -> Result<(), Full> {
    if insert_in_place(arena, step, entry) {
        return Ok(());
    }
    loop {
        let path = Path::to(arena, *root, cells::key(arena, entry));
        let full = |node| Node::at(arena, node).count == KEYS_MAX;
        if !full(path.last().node) {
            return insert_anew(arena, root, &path, entry);
        }
        let highest = path.steps().iter().position(|step| full(step.node));
        split(arena, root, &path, highest.expect("the leaf is full"), entry)?;
    }
}

/// Inserts an entry if its leaf has room and the prefixes stay as they are.
fn insert_in_place(arena: &mut Arena, step: Step, entry: Cell) -> bool {
    let leaf = Node::at(arena, step.node);
    let key = cells::key(arena, entry);
    let shares = leaf.skip <= step.fence.unwrap_or(0)
        || leaf.count > 0 && node::common(key, leaf.key(0)) >= leaf.skip;
    let fits = shares && leaf.count < leaf.capacity();
    if fits {
        let prefix = node::prefix_of(key, leaf.skip);
        node::insert(arena, step.node, step.index, prefix, entry);
    }
    fits
}

/// Inserts an entry into a leaf with fewer keys than the most, and writes the leaf anew.
fn insert_anew(arena: &mut Arena, root: &mut Cell, path: &Path, entry: Cell) -> Result<(), Full> {
    let step = path.last();
    let mut draft = Draft::of(arena, step.node);
    draft.insert(arena, step.index, entry, Cell::NONE);
    draft.raise_skip(arena, step.fence);
    if draft.count <= Node::at(arena, step.node).capacity() {
        draft.write(arena, step.node);
    } else {
        let larger = draft.place(arena)?;
        arena.free(step.node);
        redirect(arena, root, path, path.steps().len() - 1, larger);
    }
    Ok(())
}

/// Says that a node of the path lies in another cell.
fn redirect(arena: &mut Arena, root: &mut Cell, path: &Path, at: usize, cell: Cell) {
    match at.checked_sub(1).map(|above| path.steps()[above]) {
        None => *root = cell,
        Some(parent) => node::set_child(arena, parent.node, parent.index, cell),
    }
}

/// The cells that a split takes.
struct Split {
    bound: Cell,
    left: Cell,
    right: Cell,
}

/// Splits a node of the path, whose parent has room for another key. A root gets a parent first.
fn split(
    arena: &mut Arena,
    root: &mut Cell,
    path: &Path,
    at: usize,
    entry: Cell,
) -> Result<(), Full> {
    let step = path.steps()[at];
    let Some(above) = at.checked_sub(1) else {
        let mut parent = Draft::new(Node::at(arena, *root).level + 1);
        parent.children[0] = *root;
        *root = parent.place(arena)?;
        return Ok(());
    };
    let parent = path.steps()[above];
    let halves = if Node::at(arena, step.node).level == 0 {
        halve_leaf(arena, step.node, step.index, entry)?
    } else {
        halve_inner(arena, step.node)?
    };
    let mut draft = Draft::of(arena, parent.node);
    draft.children[parent.index] = halves.left;
    draft.insert(arena, parent.index, halves.bound, halves.right);
    draft.raise_skip(arena, parent.fence);
    if draft.count <= Node::at(arena, parent.node).capacity() {
        draft.write(arena, parent.node);
    } else {
        let larger = draft.place(arena).inspect_err(|_| {
            let own_bound = Node::at(arena, step.node).level == 0;
            release(arena, &halves, own_bound);
        })?;
        arena.free(parent.node);
        redirect(arena, root, path, above, larger);
    }
    arena.free(step.node);
    Ok(())
}

fn release(arena: &mut Arena, halves: &Split, own_bound: bool) {
    arena.free(halves.left);
    arena.free(halves.right);
    if own_bound {
        arena.free(halves.bound);
    }
}

/// Splits a leaf in halves, or before the new entry if that is the last one: keys that come in
/// order leave full leaves behind. The bound is the shortest key that tells the halves apart.
fn halve_leaf(arena: &mut Arena, leaf: Cell, index: usize, entry: Cell) -> Result<Split, Full> {
    let mut left = Draft::of(arena, leaf);
    let mut right = Draft::new(0);
    let middle = if index == left.count { index } else { left.count / 2 };
    move_tail(&mut left, &mut right, middle);
    let first = if right.count == 0 { cells::key(arena, entry) } else { right.key(arena, 0) };
    let shortest = node::common(left.key(arena, middle - 1), first) + 1;
    let bound = first[..shortest].to_vec();
    let bound = cells::new_bound(arena, &bound)?;
    place_halves(arena, &left, &right, bound).inspect_err(|_| arena.free(bound))
}

/// Splits a node above the leaves at its middle bound, which goes up.
fn halve_inner(arena: &mut Arena, inner: Cell) -> Result<Split, Full> {
    let mut left = Draft::of(arena, inner);
    let mut right = Draft::new(left.level);
    let middle = left.count / 2;
    let bound = left.cells[middle];
    move_tail(&mut left, &mut right, middle + 1);
    left.count = middle;
    place_halves(arena, &left, &right, bound)
}

/// Moves all keys from the one with a number on, and the children to their right; above the leaves
/// also the child to the left of the first.
fn move_tail(left: &mut Draft, right: &mut Draft, from: usize) {
    right.count = left.count - from;
    right.skip = if right.count == 0 { 0 } else { left.skip };
    right.prefixes[..right.count].copy_from_slice(&left.prefixes[from..left.count]);
    right.cells[..right.count].copy_from_slice(&left.cells[from..left.count]);
    if left.level > 0 {
        right.children[..=right.count].copy_from_slice(&left.children[from..=left.count]);
    }
    left.count = from;
}

fn place_halves(
    arena: &mut Arena,
    left: &Draft,
    right: &Draft,
    bound: Cell,
) -> Result<Split, Full> {
    let left = left.place(arena)?;
    let right = right.place(arena).inspect_err(|_| arena.free(left))?;
    Ok(Split { bound, left, right })
}
