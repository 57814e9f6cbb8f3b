//! Rows in the order of their keys, under a name.

use std::sync::Arc;

use entresol_host::{now, run_on_tables};
use entresol_tier::Durability;
use entresol_tree::{
    Action, ConditionalBatch, CountRange, Order, Outcome, Reading, RowAt, RowCondition, Session,
    Table, Write, WriteBatch,
};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::bytes::{bytes_of, owned_bytes, pairs_of};
use crate::engine::Engine;
use crate::failed::Failed;
use crate::options;
use crate::rows::{Between, Rows};

/// Most gets that are under way at a time.
const GETS_MAX: usize = 256;
/// Rows that are written with one record of the journal, and their bytes: a quarter of the smallest
/// segment, so that a group has room in every store.
const GROUP_ROWS_MAX: usize = 256;
const GROUP_BYTES_MAX: usize = 16 << 10;
const ROW_BYTES: usize = 24;

/// An ordered table of a store.
#[pyclass(frozen, module = "entresol")]
pub(crate) struct OrderedTable {
    engine: Arc<Engine>,
    table: Arc<Table>,
}

/// How a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Whole,
    /// The number of a condition that does not hold.
    Refused(usize),
}

#[pymethods]
impl OrderedTable {
    /// The table's name.
    #[getter]
    fn name(&self) -> String {
        String::from_utf8_lossy(self.table.name()).into_owned()
    }

    /// Whether the table keeps counts.
    #[getter]
    fn counted(&self) -> bool {
        self.table.keeps_counts()
    }

    /// The value of a row, or `default`.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.find(py, key)?;
        Ok(found.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }

    /// The values of several rows, None where there is none; read side by side.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys: PyResult<Vec<Vec<u8>>> =
            keys.try_iter()?.map(|key| owned_bytes(&key?, "a key")).collect();
        let keys = keys?;
        let values = py.detach(|| self.engine.with_tables(|session| self.read(session, &keys)))?;
        let values = values.iter().map(|value| value.as_ref().map(|value| PyBytes::new(py, value)));
        PyList::new(py, values.collect::<Vec<_>>())
    }

    /// Puts a row.
    #[pyo3(signature = (key, value, *, durability = None))]
    fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        durability: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let level = durability.map(options::durability).transpose()?;
        let (key, value) = (bytes_of(key, "a key")?, bytes_of(value, "a value")?);
        self.change(py, &key, Action::Put(&value), level)
    }

    /// Puts the rows of a mapping, or of pairs; each on its own, and not all or none.
    #[pyo3(signature = (pairs, *, durability = None))]
    fn put_many(
        &self,
        py: Python<'_>,
        pairs: &Bound<'_, PyAny>,
        durability: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let level = durability.map(options::durability).transpose()?;
        let mut rows = 0;
        let mut group = Group::default();
        for pair in pairs_of(pairs)? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            let (key, value) = (owned_bytes(&key, "a key")?, owned_bytes(&value, "a value")?);
            if !group.has_room(&key, &value) {
                py.detach(|| self.put_group(&group, level))?;
                group = Group::default();
            }
            group.push(key, value);
            rows += 1;
        }
        py.detach(|| self.put_group(&group, level))?;
        Ok(rows)
    }

    /// Removes a row, if it is there.
    #[pyo3(signature = (key, *, durability = None))]
    fn remove(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        durability: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let level = durability.map(options::durability).transpose()?;
        self.change(py, &bytes_of(key, "a key")?, Action::Remove, level)
    }

    /// Rows from `low` on and below `high`, in the order of their keys or against it.
    #[pyo3(signature = (low = None, high = None, *, reverse = false, limit = None))]
    fn scan(
        &self,
        low: Option<&Bound<'_, PyAny>>,
        high: Option<&Bound<'_, PyAny>>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Rows> {
        self.engine.host()?;
        let low = low.map(|low| owned_bytes(low, "`low`")).transpose()?.unwrap_or_default();
        let high = high.map(|high| owned_bytes(high, "`high`")).transpose()?;
        let order = if reverse { Order::Descending } else { Order::Ascending };
        let between = Between { low, high, left: limit.unwrap_or(usize::MAX), order };
        Ok(Rows::new(Arc::clone(&self.engine), Arc::clone(&self.table), between))
    }

    /// How many rows a counted table has from `low` on and below `high`.
    #[pyo3(signature = (low = None, high = None))]
    fn count(
        &self,
        py: Python<'_>,
        low: Option<&Bound<'_, PyAny>>,
        high: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let low = low.map(|low| owned_bytes(low, "`low`")).transpose()?.unwrap_or_default();
        let high = high.map(|high| owned_bytes(high, "`high`")).transpose()?;
        let counted = py.detach(|| {
            self.engine.with_tables(|session| {
                let range = CountRange { table: &self.table, low: &low, high: high.as_deref() };
                let mut counted = Ok(0);
                run_on_tables(
                    session,
                    |session, visit| session.count(0, now(), range, visit),
                    &mut |outcome| {
                        counted = outcome.map(|outcome| match outcome {
                            Outcome::Count(rows) => rows,
                            _ => 0,
                        });
                    },
                )?;
                counted
            })
        })?;
        Ok(counted)
    }

    /// Removes all rows.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            self.engine.change_tables(|session| {
                let mut ended = Ok(());
                run_on_tables(
                    session,
                    |session, visit| session.drop_table(0, now(), &self.table, visit),
                    &mut |outcome| ended = outcome.map(drop),
                )?;
                ended
            })
        })?;
        Ok(())
    }

    fn __iter__(&self) -> PyResult<Rows> {
        self.scan(None, None, false, None)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.find(py, key)?.is_some())
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let found = self.find(py, key)?;
        let found = found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))?;
        Ok(PyBytes::new(py, &found))
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.remove(py, key, None)
    }

    fn __repr__(&self) -> String {
        format!("<ordered table '{}' of {}>", self.name(), self.engine.path())
    }
}

