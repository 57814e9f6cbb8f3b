//! Figures of each table by its name.

use entresol_flash::Durability;
use entresol_tree::TableFigures;

use crate::world::World;

/// The figures of the three tables, and what all tables have together.
fn figures(world: &mut World) -> ([TableFigures; 3], [u64; 3]) {
    let tree = &world.opened().tree;
    let all = tree.statistics();
    let tables: [TableFigures; 3] = tree.table_figures().try_into().expect("there are three");
    (tables, [all.changes, all.change_bytes, all.page_bytes])
}

#[test]
fn what_was_written_is_told_by_table_and_is_what_all_of_them_have_together() {
    let mut world = World::new(2);
    // All waits until it is settled.
    world.options.waiting_bytes_max = 1 << 20;
    world.open().unwrap();
    for number in 0..300 {
        let key = format!("key {number:05}");
        world.put(0, key.as_bytes(), &[7; 50], Durability::Memory).unwrap();
        if number % 10 == 0 {
            world.put(2, key.as_bytes(), &[8; 20], Durability::Memory).unwrap();
        }
    }
    let (before, [changes, change_bytes, _]) = figures(&mut world);
    let names: Vec<&[u8]> = before.iter().map(|table| &table.name[..]).collect();
    assert_eq!(names, [&b"first"[..], b"second", b"third"]);
    let counts = [&before[0], &before[1], &before[2]].map(|of| (of.changes, of.change_bytes));
    assert_eq!(counts, [(300, 300 * 59), (0, 0), (30, 30 * 29)]);
    assert_eq!((changes, change_bytes), (330, 300 * 59 + 30 * 29));
    assert_eq!(before[0].waiting_changes, 300);
    assert_eq!(before[0].page_bytes + before[2].page_bytes, 0, "{before:?}");
    world.settle().unwrap();
    let (after, [_, _, page_bytes]) = figures(&mut world);
    for (of, was) in after.iter().zip(&before) {
        assert_eq!((of.waiting_changes, of.changes), (0, was.changes), "{of:?}");
    }
    // All of them but the numbers that were set apart, and that the store was closed cleanly.
    let pages: u64 = after.iter().map(|of| of.page_bytes).sum();
    assert!((page_bytes - 200..=page_bytes).contains(&pages), "{pages} of {page_bytes}");
    assert!(after[0].page_bytes > 300 * 50 && after[2].page_bytes > 30 * 20, "{after:?}");
    assert!(after[0].pages_written > 20 && after[2].pages_written < 9, "{after:?}");
    assert!(after[0].memory_bytes > after[1].memory_bytes, "{after:?}");
    assert!((1.0..3.0).contains(&after[0].write_amplification()), "{after:?}");
    assert_eq!(after[1], TableFigures { memory_bytes: after[1].memory_bytes, ..before[1].clone() });
    assert_eq!(after[1].write_amplification(), 0.0);
    world.settle_and_close().unwrap();
}
