//! Changes of ordered tables that become durable together.

use std::sync::Arc;

use entresol_tier::Durability;
use entresol_tree::{Action, Expected, RowCondition, Table, Write};
use pyo3::prelude::*;

use crate::bytes::owned_bytes;
use crate::engine::Engine;
use crate::failed::Failed;
use crate::table::{OrderedTable, Written, write};

/// Changes and conditions that are gathered. For one thread at a time.
#[pyclass(module = "entresol")]
pub(crate) struct Batch {
    engine: Arc<Engine>,
    level: Option<Durability>,
    changes: Vec<Change>,
    conditions: Vec<Expectation>,
}

/// A put, or a remove where there is no value.
#[derive(Debug)]
struct Change {
    table: Arc<Table>,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

/// What a row must be before the batch.
#[derive(Debug)]
struct Expectation {
    table: Arc<Table>,
    key: Vec<u8>,
    row: ExpectedRow,
}

#[derive(Debug)]
enum ExpectedRow {
    Absent,
    Present,
    Value(Vec<u8>),
}

impl Batch {
    pub(crate) fn new(engine: Arc<Engine>, level: Option<Durability>) -> Batch {
        Batch { engine, level, changes: Vec::new(), conditions: Vec::new() }
    }

    fn change(
        &mut self,
        table: &OrderedTable,
        key: &Bound<'_, PyAny>,
        value: Option<Vec<u8>>,
    ) -> PyResult<()> {
        let table = Arc::clone(table.of(&self.engine)?);
        self.changes.push(Change { table, key: owned_bytes(key, "a key")?, value });
        Ok(())
    }

    fn expect(
        &mut self,
        table: &OrderedTable,
        key: &Bound<'_, PyAny>,
        row: ExpectedRow,
    ) -> PyResult<()> {
        let table = Arc::clone(table.of(&self.engine)?);
        self.conditions.push(Expectation { table, key: owned_bytes(key, "a key")?, row });
        Ok(())
    }

    fn written(&self) -> Result<Written, Failed> {
        if self.changes.is_empty() {
            return self.engine.host().map(|_| Written::Whole);
        }
        let changes = self.changes.iter().map(|Change { table, key, value }| Write {
            table,
            key,
            action: value.as_deref().map_or(Action::Remove, Action::Put),
        });
        let conditions = self.conditions.iter().map(|Expectation { table, key, row }| {
            let expected = match row {
                ExpectedRow::Absent => Expected::Absent,
                ExpectedRow::Present => Expected::Present,
                ExpectedRow::Value(value) => Expected::Value(value),
            };
            RowCondition { table, key, expected }
        });
        let (changes, conditions): (Vec<_>, Vec<_>) = (changes.collect(), conditions.collect());
        write(&self.engine, &changes, &conditions, self.level)
    }

    /// Writes what was gathered. Nothing is left of it, unless it fails: it may be tried again.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Written> {
        let written = py.detach(|| self.written())?;
        self.changes.clear();
        self.conditions.clear();
        Ok(written)
    }
}

#[pymethods]
impl Batch {
    /// The row has this value from then on.
    fn put(
        &mut self,
        table: &OrderedTable,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let value = owned_bytes(value, "a value")?;
        self.change(table, key, Some(value))
    }

    /// There is no such row from then on.
    fn remove(&mut self, table: &OrderedTable, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.change(table, key, None)
    }

    /// Condition: there is no such row before the batch.
    fn if_absent(&mut self, table: &OrderedTable, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.expect(table, key, ExpectedRow::Absent)
    }

    /// Condition: there is such a row before the batch.
    fn if_present(&mut self, table: &OrderedTable, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.expect(table, key, ExpectedRow::Present)
    }

    /// Condition: the row has this value before the batch.
    fn if_value(
        &mut self,
        table: &OrderedTable,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let value = owned_bytes(value, "a value")?;
        self.expect(table, key, ExpectedRow::Value(value))
    }

    /// Writes the changes, if all conditions hold; whether they do. The batch is empty then. Where
    /// something is raised it keeps what it has.
    fn write(&mut self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.finish(py)? == Written::Whole)
    }

    fn __len__(&self) -> usize {
        self.changes.len()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Writes the changes, unless something was raised.
    fn __exit__(
        &mut self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _raised: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        if !kind.is_none() {
            return Ok(false);
        }
        match self.finish(py)? {
            Written::Whole => Ok(false),
            Written::Refused(condition) => Err(Failed::refused(format!(
                "{}: condition {condition} of a batch does not hold; nothing was written",
                self.engine.path()
            ))
            .into()),
        }
    }
}
