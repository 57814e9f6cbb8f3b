//! The bytes of a segment's object: frames of Zstandard over raw bytes.

use std::io::Read;

use super::digest::Digest;

/// Most raw bytes of a frame.
const FRAME_BYTES: usize = 1 << 20;
/// Compression must not be what a backup waits for: values are often compressed already.
const LEVEL: i32 = 1;

/// The object of a segment with these raw bytes.
pub(crate) fn encode(raw: &[u8]) -> Result<Vec<u8>, String> {
    let mut object = Vec::with_capacity(raw.len() / 2);
    // An object without a frame could not be told from one that was cut.
    let nothing = raw.is_empty().then_some(raw);
    for part in raw.chunks(FRAME_BYTES).chain(nothing) {
        let frame = zstd::bulk::compress(part, LEVEL)
            .map_err(|error| format!("cannot compress a segment: {error}"))?;
        object.extend_from_slice(&frame);
    }
    Ok(object)
}

/// The most bytes that an object of so many raw bytes may have.
pub(crate) fn object_bytes_max(raw_bytes: u64) -> u64 {
    // What does not compress grows by three bytes for each block, and a frame has a header.
    const SLACK_BYTES: u64 = 64 << 10;
    raw_bytes + raw_bytes / 64 + SLACK_BYTES
}

/// The raw bytes of an object, which has so many of that digest.
pub(crate) fn decode(object: &[u8], raw_bytes: u64, digest: Digest) -> Result<Vec<u8>, String> {
    let mut raw = Vec::with_capacity(usize::try_from(raw_bytes).unwrap_or_default());
    zstd::stream::read::Decoder::with_buffer(object)
        .and_then(|decoder| decoder.take(raw_bytes + 1).read_to_end(&mut raw))
        .map_err(|error| format!("expected frames of Zstandard, found what is none: {error}"))?;
    if raw.len() as u64 != raw_bytes {
        let found = if raw.len() as u64 > raw_bytes { "more" } else { "less" };
        return Err(format!("expected {raw_bytes} raw bytes, found {found}"));
    }
    let found = Digest::of(&raw);
    if found != digest {
        return Err(format!("expected SHA-256 {digest}, found {found}"));
    }
    Ok(raw)
}
