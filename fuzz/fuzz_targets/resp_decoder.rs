//! Any stream of commands, in pieces of any size: the first byte says how large they are.
#![no_main]

#[path = "../../crates/wire/tests/arbitrary/decode.rs"]
mod decode;

use entresol_wire::resp::Limits;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, stream)) = bytes.split_first() else { return };
    let mut next_bytes = || 1 + usize::from(*first);
    let tight =
        Limits { bulk_bytes_max: 24, arguments_max: 4, line_bytes_max: 64, ..Limits::default() };
    decode::decode(stream, tight, &mut next_bytes);
    decode::decode(stream, Limits::default(), &mut next_bytes);
});
