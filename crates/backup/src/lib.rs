//! Repositories of backups: what `entresol backup` writes into a folder or a bucket, and
//! `entresol restore` reads.
//!
//! The crate knows segments at places of a device and nothing of what they hold. A [`Source`] gives
//! an image of a device; [`back_up`] copies it, [`restore`] writes it into a file, [`verify`] reads
//! everything, [`keep`] removes the oldest.
//!
//! Invariants:
//! 1. A backup exists if and only if its manifest does, and the manifest is written last.
//! 2. Nobody changes an object: its name has the digest of its raw bytes.
//! 3. Nothing is removed that a manifest names, or that one may name that is being written.

mod copy;
mod error;
mod format;
mod keep;
mod marks;
mod pace;
mod parallel;
mod repository;
mod restore;
mod verify;

pub use copy::{CopyOptions, Made, Progress, Source, back_up};
pub use error::{Error, ErrorKind, Result};
pub use format::{Digest, Id, Image, Manifest, ManifestName, Row, Segment, StoreId};
pub use keep::{Kept, keep};
pub use repository::{Opening, Repository};
pub use restore::{Restored, find, restore};
pub use verify::{Damage, Verified, verify};
