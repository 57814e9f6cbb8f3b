//! Directories by themselves: late readers, joins, splits.

use super::*;

fn child(page: u32) -> Child {
    Child { page, base_bytes: 100, delta_bytes: 0, rows: 1, ..UNKNOWN }
}

fn replacement(leaf: Child, absorbed: Vec<u32>, others: Vec<NewChild>) -> Replacement {
    Replacement { leaf, keys: LeafKeys::Filter(Vec::new()), absorbed, others }
}

fn learnt(child: Child) -> Learnt {
    Learnt { child, filter: Vec::new() }
}

/// The reader of a left leaf was late: its right neighbour was known, and absorbed, meanwhile.
#[test]
fn a_leaf_that_was_absorbed_is_not_entered_again() {
    let mut directory = Directory::default();
    directory.grow(2);
    let made = replacement(child(2), Vec::new(), Vec::new());
    directory.replace(b"a", made, 8192);
    let Place::Leaf(late) = directory.locate(b"p") else { panic!("a leaf") };
    assert!(directory.learn(&late, b"m", 3));
    let Place::Leaf(right) = directory.locate(b"p") else { panic!("a leaf") };
    assert!(directory.teach(&right, &learnt(child(3)), 8192), "both fit in one");
    assert!(directory.ready_groups().is_empty(), "the node's page may name it");
    for _ in 0..2 {
        let pages = directory.pages_to_write(0, Sequence(9));
        assert!(pages.iter().all(|page| directory.set_written(page)));
    }
    assert_eq!(directory.ready_groups(), [b""]);
    let Place::Leaf(right) = directory.locate(b"p") else { panic!("a leaf") };
    let group = directory.group(right, 8192);
    assert_eq!(group.members.len(), 2);
    let made = replacement(child(2), vec![3], Vec::new());
    directory.replace(b"a", made, 8192);
    assert!(!directory.learn(&late, b"m", 3));
    let Place::Leaf(only) = directory.locate(b"p") else { panic!("a leaf") };
    assert_eq!((only.child, only.high), (child(2), None));
}

/// A reader that came between the write of a left leaf and its entry here met the new high key
/// and entered the right neighbour. The merge entered it again, and the page of the node had
/// two equal separators, which no opening took.
#[test]
fn a_leaf_that_a_reader_entered_before_the_merge_is_entered_once() {
    let mut directory = Directory::default();
    directory.grow(2);
    let Place::Leaf(at) = directory.locate(b"a") else { panic!("a leaf") };
    assert!(directory.learn(&at, b"m", 3));
    let others = vec![
        NewChild { separator: b"m".to_vec(), child: child(3), filter: Vec::new() },
        NewChild { separator: b"t".to_vec(), child: child(4), filter: Vec::new() },
    ];
    let made = replacement(child(2), Vec::new(), others);
    directory.replace(b"a", made, 100);
    let pages = directory.pages_to_write(0, Sequence(9));
    let node = Node::from_page(1, &pages[0].bytes, true).expect("a node that can be read");
    let children: Vec<_> = (0..node.count()).map(|index| *node.child(index)).collect();
    assert_eq!(children, [child(2), child(3), child(4)]);
}
