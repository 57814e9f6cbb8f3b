//! The maps of a store's segments on flash: how much of each is live, and how old it is.

use maud::{Markup, html};

use crate::figures::Figures;
use crate::words::{Unit, share, shown};

/// Cells of the map; each has several segments of a large store.
pub const CELLS: usize = 480;
const CELLS_IN_A_ROW: usize = 48;
/// Classes of live shares, by their lower ends in percent.
const CLASSES: [(f64, &str); 5] = [
    (90.0, "90 to 100 % live"),
    (70.0, "70 to 90 % live"),
    (40.0, "40 to 70 % live"),
    (10.0, "10 to 40 % live"),
    (0.0, "less than 10 % live"),
];

/// Quarters of the sealed segments by age, and how much the cells of each stand out.
const QUARTERS: [(&str, &str); 4] = [
    ("youngest quarter", "3"),
    ("second quarter", "2"),
    ("third quarter", "1"),
    ("oldest quarter", "0"),
];

/// Neighbouring segments, which one cell of the map shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cell {
    /// How many.
    pub segments: u64,
    /// Those that are free.
    pub free: u64,
    /// Those that are kept for a record that does not verify.
    pub damaged: u64,
    /// Bytes of all records.
    pub used_bytes: u64,
    /// Bytes of live records.
    pub live_bytes: u64,
    /// Those that reclaim could take.
    pub sealed: u64,
    /// How many writes ago the records of sealed ones were put, in the mean, added up over them.
    pub age_writes: u64,
}

/// What the cells of one class have together.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    segments: u64,
    live_bytes: u64,
    sealed: u64,
    age_writes: u64,
}

/// The maps of about [`CELLS`] cells with their numbers; there are none while the store waits for
/// its device. That by age is there if the figures have `segment_ages`.
pub fn segments(figures: Figures<'_>, cells: Option<&[Cell]>) -> Markup {
    html! {
        h2 { "Segments on flash" }
        @match cells {
            Some(cells) => {
                (live_shares(cells))
                @if figures.0.pointer("/segment_ages/0").is_some() { (by_age(cells, figures)) }
            }
            None => p.none { "The store is waiting for its device: no map for now." }
        }
        p.soft {
            (figures.show("/store/segments", Unit::Count)) " segments, "
            (figures.show("/store/segments_free", Unit::Count)) " of them free. "
            (figures.show("/store/flash_allocated_bytes", Unit::Bytes)) " are given to the others, "
            (figures.show("/store/flash_live_bytes", Unit::Bytes)) " are live."
        }
    }
}

fn live_shares(cells: &[Cell]) -> Markup {
    let together = cells.first().map_or(1, |cell| cell.segments);
    html! {
        (drawing(cells, "segments by their live share", &class_name, &described))
        p.soft { @if together > 1 { "Each cell has " (together) " neighbouring segments. " }
            "The more a cell stands out, the more of it is live." }
        (numbers(cells))
    }
}

/// Every cell, with its class and what is said of it.
fn drawing(
    cells: &[Cell],
    what: &str,
    class: &dyn Fn(&Cell) -> String,
    said: &dyn Fn(&Cell) -> String,
) -> Markup {
    let rows = cells.len().div_ceil(CELLS_IN_A_ROW).max(1);
    html! {
        svg.map viewBox={ "0 0 " (CELLS_IN_A_ROW * 10) " " (rows * 10) } role="img"
            aria-label={ (what) "; the table has the numbers" } {
            @for (place, cell) in cells.iter().enumerate() {
                rect class={ "s" (class(cell)) } width="9" height="9"
                    x=(place % CELLS_IN_A_ROW * 10) y=(place / CELLS_IN_A_ROW * 10) {
                    title { (said(cell)) }
                }
            }
        }
    }
}

/// The same cells by age, and the quarters by age in numbers.
fn by_age(cells: &[Cell], figures: Figures<'_>) -> Markup {
    let class = |cell: &Cell| quarter(cell, figures).map_or("f", |of| QUARTERS[of].1);
    html! {
        h3 { "By age" }
        (drawing(
            cells,
            "segments by their age",
            &|cell| class(cell).to_owned(),
            &|cell| format!("age {}", age_of(cell)),
        ))
        p.soft { "The more a cell stands out, the older it is. Free segments, and those that are \
            being written, have no age." }
        div.wide { table {
            thead { tr {
                th { "Sealed segments" } th.n { "How many" } th.n { "Live" } th.n { "Live share" }
                th.n { "Age up to, writes" }
            } }
            tbody { @for (place, (name, mark_class)) in QUARTERS.iter().enumerate() {
                @let at = |key: &str| format!("/segment_ages/{place}/{key}");
                @let bytes = |key: &str| figures.number(&at(key));
                tr {
                    td { (mark(mark_class)) (name) }
                    td.n { (figures.show(&at("segments"), Unit::Count)) }
                    td.n { (figures.show(&at("live_bytes"), Unit::Bytes)) }
                    td.n { (share(bytes("live_bytes"), bytes("used_bytes"))) }
                    td.n { (figures.show(&at("age_writes_max"), Unit::Count)) }
                }
            } }
        } }
    }
}