impl OrderedTable {
    pub(crate) fn new(engine: Arc<Engine>, table: Arc<Table>) -> OrderedTable {
        OrderedTable { engine, table }
    }

    /// The table, if it is one of that store.
    pub(crate) fn of(&self, engine: &Arc<Engine>) -> Result<&Arc<Table>, Failed> {
        if Arc::ptr_eq(&self.engine, engine) {
            return Ok(&self.table);
        }
        let (expected, found) = (engine.path(), self.engine.path());
        let sentence =
            format!("a batch of {expected}: expected a table of its store, found one of {found}");
        Err(Failed::invalid(sentence))
    }

    fn find(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
        let key = [owned_bytes(key, "a key")?];
        let mut found =
            py.detach(|| self.engine.with_tables(|session| self.read(session, &key)))?;
        Ok(found.pop().flatten())
    }

    /// The values of rows, side by side.
    fn read(
        &self,
        session: &mut Session,
        keys: &[Vec<u8>],
    ) -> entresol_tier::Result<Vec<Option<Vec<u8>>>> {
        session.set_reading(Reading::default());
        let mut values = vec![None; keys.len()];
        let mut ended = Ok(());
        let mut visit = |token: u64, outcome: entresol_tier::Result<Outcome<'_>>| match outcome {
            Ok(Outcome::Found(value)) => values[token as usize] = Some(value.to_vec()),
            Ok(_) => {}
            Err(error) => ended = Err(error),
        };
        for (index, key) in keys.iter().enumerate() {
            while session.in_flight() >= GETS_MAX {
                session.poll(1, now(), &mut visit)?;
            }
            session.get(index as u64, now(), RowAt { table: &self.table, key }, &mut visit);
        }
        while session.in_flight() > 0 {
            session.poll(1, now(), &mut visit)?;
        }
        ended.map(|()| values)
    }

    fn change(
        &self,
        py: Python<'_>,
        key: &[u8],
        action: Action<'_>,
        level: Option<Durability>,
    ) -> PyResult<()> {
        let writes = [Write { table: &self.table, key, action }];
        py.detach(|| write(&self.engine, &writes, &[], level))?;
        Ok(())
    }

    fn put_group(&self, group: &Group, level: Option<Durability>) -> Result<(), Failed> {
        let writes: Vec<Write<'_>> = group
            .rows
            .iter()
            .map(|(key, value)| Write { table: &self.table, key, action: Action::Put(value) })
            .collect();
        if writes.is_empty() {
            return self.engine.host().map(drop);
        }
        write(&self.engine, &writes, &[], level).map(drop)
    }
}

/// Rows of a call that are written together, for speed alone.
#[derive(Debug, Default)]
struct Group {
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

impl Group {
    fn has_room(&self, key: &[u8], value: &[u8]) -> bool {
        let bytes = self.bytes + key.len() + value.len() + ROW_BYTES;
        self.rows.is_empty() || (bytes <= GROUP_BYTES_MAX && self.rows.len() < GROUP_ROWS_MAX)
    }

    fn push(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += key.len() + value.len() + ROW_BYTES;
        self.rows.push((key, value));
    }
}

/// Writes changes, all or none, if all conditions hold.
pub(crate) fn write(
    engine: &Engine,
    writes: &[Write<'_>],
    conditions: &[RowCondition<'_>],
    durability: Option<Durability>,
) -> Result<Written, Failed> {
    engine.change_tables(|session| {
        let mut ended = Ok(Written::Whole);
        let batch = WriteBatch { writes, durability };
        run_on_tables(
            session,
            |session, visit| match conditions {
                [] => session.write(0, now(), batch, visit),
                conditions => {
                    let conditional = ConditionalBatch { conditions, batch };
                    session.write_if(0, now(), conditional, visit);
                }
            },
            &mut |outcome| {
                ended = outcome.map(|outcome| match outcome {
                    Outcome::Refused { condition, .. } => Written::Refused(condition),
                    _ => Written::Whole,
                });
            },
        )?;
        ended
    })
}
