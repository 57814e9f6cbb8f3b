//! Known bugs, planted at run time in builds made for it: what shows that tests can fail.
//!
//! Sources ask [`planted!`] whether a bug is there. Without `--cfg planted` the answer is the
//! constant `false` and costs nothing; with it, the bug named by `ENTRESOL_PLANTED` is there, so
//! that one build serves all bugs. `cargo x planted` holds the table of names.

use std::sync::OnceLock;

/// The variable that names the bug.
pub const VARIABLE: &str = "ENTRESOL_PLANTED";

/// Whether the bug of that name is planted: a constant `false` without `--cfg planted`.
#[macro_export]
macro_rules! planted {
    ($name:literal) => {
        cfg!(planted) && $crate::is_named($name)
    };
}

/// Whether [`VARIABLE`] is `name`; it is read once.
#[doc(hidden)]
pub fn is_named(name: &str) -> bool {
    static NAMED: OnceLock<Option<String>> = OnceLock::new();
    NAMED.get_or_init(|| std::env::var(VARIABLE).ok()).as_deref() == Some(name)
}
