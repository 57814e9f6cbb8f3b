//! Readers beside leaves that join.

use std::sync::Arc;

use entresol_flash::{Budget, Durability, Result};
use entresol_sim::CrashChoice;
use entresol_tier::SessionOptions;
use entresol_tree::{Order, Outcome, RowAt, RowRange, Session, Table, Tree};

use crate::history::Rows;
use crate::open::{Open, Row};
use crate::seeds;
use crate::world::{NOW, World};

const ROWS: u64 = 240;
const STEPS: usize = 400;
/// Each row with such a number stays.
const STAYS: u64 = 12;

fn key(number: u64) -> Vec<u8> {
    format!("row {number:05}").into_bytes()
}

/// Puts the first table's row, or removes it.
fn put(world: &mut World, number: u64, value: Option<&[u8]>) {
    let row = (key(number), value.map(<[u8]>::to_vec));
    world.put_all(0, &[row], Durability::Memory).expect("a change");
}

/// A scan of the first table in a session of its own.
struct Scan {
    session: Session,
    order: Order,
    /// The rows as they were when it began, without those that change meanwhile.
    before: Rows,
    found: Option<Vec<Row>>,
}

impl Scan {
    fn begin(tree: &Tree, table: &Arc<Table>, order: Order, before: Rows) -> Scan {
        let session = tree.session(SessionOptions::default()).expect("a session");
        let low = before.keys().next().cloned().unwrap_or_default();
        let mut scan = Scan { session, order, before, found: None };
        let range = RowRange { table, low: &low, high: None, limit: usize::MAX, order };
        scan.session.scan(1, NOW, range, &mut |_, outcome| scan.found = Some(rows_of(outcome)));
        scan
    }

    /// Goes on as far as it comes without waiting.
    fn go_on(&mut self) {
        let Scan { session, found, .. } = self;
        let polled = session.poll(0, NOW, &mut |_, outcome| *found = Some(rows_of(outcome)));
        polled.expect("a poll");
    }

    /// Whether it is over; then it has each row that did not change, once and in order.
    fn is_over(&self) -> bool {
        let Some(found) = &self.found else { return false };
        let mut found = found.clone();
        if self.order == Order::Descending {
            found.reverse();
        }
        assert!(found.is_sorted_by(|a, b| a.0 < b.0), "rows come in order, each once");
        found.retain(|(key, _)| self.before.contains_key(key));
        let expected: Vec<Row> =
            self.before.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(found, expected);
        true
    }
}

fn rows_of(outcome: Result<Outcome<'_>>) -> Vec<Row> {
    match outcome.expect("a scan") {
        Outcome::Rows(rows) => {
            rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
        }
        other => panic!("a scan ended as {other:?}"),
    }
}

/// Changes rows so that stretches of them come and go, and maintains, one step at a time.
struct Tide {
    at: u64,
    rises: bool,
}

impl Tide {
    /// Changes a row; its number.
    fn step(&mut self, world: &mut World) -> u64 {
        self.at += 1 + world.random.below(2);
        if self.at >= ROWS {
            self.at = world.random.below(ROWS / 2);
            self.rises = !self.rises;
        }
        let value = [b'a' + world.random.below(26) as u8; 30];
        let stays = self.at.is_multiple_of(STAYS);
        put(world, self.at, (self.rises || stays).then_some(&value));
        self.at
    }
}

