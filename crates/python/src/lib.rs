//! The package `entresol` for Python: stores, caches and ordered tables of this engine, inside of
//! the interpreter's process. `entresol/__init__.pyi` has the types of all that Python sees.
//!
//! Invariants:
//! 1. The interpreter's lock is released while the engine works.
//! 2. No lock is waited for while the interpreter's is held, but ones that are held for moments.
//! 3. Whatever is used after its store was closed raises `ClosedError`.
//!
//! A call does its work in the caller's thread. The crate `host` has what a store needs beside it.

mod answers;
mod batch;
mod bytes;
mod engine;
mod failed;
mod items;
mod options;
mod put;
mod rows;
mod space;
mod store;
mod table;

use pyo3::prelude::*;

/// The module behind the package.
#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<space::Space>()?;
    module.add_class::<space::Entry>()?;
    module.add_class::<store::Opened>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<store::Cache>()?;
    module.add_class::<table::OrderedTable>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<items::Items>()?;
    module.add_class::<rows::Rows>()
}
