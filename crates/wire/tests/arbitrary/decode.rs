//! A stream through the decoder, whatever it is. Shared with the targets of cargo-fuzz.

use entresol_wire::resp::{Decoded, Decoder, Limits};

/// Decodes `stream` as a connection would that brings `next_bytes` (at least 1) at a time; panics
/// where a promise of the decoder is broken.
pub(crate) fn decode(stream: &[u8], limits: Limits, next_bytes: &mut dyn FnMut() -> usize) {
    let mut decoder = Decoder::new(limits);
    let (mut buffer, mut sent, mut calls) = (Vec::new(), 0, 0);
    loop {
        calls += 1;
        assert!(calls <= 2 * stream.len() + 2, "no progress");
        match decoder.decode(&buffer) {
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
            Ok(Decoded::Incomplete { needed }) => {
                assert!(needed > buffer.len(), "a decoder must ask for more than it has");
                if sent == stream.len() {
                    return;
                }
                let end = (sent + next_bytes()).min(stream.len());
                buffer.extend_from_slice(&stream[sent..end]);
                sent = end;
            }
            Ok(Decoded::Empty { consumed }) => {
                assert!(consumed > 0 && consumed <= buffer.len());
                buffer.drain(..consumed);
            }
            Ok(Decoded::Command { consumed }) => {
                assert!(consumed > 0 && consumed <= buffer.len());
                let arguments = decoder.arguments(&buffer);
                let inline = buffer.first() != Some(&b'*');
                assert!(inline || arguments.len() <= limits.arguments_max);
                for argument in arguments.from(0) {
                    assert!(argument.len() <= limits.bulk_bytes_max.max(limits.line_bytes_max));
                }
                buffer.drain(..consumed);
            }
        }
    }
}