#[test]
fn scans_see_the_rows_of_leaves_that_join_meanwhile() {
    let mut absorbed = 0;
    for seed in seeds(4) {
        eprintln!("ENTRESOL_SEED={seed}");
        let mut world = World::late(seed);
        (world.options.waiting_bytes_max, world.cache_bytes) = (5 << 10, Some(0));
        world.open().expect("a world");
        let mut tide = Tide { at: 0, rises: true };
        for _ in 0..STEPS {
            tide.step(&mut world);
            // All rows of a stretch that stay have new values, which are in no page.
            let from = world.random.below(ROWS / STAYS) * STAYS;
            let value = [b'A' + world.random.below(26) as u8; 8];
            for number in (from..(from + 6 * STAYS).min(ROWS)).step_by(STAYS as usize) {
                put(&mut world, number, Some(&value));
            }
            let lows = [0, 12, 24, 36].map(|more| from + more);
            let order = match world.random.below(3) {
                0 => Order::Descending,
                _ => Order::Ascending,
            };
            let [rows, ..] = world.model(world.history.len());
            let Some(Open { tree, tables, .. }) = &world.open else { unreachable!() };
            let begin =
                |low| Scan::begin(tree, &tables[0], order, rows.clone().split_off(&key(low)));
            let mut scans = lows.map(begin);
            let late = tide.step(&mut world);
            scans.iter_mut().for_each(|scan| drop(scan.before.remove(&key(late))));
            let turns = world.random.below(6) as usize;
            world.maintain(turns).expect("maintenance");
            for mut scan in scans {
                while !scan.is_over() {
                    scan.go_on();
                }
            }
        }
        world.settle_and_close().expect("a world that closes");
        absorbed += world.leaves_absorbed;
    }
    println!("{absorbed} leaves");
    assert!(absorbed > 30, "{absorbed} leaves were absorbed");
}

/// A world after a crash whose inner node does not know the right leaf.
fn with_an_unknown_leaf() -> World {
    let mut world = World::new(1);
    world.options.waiting_bytes_max = 5 << 10;
    world.open().expect("a world");
    (0..8).for_each(|number| put(&mut world, number, Some(&[b'v'; 40])));
    (0..70).for_each(|number| put(&mut world, ROWS + number, Some(&[b'v'; 40])));
    world.settle().expect("pages");
    (8..20).for_each(|number| put(&mut world, number, Some(&[b'v'; 40])));
    let Some(Open { tree, .. }) = &world.open else { unreachable!() };
    let before = tree.statistics();
    // Of another table, which stays small: they ask for merges.
    for number in 0..200 {
        world.put_all(1, &[(key(number), None)], Durability::Memory).expect("a remove");
        world.maintain(1).expect("maintenance");
    }
    let Some(Open { tree, .. }) = &world.open else { unreachable!() };
    let after = tree.statistics();
    assert!(after.leaf_writes > before.leaf_writes + 1, "a leaf was split");
    assert_eq!(after.node_writes, before.node_writes, "no inner node names the new one");
    world.open = None;
    world.device.crash_now();
    let mut after = world.after(world.device.reopened(CrashChoice::KeepAll), 1);
    after.cache_bytes = Some(0);
    after.open().expect("a world after a crash");
    after
}

/// A reader had read the left leaf while its right neighbour was still there, and entered that one
/// once it was absorbed and gone.
#[test]
fn a_leaf_that_was_absorbed_is_not_entered_again() {
    let mut world = with_an_unknown_leaf();
    // Of the right leaf, and of no change that waits.
    let absent = [&key(15)[..], b"x"].concat();
    let Some(Open { tree, tables, .. }) = &world.open else { unreachable!() };
    let mut late = tree.session(SessionOptions::default()).expect("a session");
    let (mut found, row) = (None, RowAt { table: &tables[0], key: &absent });
    let mut visit = |_: u64, outcome: Result<Outcome<'_>>| {
        found = Some(outcome.map(|outcome| matches!(outcome, Outcome::Found(_))));
    };
    late.get(1, NOW, row, &mut visit);
    assert!(late.in_flight() > 0, "the left leaf is read from the device");
    assert_eq!(world.get(0, &absent), Ok(None), "the right leaf is known from now on");
    (5..20).for_each(|number| put(&mut world, number, None));
    let Some(Open { tree, .. }) = &world.open else { unreachable!() };
    tree.settle(NOW).expect("all in pages");
    tree.maintain(NOW, Budget { segments: 1 }).expect("maintenance");
    assert!(tree.statistics().leaves_absorbed > 0, "it was absorbed");
    while late.in_flight() > 0 {
        late.poll(1, NOW, &mut visit).expect("a poll");
    }
    assert!(found.is_some_and(|found| found.is_ok()), "the get ends");
    assert_eq!(world.get(0, &absent), Ok(None));
    put(&mut world, 19, Some(b"back"));
    world.settle_and_close().expect("a world that closes");
    world.open().expect("a world");
    world.check_prefix().expect("all rows");
}
