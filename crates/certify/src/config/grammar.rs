//! Lines of a configuration file, cut as ACT 6 cuts them.
//!
//! ACT reads with a bounded buffer and C's string functions, so a line ends at its first NUL, and
//! text beyond the buffer becomes a line of its own. Both readers use this cut; the strict reader
//! reports where it differs from the apparent meaning of the file.

/// One line, or a piece of one that was longer than ACT's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// 1 is the first line of the file.
    pub(super) number: usize,
    /// As the file has it, without the line's end.
    pub(super) raw: &'a [u8],
    /// Is this the rest of a line too long for the buffer, or followed by one?
    pub(super) cut: bool,
    /// The item's name.
    pub(super) name: &'a [u8],
    /// What follows the name and the one byte that ended it, without a comment.
    pub(super) rest: &'a [u8],
}

/// Lines that name an item. A piece has at most `piece_bytes` bytes, its line feed included.
pub(super) fn lines(text: &[u8], piece_bytes: usize) -> impl Iterator<Item = Line<'_>> {
    let mut rest = text;
    let mut number = 1;
    let mut continued = false;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let window = &rest[..rest.len().min(piece_bytes)];
            let length =
                window.iter().position(|&byte| byte == b'\n').map_or(window.len(), |at| at + 1);
            let (piece, after) = rest.split_at(length);
            let ended = piece.ends_with(b"\n");
            let cut = continued || (!ended && !after.is_empty());
            let line_number = number;
            rest = after;
            continued = !ended;
            number += usize::from(ended);
            if let Some((name, value)) = name_and_rest(piece) {
                let raw = piece.strip_suffix(b"\n").unwrap_or(piece);
                return Some(Line { number: line_number, raw, cut, name, rest: value });
            }
        }
        None
    })
}

/// The words of `text`: what lies between bytes of which `separates` is true.
pub(super) fn words(text: &[u8], separates: impl Fn(u8) -> bool) -> impl Iterator<Item = &[u8]> {
    text.split(move |&byte| separates(byte)).filter(|word| !word.is_empty())
}

/// White space between a name and a value, or after it.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn name_and_rest(piece: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = piece.iter().position(|&byte| byte == 0 || byte == b'#').unwrap_or(piece.len());
    let text = &piece[..end];
    let separates = |byte: &u8| *byte == b':' || is_blank(*byte);
    let start = text.iter().position(|byte| !separates(byte))?;
    let text = &text[start..];
    let end = text.iter().position(separates).unwrap_or(text.len());
    Some((&text[..end], text.get(end + 1..).unwrap_or_default()))
}
