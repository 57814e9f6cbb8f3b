//! Rows of a scan one after the other, read a page a call.

use std::sync::Arc;

use entresol_host::{now, run_on_tables};
use entresol_tree::{Order, Outcome, Reading, RowBuffer, RowForm, RowRange, Session, Table};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::engine::Engine;
use crate::failed::Failed;

/// Rows that are read by the first call. Each one after it reads twice as many, up to the limit:
/// whoever takes a few rows must not wait for a thousand.
const FIRST_PAGE_ROWS: usize = 64;
const PAGE_ROWS_MAX: usize = 4096;
/// Bytes of a page that are aimed at.
const PAGE_BYTES: usize = 256 << 10;

/// Which rows are still to come.
#[derive(Debug)]
pub(crate) struct Between {
    pub(crate) low: Vec<u8>,
    pub(crate) high: Option<Vec<u8>>,
    pub(crate) left: usize,
    pub(crate) order: Order,
}

/// Keys and values of rows in order. For one thread at a time.
#[pyclass(module = "entresol")]
pub(crate) struct Rows {
    engine: Arc<Engine>,
    table: Arc<Table>,
    between: Between,
    page_rows: usize,
    page: RowBuffer,
    /// The row of the page that is next.
    next: usize,
}

impl Rows {
    pub(crate) fn new(engine: Arc<Engine>, table: Arc<Table>, between: Between) -> Rows {
        let (page_rows, page) = (FIRST_PAGE_ROWS, RowBuffer::default());
        Rows { engine, table, between, page_rows, page, next: 0 }
    }

    /// Reads the next page; none is left where it has no rows.
    fn turn(&mut self) -> Result<(), Failed> {
        let Between { low, high, left, order } = &self.between;
        let range = RowRange {
            table: &self.table,
            low,
            high: high.as_deref(),
            limit: self.page_rows.min(*left),
            order: *order,
        };
        let reading = Reading { form: RowForm::Folded, scan_bytes_max: PAGE_BYTES };
        let page = self.engine.with_tables(|session| {
            session.set_reading(reading);
            read(session, range)
        })?;
        self.page_rows = (self.page_rows * 2).min(PAGE_ROWS_MAX);
        self.between.left -= page.len();
        if !page.goes_on() {
            self.between.left = 0;
        }
        if !page.is_empty() {
            let (last, _) = page.row(page.len() - 1);
            match self.between.order {
                // The least key above it has a zero more.
                Order::Ascending => self.between.low = [last, &[0]].concat(),
                Order::Descending => self.between.high = Some(last.to_vec()),
            }
        }
        (self.page, self.next) = (page, 0);
        Ok(())
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.engine.host()?;
        while self.next == self.page.len() {
            if self.between.left == 0 {
                return Ok(None);
            }
            py.detach(|| self.turn())?;
        }
        let (key, value) = self.page.row(self.next);
        self.next += 1;
        let row = [PyBytes::new(py, key), PyBytes::new(py, value)];
        Ok(Some(PyTuple::new(py, row)?))
    }
}

fn read(session: &mut Session, range: RowRange<'_>) -> entresol_tier::Result<RowBuffer> {
    let mut page = Ok(RowBuffer::default());
    run_on_tables(
        session,
        |session, visit| session.scan(0, now(), range, visit),
        &mut |outcome| {
            page = outcome.map(|outcome| match outcome {
                Outcome::Rows(rows) => rows.clone(),
                _ => RowBuffer::default(),
            });
        },
    )?;
    page
}
