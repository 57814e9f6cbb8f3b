//! The figures of tables by their names, as text.

use std::fmt::Write;

use entresol_tree::TableFigures;
use serde_json::{Map, Value};

/// An object of JSON for each table. A name may be no text, so its bytes are in hexadecimal.
pub(super) fn all(tables: &[TableFigures]) -> String {
    Value::from(tables.iter().map(one).collect::<Vec<_>>()).to_string()
}

fn one(table: &TableFigures) -> Map<String, Value> {
    let name = table.name.iter().fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    });
    let figures = table.figures().map(|(figure, value)| (figure.to_owned(), value.into()));
    [("name".to_owned(), name.into())].into_iter().chain(figures).collect()
}
