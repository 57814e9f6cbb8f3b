//! The maps of the segments on flash: how much of each is live, and how old it is.

use entresol_host::FIGURES_WAIT;
use entresol_page::{Figures, Unit, share, shown};
use entresol_tier::{SegmentAge, SegmentGroup, SegmentMap};
use maud::{Markup, html};

use crate::shared::Shared;

/// Cells of the map; each has several segments of a large store.
const CELLS: usize = 480;
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

/// What the cells of one class have together.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    segments: u64,
    live_bytes: u64,
    sealed: u64,
    age_writes: u64,
}

/// The maps with their numbers.
pub(super) fn map(shared: &Shared, figures: Figures<'_>) -> Markup {
    let found = shared.tier.store().segment_map(CELLS, FIGURES_WAIT);
    html! {
        h2 { "Segments on flash" }
        @match &found {
            Some(SegmentMap { groups, ages }) => {
                (live_shares(groups))
                (by_age(groups, ages, figures))
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

fn live_shares(groups: &[SegmentGroup]) -> Markup {
    let together = groups.first().map_or(1, |group| group.segments);
    html! {
        (drawing(groups, "segments by their live share", &class_name, &described))
        p.soft { @if together > 1 { "Each cell has " (together) " neighbouring segments. " }
            "The more a cell stands out, the more of it is live." }
        (numbers(groups))
    }
}

/// A cell for each group, with its class and what is said of it.
fn drawing(
    groups: &[SegmentGroup],
    what: &str,
    class: &dyn Fn(&SegmentGroup) -> String,
    said: &dyn Fn(&SegmentGroup) -> String,
) -> Markup {
    let rows = groups.len().div_ceil(CELLS_IN_A_ROW).max(1);
    html! {
        svg.map viewBox={ "0 0 " (CELLS_IN_A_ROW * 10) " " (rows * 10) } role="img"
            aria-label={ (what) "; the table has the numbers" } {
            @for (place, group) in groups.iter().enumerate() {
                rect class={ "s" (class(group)) } width="9" height="9"
                    x=(place % CELLS_IN_A_ROW * 10) y=(place / CELLS_IN_A_ROW * 10) {
                    title { (said(group)) }
                }
            }
        }
    }
}

/// The same cells by age, and the quarters by age in numbers.
fn by_age(groups: &[SegmentGroup], ages: &[SegmentAge; 4], figures: Figures<'_>) -> Markup {
    let class = |group: &SegmentGroup| quarter(group, ages).map_or("f", |of| QUARTERS[of].1);
    html! {
        h3 { "By age" }
        (drawing(
            groups,
            "segments by their age",
            &|group| class(group).to_owned(),
            &|group| format!("age {}", age_of(group)),
        ))
        p.soft { "The more a cell stands out, the older it is. Free segments, and those that are \
            being written, have no age." }
        table {
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
        }
    }
}

/// The quarter in which the mean age of a group's sealed segments lies; `None` if it has none.
fn quarter(group: &SegmentGroup, ages: &[SegmentAge; 4]) -> Option<usize> {
    let age = group.age_writes.checked_div(group.sealed)?;
    let holds = |quarter: &SegmentAge| quarter.segments > 0 && age <= quarter.age_writes_max;
    // A write may have come between the two.
    Some(ages.iter().position(holds).unwrap_or(ages.len() - 1))
}

fn numbers(groups: &[SegmentGroup]) -> Markup {
    let mut sums = [Sum::default(); CLASSES.len()];
    for group in groups {
        if let Some(class) = class(group) {
            let sum = &mut sums[class];
            sum.segments += group.segments - group.free;
            sum.live_bytes += group.live_bytes;
            sum.sealed += group.sealed;
            sum.age_writes += group.age_writes;
        }
    }
    let free: u64 = groups.iter().map(|group| group.free).sum();
    let damaged: u64 = groups.iter().map(|group| group.damaged).sum();
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

/// The class of a group by the live share of what is used of it; `None` if all of it is free.
fn class(group: &SegmentGroup) -> Option<usize> {
    if group.free == group.segments {
        return None;
    }
    let live = 100.0 * group.live_bytes as f64 / group.used_bytes.max(1) as f64;
    CLASSES.iter().position(|(from, _)| live >= *from)
}

fn class_name(group: &SegmentGroup) -> String {
    match class(group) {
        _ if group.damaged > 0 => "d".to_owned(),
        None => "f".to_owned(),
        Some(class) => class.to_string(),
    }
}

fn described(group: &SegmentGroup) -> String {
    let live = share(group.live_bytes as f64, group.used_bytes as f64);
    let used = group.segments - group.free;
    format!("{used} used, {} free; {live} live; age {}", group.free, age_of(group))
}

fn age_of(group: &SegmentGroup) -> String {
    age(group.sealed, group.age_writes)
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
    use super::*;

    #[test]
    fn a_group_is_of_the_quarter_of_its_mean_age() {
        let of = |segments, age_writes_max| SegmentAge {
            segments,
            age_writes_max,
            ..SegmentAge::default()
        };
        let ages = [of(2, 10), of(0, 0), of(3, 200), of(1, 1000)];
        for (sealed, age_writes, expected) in [
            (0, 0, None),
            (1, 10, Some(0)),
            (2, 21, Some(0)),
            (1, 11, Some(2)),
            (10, 2010, Some(3)),
            (1, 1001, Some(3)),
        ] {
            let group = SegmentGroup { sealed, age_writes, ..SegmentGroup::default() };
            assert_eq!(quarter(&group, &ages), expected, "{sealed} {age_writes}");
        }
    }

    #[test]
    fn a_group_is_of_the_class_of_its_live_share() {
        let group = |free, live_bytes| SegmentGroup {
            segments: 4,
            free,
            live_bytes,
            used_bytes: 1000,
            ..SegmentGroup::default()
        };
        for (free, live_bytes, expected) in [
            (4, 0, None),
            (0, 1000, Some(0)),
            (0, 899, Some(1)),
            (3, 400, Some(2)),
            (0, 100, Some(3)),
            (0, 0, Some(4)),
        ] {
            assert_eq!(class(&group(free, live_bytes)), expected, "{free} {live_bytes}");
        }
        let unused = SegmentGroup { segments: 1, ..SegmentGroup::default() };
        assert_eq!(class(&unused), Some(4));
    }
}
