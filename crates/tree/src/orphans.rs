//! Values that no row names, since a crash came between them and their batch, or before they were
//! removed. The opening removes them.

use std::sync::Arc;

use entresol_flash::{LogPosition, Operation, Result, Timestamp};
use entresol_planted::planted;

use crate::format::{Reference, ValueName};
use crate::session::value_of;
use crate::shared::Shared;

/// Removes the values that no row names, of those that were put at `position` or later.
pub(crate) fn remove_orphans(
    shared: &Arc<Shared>,
    session: &mut entresol_tier::Session,
    position: &LogPosition,
    now: Timestamp,
) -> Result<()> {
    let mut found: Vec<(Vec<u8>, u64)> = Vec::new();
    shared.store.store().scan_log_since(position, now, &mut |space, entry| {
        if space == shared.options.space && ValueName::parse(entry.key).is_some() {
            found.push((entry.key.to_vec(), entry.version.0));
        }
    })?;
    for (record_key, version) in found {
        let Some(name) = ValueName::parse(&record_key) else { continue };
        if is_named(shared, session, &name, version, now)? || planted!("orphans-kept") {
            continue;
        }
        session.run(now, Operation::Discard { key: shared.key(&record_key) }, &mut |_| {})?;
    }
    Ok(())
}

fn is_named(
    shared: &Arc<Shared>,
    session: &mut entresol_tier::Session,
    name: &ValueName<'_>,
    version: u64,
    now: Timestamp,
) -> Result<bool> {
    let Some(table) = shared.find_table(session, now, name.table, None)? else { return Ok(false) };
    if table.lock().directory.created() != name.created {
        return Ok(false);
    }
    let named = value_of(shared, session, now, &table, name.key)?;
    let is_it = |named: Reference| named.version == version && named.side == name.side;
    Ok(named.is_some_and(is_it))
}
