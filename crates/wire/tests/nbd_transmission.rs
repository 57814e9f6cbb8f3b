//! Requests and replies of NBD: read back as they were written, and told apart from damaged ones.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use entresol_random::SplitMix;
use entresol_wire::nbd::{
    Chunk, Command, CommandFlags, ErrorCode, ErrorKind, ReadAssembly, ReplyEncoder, ReplyHeader,
    ReplyStyle, ReplyTo, Request, StatusExtent, StatusFilter,
};

const STYLES: [ReplyStyle; 3] = [ReplyStyle::Simple, ReplyStyle::Structured, ReplyStyle::Extended];
const PAYLOAD_MAX: u32 = 32 << 20;

fn next(bytes: &[u8], style: ReplyStyle) -> (ReplyHeader, usize) {
    for cut in 0..bytes.len().min(16) {
        assert_eq!(ReplyHeader::decode(&bytes[..cut], style, PAYLOAD_MAX), Ok(None));
    }
    ReplyHeader::decode(bytes, style, PAYLOAD_MAX).unwrap().unwrap()
}

#[test]
fn requests_are_read_back_as_they_were_written() {
    for seed in 0..2000 {
        println!("seed {seed}");
        let random = &mut SplitMix::new(seed);
        let style = STYLES[random.index(3)];
        let command = Command::ALL[random.index(8)];
        let length = match style {
            ReplyStyle::Extended => random.next_u64(),
            _ => random.next_u64() >> 32,
        };
        let flags = CommandFlags(random.next_u64() as u16);
        let request =
            Request::new(command, random.next_u64(), random.next_u64(), length).with_flags(flags);
        let mut bytes = Vec::new();
        request.encode(style, &mut bytes).unwrap();
        assert_eq!(bytes.len(), Request::head_bytes(style));
        assert_eq!(Request::decode(&bytes[..bytes.len() - 1], style), Ok(None));
        bytes.push(0);
        let found = Request::decode(&bytes, style).unwrap().unwrap();
        let is_write = command == Command::Write;
        let added = match style {
            ReplyStyle::Extended if is_write => CommandFlags::PAYLOAD_LENGTH,
            _ => CommandFlags::NONE,
        };
        assert_eq!(found, request.with_flags(added));
        let carries = match style {
            ReplyStyle::Extended => found.flags.contains(CommandFlags::PAYLOAD_LENGTH),
            _ => is_write,
        };
        assert_eq!(found.payload_bytes(style), if carries { length } else { 0 });
    }
}

#[test]
fn a_length_of_64_bits_needs_extended_headers() {
    let request = Request::new(Command::WriteZeroes, 1, 0, 1 << 32);
    let mut out = Vec::new();
    let error = request.encode(ReplyStyle::Structured, &mut out).unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::TooLong, "length of a request"));
    assert!(out.is_empty());
    request.encode(ReplyStyle::Extended, &mut out).unwrap();
}

#[test]
fn a_request_with_another_magic_number_is_an_error() {
    let mut bytes = Vec::new();
    Request::new(Command::Read, 1, 0, 1).encode(ReplyStyle::Simple, &mut bytes).unwrap();
    assert!(Request::decode(&bytes, ReplyStyle::Structured).unwrap().is_some());
    bytes.extend_from_slice(&[0; 4]);
    let error = Request::decode(&bytes, ReplyStyle::Extended).unwrap_err();
    assert_eq!(error.field(), "request magic");
}

