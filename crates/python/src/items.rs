//! Entries of a space one after the other, read a page a call.

use std::collections::VecDeque;
use std::sync::Arc;

use entresol_host::Scan;
use entresol_tier::SpaceId;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::answers::{OwnedEntry, Reply};
use crate::engine::Engine;
use crate::failed::Failed;

/// Entries that are read by one call, about.
const PAGE_ENTRIES: usize = 1000;

/// What a scan gives of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Keys,
    KeysAndValues,
}

/// Entries of a space in no order. For one thread at a time.
#[pyclass(module = "entresol")]
pub(crate) struct Items {
    engine: Arc<Engine>,
    scan: Arc<Scan>,
    shown: Shown,
    page: VecDeque<Arc<OwnedEntry>>,
    goes_on: bool,
    /// What was said of records that do not verify: told once all others were given.
    damage: Option<String>,
}

impl Items {
    pub(crate) fn new(engine: &Arc<Engine>, space: SpaceId, shown: Shown) -> Result<Items, Failed> {
        let scan = engine.host()?.scan(space, None);
        let scan = Arc::new(if shown == Shown::Keys { scan.of_keys() } else { scan });
        let (engine, page) = (Arc::clone(engine), VecDeque::new());
        Ok(Items { engine, scan, shown, page, goes_on: true, damage: None })
    }

    /// Reads pages until one has entries, or there are none.
    fn fill(&mut self) -> Result<(), Failed> {
        while self.page.is_empty() && self.goes_on {
            let replies = self
                .engine
                .job(|host, token| host.next_page(token, &self.scan, PAGE_ENTRIES, 0))?;
            for reply in replies {
                match reply {
                    Reply::Entry(entry) => self.page.push_back(entry),
                    Reply::PageEnd { goes_on, damage } => {
                        self.goes_on = goes_on;
                        self.damage = self.damage.take().or(damage);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Items {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.engine.host()?;
        if self.page.is_empty() {
            py.detach(|| self.fill())?;
        }
        let Some(entry) = self.page.pop_front() else {
            return match self.damage.take() {
                Some(said) => {
                    let sentence = format!("{}: entries of a scan: {said}", self.engine.path());
                    Err(Failed::corrupt(sentence).into())
                }
                None => Ok(None),
            };
        };
        let key = PyBytes::new(py, &entry.key);
        let shown = match self.shown {
            Shown::Keys => key.into_any().unbind(),
            Shown::KeysAndValues => (key, PyBytes::new(py, &entry.value)).into_py_any(py)?,
        };
        Ok(Some(shown))
    }
}
