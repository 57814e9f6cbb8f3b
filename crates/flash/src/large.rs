//! Values too large for a segment: a manifest record under the key, and pieces, each a record of
//! its own. Pieces are not in the index: this table says where each one is.
//!
//! Invariants:
//! 1. Pieces are appended before their manifest, so a manifest found after a crash of the process
//!    implies its pieces; after power loss the whole value is checked before it is indexed.
//! 2. A value's pieces live exactly as long as its manifest.

use std::collections::HashMap;

use crate::format::PieceName;

/// Where the pieces of one value are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// Bytes of the stored value.
    pub stored_bytes: u64,
    /// Address and record bytes of each piece, in order.
    pub places: Vec<(u64, u32)>,
}

/// The large values of a shard.
#[derive(Debug, Default)]
pub(crate) struct LargeValues {
    by_version: HashMap<u64, Pieces>,
    /// Version of the value whose manifest stands at an address.
    by_manifest: HashMap<u64, u64>,
}

impl LargeValues {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_manifest.is_empty()
    }

    pub(crate) fn insert(&mut self, manifest: u64, version: u64, pieces: Pieces) {
        self.by_manifest.insert(manifest, version);
        self.by_version.insert(version, pieces);
    }

    pub(crate) fn pieces(&self, version: u64) -> Option<&Pieces> {
        self.by_version.get(&version)
    }

    /// The pieces of the value whose manifest stands at an address.
    pub(crate) fn at(&self, manifest: u64) -> Option<&Pieces> {
        if self.by_manifest.is_empty() {
            return None;
        }
        self.by_version.get(self.by_manifest.get(&manifest)?)
    }

    pub(crate) fn is_manifest(&self, address: u64) -> bool {
        !self.by_manifest.is_empty() && self.by_manifest.contains_key(&address)
    }

    pub(crate) fn move_manifest(&mut self, from: u64, to: u64) {
        if let Some(version) = self.by_manifest.remove(&from) {
            self.by_manifest.insert(to, version);
        }
    }

    /// Whether a piece is live and stands at `address`.
    pub(crate) fn holds(&self, piece: PieceName, address: u64) -> bool {
        let pieces = self.by_version.get(&piece.value);
        pieces.and_then(|p| p.places.get(piece.number as usize)).is_some_and(|p| p.0 == address)
    }

    pub(crate) fn move_piece(&mut self, piece: PieceName, to: u64) {
        let pieces = self.by_version.get_mut(&piece.value);
        if let Some(place) = pieces.and_then(|p| p.places.get_mut(piece.number as usize)) {
            place.0 = to;
        }
    }

    /// Forgets the value whose manifest stands at `address`.
    pub(crate) fn remove(&mut self, address: u64) -> Option<Pieces> {
        let version = self.by_manifest.remove(&address)?;
        self.by_version.remove(&version)
    }

    /// Every value: manifest address, version, pieces.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64, &Pieces)> {
        self.by_manifest.iter().filter_map(|(address, version)| {
            Some((*address, *version, self.by_version.get(version)?))
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.by_version.values().map(|p| p.places.len() as u64 * 16 + 96).sum()
    }
}
