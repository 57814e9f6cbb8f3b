//! What the tests of the server share.

pub(crate) mod client;
pub(crate) mod memory_volumes;
#[path = "../../../volume/tests/backing/scratch.rs"]
pub(crate) mod scratch;
