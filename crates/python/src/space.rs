//! A table of entries in a store, found by their keys.

use std::collections::VecDeque;
use std::sync::Arc;

use entresol_host::Waiter;
use entresol_tier::{Condition, Key, Operation, PutOptions, SpaceId, Version};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::answers::{OwnedEntry, Reply};
use crate::bytes::{bytes_of, owned_bytes, pairs_of};
use crate::engine::{Begun, Engine};
use crate::failed::Failed;
use crate::items::{Items, Shown};
use crate::put;

/// Operations of one call that are under way at a time.
const UNDER_WAY_MAX: usize = 64;
/// Pairs that `put_many` takes before it puts them.
const PAIRS_MAX: usize = 1024;

/// A table of entries in a store.
#[pyclass(subclass, frozen, module = "entresol")]
pub(crate) struct Space {
    engine: Arc<Engine>,
    space: SpaceId,
}

/// An entry with what belongs to it.
#[pyclass(frozen, get_all, module = "entresol")]
pub(crate) struct Entry {
    value: Py<PyBytes>,
    version: u64,
    /// Seconds since 1970, or None.
    expires: Option<f64>,
}

#[pymethods]
impl Space {
    /// The value of a key, or `default`.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.find(py, key)?;
        Ok(found.map(|entry| PyBytes::new(py, &entry.value).into_any()).or(default))
    }

    /// The value of a key with its version and end, or None.
    fn entry(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Entry>> {
        Ok(self.find(py, key)?.map(|entry| Entry {
            value: PyBytes::new(py, &entry.value).unbind(),
            version: entry.version,
            expires: entry.expires_ms.map(|at| at as f64 / 1000.0),
        }))
    }

    /// The values of several keys, None where there is none; read side by side.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys: PyResult<Vec<Vec<u8>>> =
            keys.try_iter()?.map(|key| owned_bytes(&key?, "a key")).collect();
        let keys = keys?;
        let replies =
            py.detach(|| self.all(keys.iter().map(|key| Operation::Get { key: self.key(key) })))?;
        let values = replies.iter().map(|reply| match reply {
            Reply::Entry(entry) => Some(PyBytes::new(py, &entry.value)),
            _ => None,
        });
        PyList::new(py, values.collect::<Vec<_>>())
    }

    /// Puts an entry; its version, or None where the condition does not hold.
    #[pyo3(
        signature = (key, value, **options),
        text_signature = "($self, key, value, *, ttl=None, idle=None, if_absent=False, \
                          if_present=False, if_version=None, durability=None)"
    )]
    fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<u64>> {
        let options = put::parse(options)?;
        let (key, value) = (bytes_of(key, "a key")?, bytes_of(value, "a value")?);
        let (key, value) = (&*key, &*value);
        let put = Operation::Put { key: self.key(key), value, options };
        Ok(match py.detach(|| self.engine.ask(put))? {
            Reply::Stored(version) => Some(version),
            _ => None,
        })
    }

    /// Puts the entries of a mapping, or of pairs, side by side; how many were put.
    #[pyo3(
        signature = (pairs, **options),
        text_signature = "($self, pairs, *, ttl=None, idle=None, if_absent=False, \
                          if_present=False, durability=None)"
    )]
    fn put_many(
        &self,
        py: Python<'_>,
        pairs: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        let options = put::parse(options)?;
        let (mut gathered, mut stored) = (Vec::new(), 0);
        for pair in pairs_of(pairs)? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            gathered.push((owned_bytes(&key, "a key")?, owned_bytes(&value, "a value")?));
            if gathered.len() == PAIRS_MAX {
                stored += py.detach(|| self.put_pairs(&gathered, options))?;
                gathered.clear();
            }
        }
        Ok(stored + py.detach(|| self.put_pairs(&gathered, options))?)
    }

    /// Removes an entry; whether it was there, and of that version if one is given.
    #[pyo3(signature = (key, *, if_version = None))]
    fn remove(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        if_version: Option<u64>,
    ) -> PyResult<bool> {
        let key = bytes_of(key, "a key")?;
        let key = &*key;
        let version = if_version.map(Version);
        let condition = version.map_or(Condition::Always, Condition::Version);
        let remove = Operation::Remove { key: self.key(key), condition };
        Ok(matches!(py.detach(|| self.engine.ask(remove))?, Reply::Done))
    }

    /// Gives an entry another end, or none; whether there is such an entry.
    #[pyo3(signature = (key, *, ttl = None, idle = None))]
    fn touch(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        idle: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let expiry = put::expiry(ttl, idle)?;
        let key = bytes_of(key, "a key")?;
        let key = &*key;
        let condition = Condition::Always;
        let touch = Operation::Touch { key: self.key(key), expiry, condition };
        Ok(matches!(py.detach(|| self.engine.ask(touch))?, Reply::Stored(_)))
    }

    /// How many entries there are, expired ones that nobody has found yet included. Reads nothing.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        let counted = py.detach(|| Ok(self.engine.host()?.count(self.space, None)?));
        Ok(counted.map_err(|failed: Failed| self.engine.said(failed))?)
    }

    /// Removes all entries.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let space = self.space;
        py.detach(|| self.engine.job(|host, token| host.drop_entries(token, space, None)))?;
        Ok(())
    }

    /// Keys and values in no order, a thousand a call.
    fn items(&self) -> PyResult<Items> {
        Ok(Items::new(&self.engine, self.space, Shown::KeysAndValues)?)
    }

    /// Keys in no order.
    fn keys(&self) -> PyResult<Items> {
        Ok(Items::new(&self.engine, self.space, Shown::Keys)?)
    }

    fn __iter__(&self) -> PyResult<Items> {
        self.keys()
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
        Ok(PyBytes::new(py, &found.value))
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.put(py, key, value, None).map(drop)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.remove(py, key, None)? {
            true => Ok(()),
            false => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    fn __repr__(&self) -> String {
        format!("<space {} of {}>", self.space.0, self.engine.path())
    }
}

impl Space {
    pub(crate) fn new(engine: Arc<Engine>, space: SpaceId) -> Space {
        Space { engine, space }
    }

    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key::new(self.space, bytes)
    }

    fn find(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Arc<OwnedEntry>>> {
        let key = bytes_of(key, "a key")?;
        let key = &*key;
        let get = Operation::Get { key: self.key(key) };
        Ok(match py.detach(|| self.engine.ask(get))? {
            Reply::Entry(entry) => Some(entry),
            _ => None,
        })
    }

    fn put_pairs(&self, pairs: &[(Vec<u8>, Vec<u8>)], options: PutOptions) -> Result<u64, Failed> {
        let puts =
            pairs.iter().map(|(key, value)| Operation::Put { key: self.key(key), value, options });
        let replies = self.all(puts)?;
        Ok(replies.iter().filter(|reply| matches!(reply, Reply::Stored(_))).count() as u64)
    }

    /// Does operations side by side; their answers in their order.
    fn all<'o>(
        &self,
        operations: impl Iterator<Item = Operation<'o>>,
    ) -> Result<Vec<Reply>, Failed> {
        let mut under_way: VecDeque<Begun<'_>> = VecDeque::new();
        let mut replies = Vec::new();
        for operation in operations {
            if under_way.len() == UNDER_WAY_MAX
                && let Some(begun) = under_way.pop_front()
            {
                replies.push(self.engine.finish(begun)?);
            }
            under_way.push_back(self.engine.begin(operation, Waiter::Reaper)?);
        }
        for begun in under_way {
            replies.push(self.engine.finish(begun)?);
        }
        Ok(replies)
    }
}
