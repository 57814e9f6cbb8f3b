//! The mark of a table with large rows: whether its pages have others, too.

use entresol_flash::{Result, Timestamp};
use entresol_planted::planted;

use crate::format::{Effect, Marker};
use crate::merge::Change;
use crate::shared::Shared;
use crate::table::{Copied, Table};
use crate::values::marker_key;

/// Says that rows of a table have values of their own, and whether all have, unless that is known.
/// It is durable before a page is written, or named, that has the `changes`; and they leave memory
/// after that.
pub(super) fn write_marker(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
    table: &Table,
    changes: &Copied,
) -> Result<()> {
    let is_small = |change: &Change<'_>| matches!(change.effect, Effect::Put | Effect::Part);
    if !table.has_small_rows() && changes.changes().iter().any(is_small) {
        table.set_has_small_rows();
    }
    if !table.has_values() {
        return Ok(());
    }
    let marker = match table.has_small_rows() && !planted!("small-rows-behind-the-mark") {
        true => Marker::AnyRows,
        false => Marker::LargeRowsOnly,
    };
    if table.marker() == Some(marker) {
        return Ok(());
    }
    shared.write(session, now, &marker_key(table.id()), &marker.encode())?;
    table.set_marker(marker);
    Ok(())
}
