//! How a store is opened: keywords of Python's as the options of the engine.

use std::path::PathBuf;

use entresol_host::HostedOptions;
use entresol_tier::Durability;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::failed::Failed;

/// Keywords, and the names that the engine has for them.
const NAMES: &[(&str, &str)] = &[
    ("capacity", "capacity"),
    ("memory", "memory"),
    ("cached", "cache"),
    ("durability", "durability"),
    ("ordered_tables", "journal"),
    ("waiting_changes", "tables-waiting"),
    ("absent_key_bits", "tables-filter-bits"),
    ("compression", "compression"),
    ("encryption_key", "encryption-key"),
    ("write_mode", "write-mode"),
    ("shards", "shards"),
    ("segment", "segment"),
    ("buffer_directory", "buffer-directory"),
    ("mode", "mode"),
    ("write_budget", "write-budget"),
];

/// The options of a store at `path`, or of a stripe over several paths, that is a `store` or a
/// `cache`.
pub(crate) fn parse(
    path: &Bound<'_, PyAny>,
    promise: &str,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<HostedOptions> {
    let paths = paths(path)?;
    let mut options = HostedOptions::new(&paths.join(","));
    let set = |options: &mut HostedOptions, keyword: &str, name: &str, value: &str| {
        let set = options.set(name, value);
        set.map_err(|error| Failed::from(error).about(&format!("option `{keyword}`")))
    };
    set(&mut options, "path", "reclaim", promise)?;
    if paths.len() > 1 {
        set(&mut options, "path", "selection", "stripe")?;
    }
    let mut buffers = None;
    for (keyword, value) in keywords.into_iter().flatten() {
        let keyword: String = keyword.extract()?;
        let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == keyword) else {
            let known: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
            let sentence = format!("`open` has no option `{keyword}`; it has {}", known.join(", "));
            return Err(PyTypeError::new_err(sentence));
        };
        if value.is_none() {
            continue;
        }
        let value = text(&keyword, &value)?;
        match *name {
            "buffer-directory" => buffers = Some(PathBuf::from(value)),
            name => set(&mut options, &keyword, name, &value)?,
        }
    }
    let placed = options.place_buffers(buffers);
    placed.map_err(|error| Failed::from(error).about("option `buffer_directory`"))?;
    Ok(options)
}

/// A level of durability, as calls name one.
pub(crate) fn durability(given: &Bound<'_, PyAny>) -> PyResult<Durability> {
    let level = text("durability", given)?.parse();
    Ok(level.map_err(|error| Failed::from(error).about("option `durability`"))?)
}

/// One path, or several in a list or a tuple.
fn paths(given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        return given.try_iter()?.map(|path| one_path(&path?)).collect();
    }
    Ok(vec![one_path(given)?])
}

fn one_path(given: &Bound<'_, PyAny>) -> PyResult<String> {
    let path: PathBuf = given.extract()?;
    let path = path.to_str().map(str::to_owned).ok_or_else(|| {
        Failed::invalid(format!("{}: expected a path in UTF-8, found another", path.display()))
    })?;
    // In a list of devices these mean something else.
    if path.is_empty() || path.contains(',') || path.contains("{n}") || path.trim() != path {
        return Err(Failed::invalid(format!(
            "path `{path}`: expected one without `,`, `{{n}}` and blanks at its ends"
        ))
        .into());
    }
    Ok(path)
}

/// A value as the engine reads it.
fn text(keyword: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyString>() {
        return value.extract();
    }
    if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        return Ok(value.str()?.to_string());
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect());
    }
    if keyword == "buffer_directory" {
        return one_path(value);
    }
    let found = value.get_type().name()?;
    let sentence = format!("option `{keyword}`: expected a number or a text, found {found}");
    Err(PyTypeError::new_err(sentence))
}
