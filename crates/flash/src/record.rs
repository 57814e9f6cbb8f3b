//! One record: how a key and a value become bytes, and how bytes become an entry again.
//!
//! Payload = key, then the stored value: compressed if that makes it smaller, then, if the store is
//! encrypted, both sealed with AES-256-GCM (nonce: the record's sequence and shard, and whether it
//! is a tombstone, which may have the sequence of what it stands for; 16 bytes of tag behind the
//! value). No nonce is used for two payloads under a key.
//!
//! A record is returned only if header checksum, generation, key and payload checksum all hold.

use entresol_planted::planted;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{Codec, PIECE_SPACE, RecordHeader, RecordKind, nonce_bytes};
use crate::options::{Compression, EncryptionKey};
use crate::types::{Expiry, Key, Pinning, SpaceId, Timestamp};

/// Bytes that encryption adds to a value.
pub(crate) const TAG_BYTES: usize = 16;
/// Values shorter than this are not worth compressing.
const COMPRESS_BYTES_MIN: usize = 64;

/// The hash that places a key: 128 bits of xxh3 over space and key under the store's seed. The
/// upper half goes to the index, the lower chooses the shard; all of it stands in footers.
#[inline]
pub(crate) fn hash_key(by: HashSeed, key: Key<'_>) -> u128 {
    let salt = u64::from(key.space.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    xxh3_128_with_seed(key.bytes, by.seed ^ salt) & by.mask
}

/// What a store's hashes depend on besides the key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashSeed {
    seed: u64,
    mask: u128,
}

impl HashSeed {
    /// Hashes of which the index gets to see `index_bits` (1 to 64).
    pub(crate) fn new(seed: u64, index_bits: u32) -> HashSeed {
        let unseen = 64 - index_bits.clamp(1, 64);
        HashSeed { seed, mask: u128::MAX >> 64 | u128::MAX << (64 + unseen) }
    }
}

/// A key and its hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashedKey<'k> {
    pub key: Key<'k>,
    pub hash: u128,
}

/// Which record is looked for: of which use of a segment, and of which key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'k> {
    generation: u32,
    /// `None`: any.
    key: Option<Key<'k>>,
}

impl<'k> Wanted<'k> {
    /// Any record of a segment in its use `sequence`, or in one whose generation that is.
    #[inline]
    pub(crate) fn any(sequence: u64) -> Wanted<'k> {
        Wanted { generation: sequence as u32, key: None }
    }

    /// The one of `key`.
    #[inline]
    pub(crate) fn of(sequence: u64, key: Key<'k>) -> Wanted<'k> {
        Wanted { generation: sequence as u32, key: Some(key) }
    }
}

/// A record's bytes, taken apart and found whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub header: RecordHeader,
    pub key: &'a [u8],
    /// Decrypted and decompressed.
    pub value: &'a [u8],
}

impl Record<'_> {
    pub(crate) fn expiry(&self) -> Expiry {
        expiry_of(&self.header)
    }

    pub(crate) fn pinning(&self) -> Pinning {
        if self.header.flags.pinned { Pinning::Pinned } else { Pinning::Evictable }
    }
}

pub(crate) fn expiry_of(header: &RecordHeader) -> Expiry {
    Expiry {
        at: (header.expiry_ms != 0).then_some(Timestamp(header.expiry_ms)),
        idle_seconds: std::num::NonZeroU32::new(header.idle_seconds),
    }
}

/// Why bytes are not the record that was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// Not a record of that segment's generation.
    Foreign,
    /// A whole record of another key.
    OtherKey,
    /// The right header with damaged contents.
    Damaged,
}

/// Encodes and decodes payloads. One per store; thread-safe.
pub(crate) struct Payloads {
    compression: Compression,
    cipher: Option<LessSafeKey>,
}

impl std::fmt::Debug for Payloads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payloads").field("compression", &self.compression).finish_non_exhaustive()
    }
}

impl Payloads {
    pub(crate) fn new(compression: Compression, key: Option<&EncryptionKey>) -> Result<Payloads> {
        let cipher = match key {
            None => None,
            Some(key) => Some(LessSafeKey::new(
                UnboundKey::new(&AES_256_GCM, &key.0)
                    .map_err(|_| Error::new(ErrorKind::WrongKey, "the key is not 32 bytes"))?,
            )),
        };
        Ok(Payloads { compression, cipher })
    }

