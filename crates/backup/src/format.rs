//! The home of the bytes of a repository of backups; its document is
//! `docs/internals/backup-format.md`.
//!
//! Everything here is a pure function over bytes. What comes from a repository or a server is
//! checked before anything is made of it: no name leads out of the repository, no length is more
//! than the limits, no two parts of a device overlap.

mod digest;
mod id;
mod image;
mod manifest;
mod object;

pub use digest::Digest;
pub use id::Id;
pub use image::{Image, Segment, StoreId};
pub(crate) use manifest::{MANIFEST_BYTES_MAX, is_object_name, object_name};
pub use manifest::{Manifest, ManifestName, Row};
pub(crate) use object::{decode, encode, object_bytes_max};
