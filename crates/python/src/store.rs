//! What can be opened: a store, which loses no acknowledged entry, and a cache, which makes room.

use std::sync::Arc;

use entresol_host::now;
use entresol_tier::SpaceId;
use entresol_tree::{RowCounts, TableOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use crate::batch::Batch;
use crate::engine::Engine;
use crate::failed::Failed;
use crate::options;
use crate::space::Space;
use crate::table::OrderedTable;

/// An open store or cache; its own operations are on its space 0.
#[pyclass(subclass, frozen, extends = Space, module = "entresol")]
pub(crate) struct Opened {
    engine: Arc<Engine>,
}

#[pymethods]
impl Opened {
    /// Another table of entries, 0 to 65535. It needs not be made.
    fn space(&self, number: u16) -> PyResult<Space> {
        self.engine.host()?;
        Ok(Space::new(Arc::clone(&self.engine), SpaceId(number)))
    }

    /// All that was acknowledged survives a power loss on return.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.engine.job(|host, token| host.sync(token)))?;
        Ok(())
    }

    /// Figures since the store was opened, each with its unit in its name.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let figures = py.detach(|| Ok(self.engine.host()?.figures()?));
        let figures = figures.map_err(|failed: Failed| self.engine.said(failed))?;
        let all = PyDict::new(py);
        for (name, value) in figures.statistics.figures() {
            all.set_item(name, value)?;
        }
        for (name, value) in figures.tree.iter().flat_map(|tree| tree.figures()) {
            all.set_item(name, value)?;
        }
        all.set_item("write_amplification", figures.statistics.write_amplification())?;
        all.set_item("poisoned", figures.statistics.poisoned)?;
        all.set_item("capacity_bytes", figures.statistics.capacity_bytes)?;
        let oldest = figures.oldest_pending.map_or(0, |pending| pending.age.as_secs());
        all.set_item("oldest_pending_io_seconds", oldest)?;
        Ok(all)
    }

    /// Finishes what was begun, syncs, and makes the next opening fast. Once more does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.engine.close())?)
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.engine.is_closed()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.engine.host()?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _raised: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.close(py)?;
        Ok(false)
    }

    fn __repr__(&self) -> String {
        let state = if self.engine.is_closed() { "closed" } else { "open" };
        format!("<{state} store {}>", self.engine.path())
    }
}

/// A store: it loses no acknowledged entry, within its durability; when full it refuses writes.
#[pyclass(frozen, extends = Opened, module = "entresol")]
pub(crate) struct Store {
    engine: Arc<Engine>,
}

#[pymethods]
impl Store {
    /// Opens the store at a path, or makes it; recovers after a crash.
    #[classmethod]
    #[pyo3(
        signature = (path, **options),
        text_signature = "(path, *, capacity=None, memory=None, durability='process', \
                          ordered_tables=None, **options)"
    )]
    fn open(
        kind: &Bound<'_, PyType>,
        path: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Store>> {
        let engine = opened(kind.py(), path, "store", options)?;
        let store = Store { engine: Arc::clone(&engine) };
        Py::new(kind.py(), layered(engine).add_subclass(store))
    }

    /// The ordered table of a name. It comes into being with its first row.
    #[pyo3(signature = (name, *, counted = false))]
    fn ordered_table(&self, py: Python<'_>, name: &str, counted: bool) -> PyResult<OrderedTable> {
        let engine = &self.engine;
        let table = py.detach(|| {
            engine.with_tables(|session| match counted {
                true => {
                    let options = TableOptions { counts: RowCounts::Kept };
                    session.table_with(now(), name.as_bytes(), options)
                }
                false => session.table(now(), name.as_bytes()),
            })
        })?;
        Ok(OrderedTable::new(Arc::clone(engine), table))
    }

    /// Figures of each ordered table in memory by its name, since it came there.
    fn table_figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = py.detach(|| Ok(self.engine.host()?.table_figures()));
        let tables = tables.map_err(|failed: Failed| self.engine.said(failed))?;
        let all = PyDict::new(py);
        for table in tables {
            let of = PyDict::new(py);
            for (name, value) in table.figures() {
                of.set_item(name, value)?;
            }
            of.set_item("write_amplification", table.write_amplification())?;
            match str::from_utf8(&table.name) {
                Ok(name) => all.set_item(name, of)?,
                // Such a name is another program's.
                Err(_) => all.set_item(PyBytes::new(py, &table.name), of)?,
            }
        }
        Ok(all)
    }

    /// A batch of changes of ordered tables, which become durable together.
    #[pyo3(signature = (*, durability = None))]
    fn batch(&self, durability: Option<&Bound<'_, PyAny>>) -> PyResult<Batch> {
        self.engine.host()?;
        let level = durability.map(options::durability).transpose()?;
        Ok(Batch::new(Arc::clone(&self.engine), level))
    }
}

/// A cache: it may lose any entry at any time to make room, and never returns an older one.
#[pyclass(frozen, extends = Opened, module = "entresol")]
pub(crate) struct Cache;

#[pymethods]
impl Cache {
    /// Opens the cache at a path, or makes it.
    #[classmethod]
    #[pyo3(
        signature = (path, **options),
        text_signature = "(path, *, capacity=None, memory=None, durability='process', **options)"
    )]
    fn open(
        kind: &Bound<'_, PyType>,
        path: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Cache>> {
        let engine = opened(kind.py(), path, "cache", options)?;
        Py::new(kind.py(), layered(engine).add_subclass(Cache))
    }
}

fn opened(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    promise: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Arc<Engine>> {
    let options = options::parse(path, promise, options)?;
    Ok(Arc::new(py.detach(|| Engine::open(&options))?))
}

/// What a store and a cache have both.
fn layered(engine: Arc<Engine>) -> PyClassInitializer<Opened> {
    let space = Space::new(Arc::clone(&engine), SpaceId(0));
    PyClassInitializer::from(space).add_subclass(Opened { engine })
}