    /// A number that tells one key from another; 0 without encryption.
    pub(crate) fn key_check(&self) -> u64 {
        let Some(cipher) = &self.cipher else { return 0 };
        let mut block = *b"entresol key check block 1234567";
        let nonce = Nonce::assume_unique_for_key([0xff; NONCE_LEN]);
        match cipher.seal_in_place_separate_tag(nonce, Aad::empty(), &mut block) {
            Ok(tag) => crate::format::u64_at(tag.as_ref(), 0).unwrap_or(1) | 1,
            Err(_) => 1,
        }
    }

    pub(crate) fn encrypts(&self) -> bool {
        self.cipher.is_some()
    }

    /// Bytes that encryption adds to a payload.
    pub(crate) fn tag_bytes(&self) -> usize {
        if self.encrypts() { TAG_BYTES } else { 0 }
    }

    /// Compresses `value` into `scratch` where that makes it smaller.
    pub(crate) fn compress<'a>(
        &self,
        value: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> (Codec, &'a [u8]) {
        if value.len() < COMPRESS_BYTES_MIN {
            return (Codec::Plain, value);
        }
        let codec = match self.compression {
            Compression::None => return (Codec::Plain, value),
            Compression::Lz4 => {
                scratch.resize(lz4_flex::block::get_maximum_output_size(value.len()), 0);
                match lz4_flex::block::compress_into(value, scratch) {
                    Ok(bytes) => scratch.truncate(bytes),
                    Err(_) => return (Codec::Plain, value),
                }
                Codec::Lz4
            }
            Compression::Zstd => match zstd::bulk::compress(value, 1) {
                Ok(bytes) => {
                    *scratch = bytes;
                    Codec::Zstd
                }
                Err(_) => return (Codec::Plain, value),
            },
        };
        if scratch.len() < value.len() { (codec, scratch) } else { (Codec::Plain, value) }
    }

    /// Seals key and stored value in place: `payload` becomes ciphertext and tag.
    pub(crate) fn encrypt(
        &self,
        shard: u16,
        header: &RecordHeader,
        payload: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(cipher) = &self.cipher else { return Ok(()) };
        let nonce = nonce(shard, header.sequence, purpose(header));
        cipher
            .seal_in_place_append_tag(nonce, Aad::empty(), payload)
            .map_err(|_| Error::new(ErrorKind::InvalidInput, "the value is too long to encrypt"))
    }

