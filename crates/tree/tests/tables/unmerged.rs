//! Parts of a table whose merge function nobody has named: they cannot be merged, and are kept.

use std::sync::Arc;

use entresol_flash::{Budget, Durability, ErrorKind};
use entresol_sim::CrashChoice;
use entresol_tree::{Action, Outcome, Session, Table, Tree, Write, WriteBatch};

use crate::open::Open;
use crate::world::{NOW, World};

const ROW: &[u8] = b"row";
/// Of another table: more than a round of merges takes.
const ROWS: u32 = 1200;

/// Writes one row; how it ended.
fn write(
    session: &mut Session,
    table: &Arc<Table>,
    key: &[u8],
    action: Action<'_>,
) -> Result<(), ErrorKind> {
    let writes = [Write { table, key, action }];
    let mut ended = None;
    // Syncs fill a journal as small as this one; the parts come first, and have one.
    let durability = match action {
        Action::Add(_) => Durability::Synced,
        _ => Durability::Memory,
    };
    let batch = WriteBatch { writes: &writes, durability: Some(durability) };
    let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
        ended = Some(outcome.map(drop).map_err(|error| error.kind()));
    };
    session.write(1, NOW, batch, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).expect("a poll");
    }
    ended.expect("a write that ends")
}

/// Sweeps took the table for merged, and the journal let go of what was in no page.
#[test]
fn parts_without_a_merge_function_outlive_sweeps_and_a_crash() {
    let mut world = World::new(1);
    world.knows_merges = false;
    world.open().expect("a world");
    let Some(Open { session, tables, tree, .. }) = &mut world.open else { unreachable!() };
    for part in [b"a", b"b"] {
        write(session, &tables[0], ROW, Action::Add(part)).expect("a part is written");
    }
    let mut complaints = 0;
    let mut maintain = |tree: &Tree| {
        complaints += u32::from(tree.maintain(NOW, Budget { segments: 1 }).is_err());
    };
    for number in 0..ROWS {
        let key = number.to_be_bytes();
        let put =
            |session: &mut Session| write(session, &tables[1], &key, Action::Put(&[b'v'; 40]));
        // Other tables are merged all the same, so that there is room for more.
        let mut turns = 0;
        while let Err(kind) = put(session) {
            assert!(matches!(kind, ErrorKind::Busy | ErrorKind::Full), "{kind:?}");
            turns += 1;
            assert!(turns < 100, "row {number} finds no room");
            maintain(tree);
        }
    }
    assert!(complaints > 0, "maintenance says what it lacks");
    world.open = None;
    world.device.crash_now();
    let mut after = world.after(world.device.reopened(CrashChoice::KeepAll), 1);
    after.open().expect("a world after a crash");
    assert_eq!(after.get(0, ROW).expect("a get"), Some(b"ab".to_vec()));
    // Once the function is named, the parts are merged and the journal goes on.
    after.settle_and_close().expect("all is merged");
    after.open().expect("a world");
    assert_eq!(after.get(0, ROW).expect("a get"), Some(b"ab".to_vec()));
}
