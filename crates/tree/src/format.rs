//! The bytes of pages and of batches: the one home of what ordered tables write.
//!
//! `docs/internals/tree-format.md` describes each byte. Numbers are little-endian. A flash record
//! carries the checksum, so a page has none of its own; a decoder still takes any bytes, and
//! answers [`Damage`] where they are not a page.

mod batch;
mod children;
mod header;
mod number;
mod page;
mod root;
mod rows;
mod short;
mod value;

pub(crate) use batch::{BATCH_FRAME_BYTES_MAX, OPERATION_FRAME_BYTES_MAX};
pub use batch::{
    BATCH_VALUE_BYTES_MAX, Batch, BatchBuilder, BatchContext, BatchOperation, BatchReader,
    BuiltBatch,
};
pub use children::{Child, Children, ChildrenBuilder, NodeFrame};
pub use header::{HEADER_BYTES, Header, PageKind};
pub use page::{PageBuilder, PageFrame, Rows};
pub use root::{
    DELTA_PAGES, FIRST_RECORDS, NOTES, Naming, PAGE_KEY_BYTES, PAGES, PageRole, Root, VALUES,
    page_key, partition_of, record_key,
};
pub(crate) use root::{NAMES, is_delta};
pub use rows::{Effect, Row, RowKey};
pub use value::{Marker, REFERENCE_BYTES, Reference, SEPARATE_VALUE_BYTES_MAX, Side, ValueName};

/// Version of the formats of pages.
pub const FORMAT_VERSION: u8 = 1;
/// Longest key of a row, bytes.
pub const ROW_KEY_BYTES_MAX: usize = 2 << 10;
/// Longest value that a page holds itself, bytes.
pub const INLINE_VALUE_BYTES_MAX: usize = (1 << 13) - 1;
/// Largest page, bytes. A page is written far below it; it bounds what offsets can say.
pub const PAGE_BYTES_MAX: usize = 64 << 10;

/// Bytes that are not what they should be: which field, what was expected and found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The structure and its field.
    pub field: &'static str,
    /// What is there.
    pub found: u64,
    /// What may be there, at most or exactly.
    pub expected: u64,
}

impl Damage {
    pub(crate) fn new(field: &'static str, found: usize, expected: usize) -> Damage {
        Damage { field, found: found as u64, expected: expected as u64 }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Damage { field, found, expected } = self;
        write!(f, "{field}: found {found}, expected {expected} or less")
    }
}

impl std::error::Error for Damage {}

pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

/// Bytes that `left` and `right` begin with alike.
pub(crate) fn common_prefix_bytes(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}
