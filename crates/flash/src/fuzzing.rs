//! What `tests/arbitrary` and the targets of cargo-fuzz share: each function gives arbitrary bytes
//! to one decoder of the medium and panics where something does not hold that must for all bytes.
//!
//! Not part of the interface of the crate.

use crate::format::{
    Manifest, RECORD_HEADER_BYTES_MAX, RecordHeader, RecordKind, SegmentHeader, Superblock,
};
use crate::options::{Compression, SEGMENT_BYTES_MIN};
use crate::record::{HashSeed, Payloads, Wanted};
use crate::recovery::{Scanner, parse, seal_image};
use crate::unreadable::Gaps;

/// `bytes` as a record, and as the rest of a segment behind it.
pub fn record(bytes: &[u8]) {
    let Some(header) = RecordHeader::decode(bytes) else { return };
    let mut encoded = [0; RECORD_HEADER_BYTES_MAX];
    header.encode(&mut encoded);
    let encoded = &encoded[..header.header_bytes()];
    assert!(bytes.starts_with(encoded), "a header is what its bytes say");
    let Ok(payloads) = Payloads::new(Compression::None, None) else { return };
    let mut scratch = Vec::new();
    let wanted = Wanted::any(u64::from(header.generation));
    let Ok(record) = payloads.open(0, bytes, wanted, &mut scratch) else { return };
    assert_eq!(record.header, header);
    assert_eq!(record.key.len(), header.key_bytes as usize);
    assert!(header.record_bytes() <= bytes.len(), "a record is within its bytes");
    if header.flags.kind == RecordKind::Manifest {
        // Any manifest will do: what it names is looked for, not believed.
        let _manifest = Manifest::decode(record.value);
    }
}

/// `bytes` as the beginning of a segment of the least size.
pub fn segment(bytes: &[u8]) {
    let mut image = bytes.to_vec();
    image.resize(SEGMENT_BYTES_MIN as usize, 0);
    let Some(header) = SegmentHeader::decode(&image) else { return };
    let Ok(payloads) = Payloads::new(Compression::None, None) else { return };
    let scanner =
        Scanner { payloads: &payloads, hash_seed: HashSeed::new(0, 64), shard: header.shard };
    let whole = Gaps::default();
    if let Some((_, Some((_, footer)))) = parse(&image, header.store, header.shard) {
        let claimed = footer.len();
        assert!(scanner.checked(&image, &whole, &header, footer).len() <= claimed);
    }
    let (entries, _) = scanner.scan(&image, &header);
    assert!(entries.is_sorted_by(|a, b| a.offset < b.offset), "records stand front to back");
    seal_image(&mut image, 4096, &header, &entries);
    let sealed = parse(&image, header.store, header.shard).and_then(|(_, footer)| footer);
    let sealed = sealed.map(|(_, footer)| footer);
    assert_eq!(sealed.as_ref(), Some(&entries), "what recovery seals verifies");
    assert_eq!(scanner.checked(&image, &whole, &header, sealed.unwrap_or_default()), entries);
}

/// `bytes` as a copy of the superblock.
pub fn superblock(bytes: &[u8]) {
    let Some(superblock) = Superblock::decode(bytes) else { return };
    let again = superblock.encode().and_then(|bytes| Superblock::decode(&bytes));
    assert_eq!(again, Some(superblock), "what was read can be written");
}
