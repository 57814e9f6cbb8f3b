//! Rows whose parts the reader folds itself, in pages of some bytes; and a merge function that
//! folds many rows at a time.

use entresol_flash::Durability;
use entresol_tree::{
    FoldMany, Folded, FoldedRows, MergeFunction, Order, Outcome, Reading, RowAt, RowBuffer,
    RowForm, RowRange, UnfoldedRow,
};

use crate::open::{Open, Row};
use crate::world::{Append, NOW, World};

/// A page is over once it has so many bytes.
const PAGE_BYTES: usize = 300;

/// As `Append`, many rows at a time, rows without parts among them.
pub(crate) struct Together;

impl FoldMany for Together {
    fn fold_rows(&self, rows: &RowBuffer, folded: &mut FoldedRows) -> Result<(), String> {
        for (key, row) in rows.iter() {
            let row = UnfoldedRow::parse(row).ok_or("no row")?;
            match row.part_count() {
                0 => folded.push(Folded::Base, b""),
                _ => folded.push(Folded::Row, &value_of(key, row)),
            }
        }
        Ok(())
    }
}

impl MergeFunction for Together {
    fn fold(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]], _: &mut Vec<u8>) -> Folded {
        unreachable!("rows are folded together")
    }

    fn folds_all(&self) -> bool {
        true
    }

    fn many(&self) -> Option<&dyn FoldMany> {
        Some(self)
    }
}

fn value_of(key: &[u8], row: UnfoldedRow<'_>) -> Vec<u8> {
    let (mut value, parts) = (Vec::new(), row.parts().collect::<Vec<_>>());
    assert_eq!(parts.len(), row.part_count());
    Append.fold(key, row.base, &parts, &mut value);
    value
}

/// All rows of a table in an order, page by page, folded here.
fn read(open: &mut Open, table: usize, order: Order) -> Vec<Row> {
    let Open { session, tables, .. } = open;
    session.set_reading(Reading { form: RowForm::Unfolded, scan_bytes_max: PAGE_BYTES });
    let (mut low, mut high, mut rows) = (Vec::new(), None, Vec::new());
    loop {
        let mut goes_on = false;
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            let Ok(Outcome::Rows(page)) = outcome else { unreachable!("{outcome:?}") };
            goes_on = page.goes_on();
            let bytes = page.bytes().len();
            let last = page.len().checked_sub(1).map_or(0, |last| {
                let (key, value) = page.row(last);
                8 + key.len() + value.len()
            });
            assert!(bytes < PAGE_BYTES + last + 300, "a page of {bytes} bytes");
            rows.extend(page.iter().map(|(key, row)| {
                let row = UnfoldedRow::parse(row).expect("a row");
                (key.to_vec(), value_of(key, row))
            }));
        };
        let limit = usize::MAX;
        let range =
            RowRange { table: &tables[table], low: &low, high: high.as_deref(), limit, order };
        session.scan(1, NOW, range, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).expect("a poll");
        }
        if !goes_on {
            session.set_reading(Reading::default());
            return rows;
        }
        let (last, _): &Row = rows.last().expect("a page that goes on has rows");
        match order {
            Order::Ascending => low = [&last[..], &[0]].concat(),
            Order::Descending => high = Some(last.clone()),
        }
    }
}

/// One row, folded here.
fn get(open: &mut Open, table: usize, key: &[u8]) -> Option<Vec<u8>> {
    let Open { session, tables, .. } = open;
    let mut found = None;
    let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
        if let Outcome::Found(row) = outcome.expect("a get") {
            found = Some(value_of(key, UnfoldedRow::parse(row).expect("a row")));
        }
    };
    session.set_reading(Reading { form: RowForm::Unfolded, ..Reading::default() });
    session.get(1, NOW, RowAt { table: &tables[table], key }, &mut visit);
    while session.in_flight() > 0 {
        session.poll(1, NOW, &mut visit).expect("a poll");
    }
    session.set_reading(Reading::default());
    found
}

#[test]
fn rows_that_readers_fold_are_the_rows_that_a_map_holds() {
    let mut world = World::new(7);
    world.open().expect("a world");
    for _ in 0..4 {
        for _ in 0..60 {
            world.write(Durability::Memory).expect("a batch");
            world.maintain(2).expect("maintenance");
        }
        let model = world.model(world.history.len());
        let Some(open) = &mut world.open else { unreachable!() };
        for (table, rows) in model.iter().enumerate() {
            let expected: Vec<Row> =
                rows.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            assert!(expected.len() > 20, "{} rows in table {table}", expected.len());
            assert_eq!(read(open, table, Order::Ascending), expected);
            let found = read(open, table, Order::Descending);
            assert_eq!(found.into_iter().rev().collect::<Vec<_>>(), expected);
            for (key, value) in rows.iter().take(30) {
                assert_eq!(get(open, table, key).as_ref(), Some(value));
            }
            assert_eq!(get(open, table, b"nobody's"), None);
        }
    }
}
