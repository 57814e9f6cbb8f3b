//! What every backing keeps, shown for each of them.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod memory;
mod model;