#[test]
fn filters_of_contexts_are_read_back_and_odd_ones_refused() {
    let filter = StatusFilter { length: 1 << 40, contexts: vec![1, 7] };
    let mut bytes = Vec::new();
    filter.encode(&mut bytes);
    assert_eq!(StatusFilter::decode(&bytes), Ok(filter));
    for length in [0, 7, 8, 9, 15] {
        assert!(StatusFilter::decode(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn failures_are_read_back_with_their_messages() {
    for style in STYLES {
        for code in ErrorCode::ALL {
            let long = format!("x{}", "ä".repeat(4000));
            for message in ["", "no room", &long] {
                let mut bytes = Vec::new();
                let to = ReplyTo { cookie: 77, offset: 5 };
                ReplyEncoder::new(style).error(to, code, message, &mut bytes);
                let (header, taken) = next(&bytes, style);
                assert_eq!(header.cookie(), 77);
                match header {
                    ReplyHeader::Simple { error, .. } => assert_eq!(error, Some(code)),
                    ReplyHeader::Chunk { kind, is_last, length, offset, .. } => {
                        assert!(is_last);
                        assert_eq!(offset, (style == ReplyStyle::Extended).then_some(5));
                        assert_eq!(bytes.len() - taken, length as usize);
                        let chunk = Chunk::decode(kind, &bytes[taken..]).unwrap();
                        let Chunk::Error { code: found, message: said, .. } = chunk else {
                            panic!("{chunk:?}")
                        };
                        assert_eq!(found, code);
                        assert!(message.starts_with(said) && said.len() <= 4096);
                        assert!(said.len() >= message.len().min(4095));
                    }
                }
            }
        }
    }
}

#[test]
fn extents_are_read_back_and_cut_where_compact_ones_cannot_follow() {
    let runs = [(4096, 3), (5 << 30, 0), (4096, 1)];
    let to = ReplyTo { cookie: 1, offset: 0 };
    let extents = |style: ReplyStyle| {
        let mut bytes = Vec::new();
        ReplyEncoder::new(style).status(to, 9, &runs, &mut bytes);
        let (header, taken) = next(&bytes, style);
        let ReplyHeader::Chunk { kind, is_last: false, length, .. } = header else {
            panic!("{header:?}")
        };
        assert_eq!(bytes.len() - taken, length as usize);
        let Ok(Chunk::Status { context: 9, extents }) = Chunk::decode(kind, &bytes[taken..]) else {
            panic!("{:?}", &bytes[taken..])
        };
        extents.collect::<Vec<_>>()
    };
    let extent = |length, flags| StatusExtent { length, flags };
    let whole = [extent(4096, 3), extent(5 << 30, 0), extent(4096, 1)];
    assert_eq!(extents(ReplyStyle::Extended), whole);
    assert_eq!(extents(ReplyStyle::Structured), [extent(4096, 3), extent(0xffff_0000, 0)]);
}

#[test]
fn a_read_is_put_together_from_chunks_in_any_order() {
    for seed in 0..500 {
        println!("seed {seed}");
        let random = &mut SplitMix::new(seed);
        let length = 1 + random.index(300);
        let expected: Vec<u8> = (0..length).map(|_| random.index(3) as u8).collect();
        let (mut pieces, mut at) = (Vec::new(), 0);
        while at < length {
            let size = (1 + random.index(60)).min(length - at);
            pieces.insert(random.index(pieces.len() + 1), (at, size));
            at += size;
        }
        let mut assembly = ReadAssembly::new(1000, length as u32);
        for (at, size) in &pieces {
            let (offset, bytes) = (1000 + *at as u64, &expected[*at..at + size]);
            let chunk = match bytes.iter().all(|byte| *byte == 0) {
                true => Chunk::Hole { offset, length: *size as u32 },
                false => Chunk::Data { offset, bytes },
            };
            assembly.put(chunk).unwrap();
            assert!(assembly.clone().put(chunk).is_err(), "the same bytes twice");
        }
        let missing = pieces.pop().unwrap();
        assert_eq!(assembly.finish(), Ok(Ok(expected.clone())));
        let mut assembly = ReadAssembly::new(1000, length as u32);
        for (at, size) in &pieces {
            let bytes = &expected[*at..at + size];
            assembly.put(Chunk::Data { offset: 1000 + *at as u64, bytes }).unwrap();
        }
        assert!(assembly.finish().is_err(), "without {missing:?}");
    }
}

#[test]
fn chunks_outside_a_read_are_errors_and_failures_are_kept() {
    let bytes = [1; 8];
    for offset in [0, 99, 101, 108, u64::MAX, u64::MAX - 7] {
        let mut assembly = ReadAssembly::new(100, 8);
        assert!(assembly.put(Chunk::Data { offset, bytes: &bytes }).is_err(), "{offset}");
    }
    let mut assembly = ReadAssembly::new(100, 8);
    let chunk = Chunk::Error { code: ErrorCode::Io, message: "bad sector", offset: None };
    assembly.put(chunk).unwrap();
    assembly.put(Chunk::Data { offset: 100, bytes: &bytes }).unwrap();
    assert_eq!(assembly.finish(), Ok(Err((ErrorCode::Io, "bad sector".to_owned()))));
    assert_eq!(ReadAssembly::new(0, 0).finish(), Ok(Ok(vec![])));
}

#[test]
fn damaged_chunks_are_errors_that_name_the_field() {
    for (kind, payload, field) in [
        (0, &b"x"[..], "payload of an empty chunk"),
        (1, &[0; 8], "payload of a data chunk"),
        (1, &[0; 7], "offset of a data chunk"),
        (2, &[0; 12], "length of a hole chunk"),
        (2, &[1; 13], "payload of a hole chunk"),
        (5, &[0; 4], "payload of a status chunk"),
        (5, &[0; 12], "length of an extent"),
        (5, &[1; 13], "payload of a status chunk"),
        (6, &[1; 24], "descriptor count of a status chunk"),
        (3, &[], "type of a chunk"),
        (0x8001, &[0; 6], "error of an error chunk"),
        (0x8001, &[0, 0, 0, 5, 0, 9], "message of an error chunk"),
        (0x8001, &[0, 0, 0, 5, 0xff, 9], "length of an error's message"),
        (0x8001, &[0, 0, 0, 5, 0, 0, 1], "payload of an error chunk"),
        (0x8002, &[0, 0, 0, 5, 0, 0, 1], "offset of an error chunk"),
    ] {
        assert_eq!(Chunk::decode(kind, payload).unwrap_err().field(), field);
    }
    // An error of a kind that only others know is an error all the same.
    let chunk = Chunk::decode(0x8099, &[0, 0, 0, 28, 0, 0, 1, 2, 3]).unwrap();
    assert!(matches!(chunk, Chunk::Error { code: ErrorCode::NoSpace, .. }));
}

#[test]
fn replies_of_another_style_or_of_any_length_are_errors() {
    let to = ReplyTo { cookie: 1, offset: 0 };
    for written in STYLES {
        for read in STYLES {
            let mut bytes = Vec::new();
            ReplyEncoder::new(written).done(to, &mut bytes);
            bytes.resize(32, 0);
            let fits =
                written == read || (written, read) == (ReplyStyle::Simple, ReplyStyle::Structured);
            assert_eq!(ReplyHeader::decode(&bytes, read, 1).is_ok(), fits, "{written:?} {read:?}");
        }
    }
    let mut bytes = Vec::new();
    ReplyEncoder::new(ReplyStyle::Structured).data(to, 8192, &mut bytes);
    let error = ReplyHeader::decode(&bytes, ReplyStyle::Structured, 4000).unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::TooLong, "length of a chunk"));
    assert!(ReplyHeader::decode(&bytes, ReplyStyle::Structured, 8192).is_ok());
}
