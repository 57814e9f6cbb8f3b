//! Tables of an open store: calls that wait for their answers.

use std::sync::Arc;

use entresol_flash::{Durability, ErrorKind};
use entresol_tier::Tiered;
use entresol_tree::format::ValueName;
use entresol_tree::{
    Action, CheckedTables, ConditionalBatch, Order, Outcome, RowAt, RowCondition, RowRange,
    Session, Table, Told, Tree, TreeOptions, Write, WriteBatch, check_tables,
};

use crate::history::{Change, Ended, Owned, Wanted};
use crate::world::NOW;

/// A row: its key and its value.
pub(crate) type Row = (Vec<u8>, Vec<u8>);

/// What a scan asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub low: &'a [u8],
    pub high: Option<&'a [u8]>,
    pub limit: usize,
    pub order: Order,
}

/// A store, its tables, and a session.
pub(crate) struct Open {
    pub tiered: Arc<Tiered>,
    pub tree: Tree,
    pub session: Session,
    pub tables: Vec<Arc<Table>>,
}

impl Open {
    /// The value of a row.
    pub(crate) fn get(&mut self, table: usize, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let Open { session, tables, .. } = self;
        let mut found = Err("a get was not visited".to_string());
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            found = match outcome {
                Ok(Outcome::Found(value)) => Ok(Some(value.to_vec())),
                Ok(Outcome::Missing) => Ok(None),
                Ok(other) => Err(format!("a get ended as {other:?}")),
                Err(error) => Err(error.to_string()),
            };
        };
        session.get(1, NOW, RowAt { table: &tables[table], key }, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).map_err(|error| error.to_string())?;
        }
        found
    }

    /// Rows between bounds.
    pub(crate) fn scan(&mut self, table: usize, bounds: Bounds<'_>) -> Result<Vec<Row>, String> {
        let Open { session, tables, .. } = self;
        let mut found = Err("a scan was not visited".to_string());
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            found = match outcome {
                Ok(Outcome::Rows(rows)) => {
                    Ok(rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
                }
                Ok(other) => Err(format!("a scan ended as {other:?}")),
                Err(error) => Err(error.to_string()),
            };
        };
        let Bounds { low, high, limit, order } = bounds;
        let range = RowRange { table: &tables[table], low, high, limit, order };
        session.scan(1, NOW, range, &mut visit);
        while session.in_flight() > 0 {
            session.poll(1, NOW, &mut visit).map_err(|error| error.to_string())?;
        }
        found
    }

    /// Writes a batch, with conditions or without. An error is given with its kind.
    pub(crate) fn try_write(
        &mut self,
        batch: &[Change],
        wanted: &[Wanted],
        durability: Durability,
    ) -> Result<Ended, (ErrorKind, String)> {
        let Open { session, tables, .. } = self;
        let writes: Vec<Write<'_>> = batch
            .iter()
            .map(|change| {
                let action = match &change.action {
                    Owned::Put(value) => Action::Put(value),
                    Owned::Remove => Action::Remove,
                    Owned::Drop => unreachable!("a batch of rows"),
                    Owned::Add(part) => Action::Add(part),
                };
                Write { table: &tables[change.table], key: &change.key, action }
            })
            .collect();
        let mut ended = None;
        let mut visit = |_: u64, outcome: entresol_flash::Result<Outcome<'_>>| {
            ended = Some(match outcome {
                Ok(Outcome::Refused { condition, found }) => {
                    Ok(Ended::Refused(condition, found.map(<[u8]>::to_vec)))
                }
                Ok(_) => Ok(Ended::Done),
                Err(error) => Err((error.kind(), error.to_string())),
            });
        };
        let batch = WriteBatch { writes: &writes, durability: Some(durability) };
        if wanted.is_empty() {
            session.write(1, NOW, batch, &mut visit);
        } else {
            let conditions: Vec<RowCondition<'_>> = wanted
                .iter()
                .map(|wanted| RowCondition {
                    table: &tables[wanted.table],
                    key: &wanted.key,
                    expected: wanted.expected(),
                })
                .collect();
            let conditional = ConditionalBatch { conditions: &conditions, batch };
            session.write_if(1, NOW, conditional, &mut visit);
        }
        while session.in_flight() > 0 {
            let polled = session.poll(1, NOW, &mut visit);
            polled.map_err(|error| (error.kind(), error.to_string()))?;
        }
        ended.unwrap_or_else(|| Err((ErrorKind::Io, "a batch was not visited".to_string())))
    }

    /// Checks all pages. What was found; an error names what is damaged.
    pub(crate) fn check_pages(&self) -> Result<CheckedTables, String> {
        let Open { tiered, .. } = self;
        let mut damage = Vec::new();
        let found = check_tables(tiered, &TreeOptions::default(), NOW, &mut |told| {
            if let Told::Damage(found) = told {
                damage.push(found.to_string());
            }
        });
        let found = found.map_err(|error| error.to_string())?;
        if damage.is_empty() { Ok(found) } else { Err(damage.join("\n")) }
    }

    /// Table, key and value of each value that is a record of its own.
    pub(crate) fn value_records(&self) -> Result<Vec<(u64, Row)>, String> {
        let Open { tiered, .. } = self;
        let mut found = Vec::new();
        let scanned = tiered.store().scan_log(NOW, &mut |_, entry| {
            if let Some(name) = ValueName::parse(entry.key) {
                found.push((name.table, (name.key.to_vec(), entry.value.to_vec())));
            }
        });
        scanned.map(|_| found).map_err(|error| error.to_string())
    }
}
