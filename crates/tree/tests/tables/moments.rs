//! Scans of one moment: a batch is seen whole or not at all, whatever is written and merged
//! meanwhile.

use std::sync::Arc;

use entresol_flash::{Durability, ErrorKind, Result};
use entresol_tier::SessionOptions;
use entresol_tree::{Order, Outcome, RowRange, Session, Table};

use crate::history::{Rows, apply};
use crate::open::{Open, Row};
use crate::seeds;
use crate::world::{NOW, World};

const ROWS: u64 = 90;
const SCANS: usize = 100;

fn key(number: u64) -> Vec<u8> {
    format!("row {number:04}").into_bytes()
}

/// A scan of the first table in a session of its own.
struct Scan {
    session: Session,
    order: Order,
    limit: usize,
    low: Vec<u8>,
    high: Vec<u8>,
    /// Batches before it began.
    before: usize,
    found: Option<std::result::Result<Vec<Row>, ErrorKind>>,
}

impl Scan {
    fn begin(world: &mut World) -> Scan {
        let first = world.random.below(ROWS);
        let last = first + 1 + world.random.below(40);
        let (low, high, before) = (key(first), key(last), world.history.len());
        let limit = if world.random.below(3) == 0 { 10 } else { usize::MAX };
        let order = if world.random.below(2) == 0 { Order::Ascending } else { Order::Descending };
        let Some(Open { tree, tables, .. }) = &world.open else { unreachable!() };
        let session = tree.session(SessionOptions::default()).expect("a session");
        let mut scan = Scan { session, order, limit, low, high, before, found: None };
        scan.submit(&tables[0]);
        scan
    }

    fn submit(&mut self, table: &Arc<Table>) {
        let Scan { session, order, limit, low, high, found, .. } = self;
        let range = RowRange { table, low, high: Some(high), limit: *limit, order: *order };
        session
            .scan_at_one_moment(1, NOW, range, &mut |_, outcome| *found = Some(rows_of(outcome)));
    }

    /// Goes on as far as it comes without waiting.
    fn go_on(&mut self) {
        let Scan { session, found, .. } = self;
        let polled = session.poll(0, NOW, &mut |_, outcome| *found = Some(rows_of(outcome)));
        polled.expect("a poll");
    }

    /// What it shows of these rows.
    fn shows(&self, rows: &Rows) -> Vec<Row> {
        let within = rows.range(self.low.clone()..self.high.clone());
        let mut shown: Vec<Row> = within.map(|(key, value)| (key.clone(), value.clone())).collect();
        if self.order == Order::Descending {
            shown.reverse();
        }
        shown.truncate(self.limit);
        shown
    }

    /// Whether what it found is of one moment since it began.
    fn is_of_one_moment(&self, world: &World, found: &[Row]) -> bool {
        let mut model = world.model(self.before);
        let mut later = world.history[self.before..].iter();
        loop {
            if self.shows(&model[0]) == found {
                return true;
            }
            let Some(batch) = later.next() else { return false };
            apply(&mut model, batch);
        }
    }
}

fn rows_of(outcome: Result<Outcome<'_>>) -> std::result::Result<Vec<Row>, ErrorKind> {
    match outcome.map_err(|error| error.kind())? {
        Outcome::Rows(rows) => {
            Ok(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
        }
        other => panic!("a scan ended as {other:?}"),
    }
}

/// Changes some rows together, which have one value then or are gone, or drops the table.
fn write(world: &mut World) {
    if world.random.below(150) == 0 {
        return world.drop_table(0).expect("a drop");
    }
    let letter = b'a' + world.random.below(26) as u8;
    // Some are records of their own.
    let length = if world.random.below(12) == 0 { 130 } else { 20 };
    let value = (world.random.below(4) > 0).then(|| vec![letter; length]);
    let first = world.random.below(ROWS);
    let mut numbers: Vec<u64> = (0..8).map(|step| (first + step * 5) % ROWS).collect();
    numbers.truncate(2 + world.random.below(7) as usize);
    let rows: Vec<_> = numbers.into_iter().map(|number| (key(number), value.clone())).collect();
    world.put_all(0, &rows, Durability::Memory).expect("a batch");
}

#[test]
fn a_scan_of_one_moment_shows_batches_whole_or_not_at_all() {
    let (mut shown, mut refused) = (0, 0);
    for seed in seeds(4) {
        let mut world = World::late(seed);
        (world.options.waiting_bytes_max, world.cache_bytes) = (6 << 10, Some(0));
        world.open().expect("a world");
        (0..20).for_each(|_| write(&mut world));
        for _ in 0..SCANS {
            if world.random.below(2) == 0 {
                // No page is in a buffer then: leaves are read from the device, one by one.
                world.settle_and_close().expect("a world that closes");
                world.open().expect("a world");
            }
            let mut scan = Scan::begin(&mut world);
            while scan.found.is_none() {
                match world.random.below(8) {
                    0 | 1 => write(&mut world),
                    2 => world.maintain(1).expect("maintenance"),
                    // All of a sudden the leaves have what came since the scan began.
                    3 => {
                        write(&mut world);
                        world.settle().expect("all is merged");
                    }
                    _ => {}
                }
                scan.go_on();
            }
            match scan.found.take() {
                Some(Ok(found)) => {
                    let is_right = scan.is_of_one_moment(&world, &found);
                    assert!(is_right, "{found:?} was never there; ENTRESOL_SEED={seed}");
                    shown += found.len();
                }
                Some(Err(ErrorKind::Busy)) => refused += 1,
                other => panic!("{other:?}; ENTRESOL_SEED={seed}"),
            }
            write(&mut world);
        }
        world.settle_and_close().expect("a world that closes");
    }
    assert!(shown > 300 && refused < 10, "{shown} rows, {refused} scans without an answer");
}

/// Most of what waits is in no page: a view of few changes ends early, and says so.
#[test]
fn a_scan_of_one_moment_ends_where_it_copied_no_more() {
    let mut world = World::new(3);
    (world.options.waiting_bytes_max, world.options.leaf_bytes_max) = (4 << 20, 8 << 10);
    world.open().expect("a world");
    let key = |number: u64| format!("k{number:05}").into_bytes();
    for first in (0..6000).step_by(100) {
        let row = |number| (key(number), Some(vec![b'v'; 4]));
        let rows: Vec<_> = (first..first + 100).map(row).collect();
        world.put_all(0, &rows, Durability::Memory).expect("a batch");
    }
    for order in [Order::Ascending, Order::Descending] {
        let Some(Open { session, tables, .. }) = &mut world.open else { unreachable!() };
        let range = RowRange { table: &tables[0], low: b"k", high: None, limit: usize::MAX, order };
        let mut seen = None;
        let mut visit = |_: u64, outcome: Result<Outcome<'_>>| {
            let Ok(Outcome::Rows(rows)) = outcome else { panic!("a scan ended as {outcome:?}") };
            let first = rows.iter().next().map(|(key, _)| key.to_vec());
            seen = Some((rows.len(), rows.goes_on(), first));
        };
        session.scan_at_one_moment(1, NOW, range, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).expect("a poll");
        }
        let first = if order == Order::Ascending { key(0) } else { key(5999) };
        assert_eq!(seen, Some((4096, true, Some(first))));
    }
}