/// The quarter in which the mean age of a cell's sealed segments lies; `None` if it has none.
fn quarter(cell: &Cell, figures: Figures<'_>) -> Option<usize> {
    let age = cell.age_writes.checked_div(cell.sealed)? as f64;
    let of = |place: usize, key: &str| figures.number(&format!("/segment_ages/{place}/{key}"));
    let holds = |place: &usize| of(*place, "segments") > 0.0 && age <= of(*place, "age_writes_max");
    // A write may have come between the two.
    Some((0..QUARTERS.len()).find(holds).unwrap_or(QUARTERS.len() - 1))
}

fn numbers(cells: &[Cell]) -> Markup {
    let mut sums = [Sum::default(); CLASSES.len()];
    for cell in cells {
        if let Some(class) = class(cell) {
            let sum = &mut sums[class];
            sum.segments += cell.segments.saturating_sub(cell.free);
            sum.live_bytes += cell.live_bytes;
            sum.sealed += cell.sealed;
            sum.age_writes += cell.age_writes;
        }
    }
    let free: u64 = cells.iter().map(|cell| cell.free).sum();
    let damaged: u64 = cells.iter().map(|cell| cell.damaged).sum();
    html! {
        table {
            thead { tr {
                th { "Segments with" } th.n { "How many" } th.n { "Live" } th.n { "Age, writes" }
            } }
            tbody {
                @for (class, ((_, name), sum)) in CLASSES.iter().zip(sums).enumerate() {
                    tr {
                        td { (mark(&class.to_string())) (name) }
                        td.n { (count(sum.segments)) }
                        td.n { (shown(sum.live_bytes as f64, Unit::Bytes)) }
                        td.n { (age(sum.sealed, sum.age_writes)) }
                    }
                }
                tr { td { (mark("f")) "free" } td.n { (count(free)) } td.n { "–" } td.n { "–" } }
                @if damaged > 0 {
                    tr {
                        td { (mark("d")) "kept for a damaged record" }
                        td.n { (count(damaged)) } td.n { "–" } td.n { "–" }
                    }
                }
            }
        }
        p.soft { "The age says how many writes of its shard ago the records of a sealed segment \
            were put, in the mean." }
    }
}

/// The class of a cell by the live share of what is used of it; `None` if all of it is free.
fn class(cell: &Cell) -> Option<usize> {
    if cell.free == cell.segments {
        return None;
    }
    let live = 100.0 * cell.live_bytes as f64 / cell.used_bytes.max(1) as f64;
    CLASSES.iter().position(|(from, _)| live >= *from)
}

fn class_name(cell: &Cell) -> String {
    match class(cell) {
        _ if cell.damaged > 0 => "d".to_owned(),
        None => "f".to_owned(),
        Some(class) => class.to_string(),
    }
}

fn described(cell: &Cell) -> String {
    let live = share(cell.live_bytes as f64, cell.used_bytes as f64);
    let used = cell.segments.saturating_sub(cell.free);
    format!("{used} used, {} free; {live} live; age {}", cell.free, age_of(cell))
}

fn age_of(cell: &Cell) -> String {
    age(cell.sealed, cell.age_writes)
}

fn age(sealed: u64, writes: u64) -> String {
    writes.checked_div(sealed).map_or("–".to_owned(), count)
}

fn count(value: u64) -> String {
    shown(value as f64, Unit::Count)
}

fn mark(class: &str) -> Markup {
    html! { svg.mark viewBox="0 0 10 10" aria-hidden="true" {
        rect class={ "s" (class) } width="10" height="10" {}
    } " " }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cell_is_of_the_quarter_of_its_mean_age() {
        let ages = [(2, 10), (0, 0), (3, 200), (1, 1000)];
        let ages = ages.map(|(segments, age_writes_max)| {
            json!({ "segments": segments, "age_writes_max": age_writes_max })
        });
        let figures = json!({ "segment_ages": ages });
        for (sealed, age_writes, expected) in [
            (0, 0, None),
            (1, 10, Some(0)),
            (2, 21, Some(0)),
            (1, 11, Some(2)),
            (10, 2010, Some(3)),
            (1, 1001, Some(3)),
        ] {
            let cell = Cell { sealed, age_writes, ..Cell::default() };
            assert_eq!(quarter(&cell, Figures(&figures)), expected, "{sealed} {age_writes}");
        }
    }

    #[test]
    fn a_cell_is_of_the_class_of_its_live_share() {
        let cell = |free, live_bytes| Cell {
            segments: 4,
            free,
            live_bytes,
            used_bytes: 1000,
            ..Cell::default()
        };
        for (free, live_bytes, expected) in [
            (4, 0, None),
            (0, 1000, Some(0)),
            (0, 899, Some(1)),
            (3, 400, Some(2)),
            (0, 100, Some(3)),
            (0, 0, Some(4)),
        ] {
            assert_eq!(class(&cell(free, live_bytes)), expected, "{free} {live_bytes}");
        }
        let unused = Cell { segments: 1, ..Cell::default() };
        assert_eq!(class(&unused), Some(4));
    }
}
