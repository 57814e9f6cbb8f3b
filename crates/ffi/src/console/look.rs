//! What a look of the caller's has.

use entresol_page::text_of;
use serde_json::Value;

/// The stores of a look, of figures, or of a node.
pub(super) fn stores(all: &Value) -> &[Value] {
    all["stores"].as_array().map_or(&[], Vec::as_slice)
}

/// A name or a sentence, as a page writes it.
pub(super) fn said(value: &Value) -> String {
    text_of(value.as_str().unwrap_or_default().as_bytes())
}
