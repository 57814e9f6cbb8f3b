//! Bytes that Python gives: `bytes`, `bytearray`, `memoryview`. Text is refused, since what comes
//! back is bytes: whoever puts a text would not get it back.

use std::borrow::Cow;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyIterator, PyMapping, PyMemoryView};

/// The bytes of `given`, which a sentence calls `what`. Those of `bytes` cannot change and are not
/// copied.
pub(crate) fn bytes_of<'a>(given: &'a Bound<'_, PyAny>, what: &str) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if let Ok(bytes) = given.cast::<PyByteArray>() {
        return Ok(Cow::Owned(bytes.to_vec()));
    }
    if given.is_instance_of::<PyMemoryView>() {
        return Ok(Cow::Owned(given.call_method0("tobytes")?.extract()?));
    }
    let found = given.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{what}: expected bytes, bytearray or memoryview, found {found}; encode a text first, as \
         by `text.encode()`"
    )))
}

/// The same, of bytes that are kept.
pub(crate) fn owned_bytes(given: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<u8>> {
    Ok(bytes_of(given, what)?.into_owned())
}

/// The pairs of a mapping, or of whatever gives pairs.
pub(crate) fn pairs_of<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    match given.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.try_iter(),
        Err(_) => given.try_iter(),
    }
}
