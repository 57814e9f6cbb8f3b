//! The value of a manifest: what the pieces of a large value are put together to.

use super::{Codec, u32_at, u64_at};

/// Bytes of a manifest's value: stored bytes (8), raw bytes (4), codec (1), 3 unused, pieces (4),
/// 4 unused.
pub(crate) const MANIFEST_BYTES: usize = 24;

/// What a manifest says of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Bytes of all pieces together.
    pub stored_bytes: u64,
    /// Bytes of the value as the caller gave it.
    pub raw_bytes: u32,
    pub codec: Codec,
    /// How many pieces there are.
    pub pieces: u32,
}

impl Manifest {
    pub(crate) fn encode(&self) -> [u8; MANIFEST_BYTES] {
        let mut out = [0; MANIFEST_BYTES];
        out[..8].copy_from_slice(&self.stored_bytes.to_le_bytes());
        out[8..12].copy_from_slice(&self.raw_bytes.to_le_bytes());
        out[12] = self.codec.bits();
        out[16..20].copy_from_slice(&self.pieces.to_le_bytes());
        out
    }

    pub(crate) fn decode(value: &[u8]) -> Option<Manifest> {
        Some(Manifest {
            codec: Codec::from_bits(*value.get(12)?)?,
            stored_bytes: u64_at(value, 0)?,
            raw_bytes: u32_at(value, 8)?,
            pieces: u32_at(value, 16)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_says_what_was_encoded_and_an_unknown_codec_is_none() {
        for codec in [Codec::Plain, Codec::Lz4, Codec::Zstd] {
            let manifest = Manifest { stored_bytes: 1 << 40, raw_bytes: 77, codec, pieces: 9 };
            let mut bytes = manifest.encode();
            assert_eq!(Manifest::decode(&bytes), Some(manifest));
            assert_eq!(Manifest::decode(&bytes[..MANIFEST_BYTES - 5]), None);
            bytes[12] = 3;
            assert_eq!(Manifest::decode(&bytes), None);
        }
    }
}