    /// Takes apart the record at the start of `bytes` if it is of `generation` and, where `key` is
    /// given, of that key. Borrows from `bytes` where it can, else from `scratch`.
    pub(crate) fn open<'a>(
        &self,
        shard: u16,
        bytes: &'a [u8],
        wanted: Wanted<'_>,
        scratch: &'a mut Vec<u8>,
    ) -> std::result::Result<Record<'a>, Mismatch> {
        let Wanted { generation, key } = wanted;
        let header = RecordHeader::decode(bytes).ok_or(Mismatch::Foreign)?;
        if header.generation != generation && !planted!("generation-not-compared") {
            return Err(Mismatch::Foreign);
        }
        let payload = bytes.get(header.header_bytes()..header.record_bytes());
        let payload = payload.ok_or(Mismatch::Damaged)?;
        let (found, value) = payload.split_at(header.key_bytes as usize);
        let plain = !header.flags.encrypted && header.flags.codec == Codec::Plain;
        // Before the keys are compared: a damaged key is not another one.
        if crc32c::crc32c(payload) != header.payload_crc && !planted!("checksum-not-verified") {
            return Err(Mismatch::Damaged);
        }
        if !header.flags.encrypted
            && key.is_some_and(|k| k.bytes != found || k.space != header.space)
        {
            return Err(Mismatch::OtherKey);
        }
        if plain {
            return Ok(Record { header, key: found, value });
        }
        self.unpack(shard, header, payload, scratch)?;
        let (found, value) = scratch.split_at(header.key_bytes as usize);
        if key.is_some_and(|k| k.bytes != found || k.space != header.space) {
            return Err(Mismatch::OtherKey);
        }
        Ok(Record { header, key: found, value })
    }

    /// The bytes of what continues a record of the journal, stored as `stored`; `header` is the
    /// record's with the sequence of what continues it.
    pub(crate) fn open_continuation<'a>(
        &self,
        shard: u16,
        header: RecordHeader,
        stored: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> std::result::Result<&'a [u8], Mismatch> {
        if !header.flags.encrypted {
            return Ok(stored);
        }
        self.unpack(shard, RecordHeader { key_bytes: 0, ..header }, stored, scratch)?;
        Ok(scratch)
    }

    /// Whether the record at the start of `bytes` is of the generation and key wanted. The
    /// payload's checksum is not looked at.
    pub(crate) fn is_of(
        &self,
        shard: u16,
        bytes: &[u8],
        wanted: Wanted<'_>,
        scratch: &mut Vec<u8>,
    ) -> bool {
        if self.encrypts() {
            return self.open(shard, bytes, wanted, scratch).is_ok();
        }
        let Some(header) = RecordHeader::decode(bytes) else { return false };
        let start = header.header_bytes();
        let end = start + header.key_bytes as usize;
        header.generation == wanted.generation
            && wanted.key.is_none_or(|key| {
                header.space == key.space && bytes.get(start..end) == Some(key.bytes)
            })
    }

    /// Decrypts and decompresses `payload` into `scratch`: key, then value.
    fn unpack(
        &self,
        shard: u16,
        header: RecordHeader,
        payload: &[u8],
        scratch: &mut Vec<u8>,
    ) -> std::result::Result<(), Mismatch> {
        scratch.clear();
        scratch.extend_from_slice(payload);
        if header.flags.encrypted {
            let cipher = self.cipher.as_ref().ok_or(Mismatch::Damaged)?;
            let opens = |purpose, scratch: &mut Vec<u8>| {
                scratch.clear();
                scratch.extend_from_slice(payload);
                let nonce = nonce(shard, header.sequence, purpose);
                cipher.open_in_place(nonce, Aad::empty(), scratch).is_ok()
            };
            // Tombstones had the nonces of other records once.
            if !opens(purpose(&header), scratch) && !opens(OF_ENTRIES, scratch) {
                return Err(Mismatch::Damaged);
            }
            scratch.truncate(scratch.len().saturating_sub(TAG_BYTES));
        }
        let key_bytes = header.key_bytes as usize;
        let packed = scratch.get(key_bytes..).ok_or(Mismatch::Damaged)?;
        let raw_bytes = header.raw_bytes as usize;
        if header.flags.codec == Codec::Plain {
            return Ok(());
        }
        let value = decompress(header.flags.codec, packed, raw_bytes).ok_or(Mismatch::Damaged)?;
        scratch.truncate(key_bytes);
        scratch.extend_from_slice(&value);
        Ok(())
    }
}

/// Undoes a compression of at most `raw_bytes`; `None` if `packed` is not that, or cannot be.
pub(crate) fn decompress(codec: Codec, packed: &[u8], raw_bytes: usize) -> Option<Vec<u8>> {
    if raw_bytes > crate::types::VALUE_BYTES_MAX {
        return None;
    }
    match codec {
        Codec::Plain => Some(packed.to_vec()),
        // A byte of the block format stands for 255 at most; the memory is taken beforehand.
        Codec::Lz4 if raw_bytes > packed.len().saturating_mul(255) => None,
        Codec::Lz4 => lz4_flex::block::decompress(packed, raw_bytes).ok(),
        Codec::Zstd => zstd::bulk::decompress(packed, raw_bytes).ok(),
    }
}

/// Refuses the space of pieces.
pub(crate) fn check_space(space: SpaceId) -> Result<()> {
    if space == PIECE_SPACE {
        let detail = format!("space {} is the store's own; use another one", space.0);
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    Ok(())
}

/// Purposes of a nonce.
const OF_ENTRIES: u8 = 0;
const OF_TOMBSTONES: u8 = 1;

/// What the nonce of the record is for: a tombstone left by reclaim has the sequence of the entry
/// that ended, and another payload.
fn purpose(header: &RecordHeader) -> u8 {
    let apart = header.flags.kind == RecordKind::Tombstone && !planted!("nonce-used-twice");
    if apart { OF_TOMBSTONES } else { OF_ENTRIES }
}

fn nonce(shard: u16, sequence: u64, purpose: u8) -> Nonce {
    Nonce::assume_unique_for_key(nonce_bytes(sequence, shard, purpose))
}
