//! How pages write numbers, and bytes that anybody may have chosen.

/// How a figure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A whole number.
    Count,
    /// Bytes, in powers of 1024 as configurations have them.
    Bytes,
    /// Blocks of a volume, in bytes.
    Blocks,
    /// So many in a second.
    Rate,
    /// Bytes in a second.
    ByteRate,
    /// A latency in microseconds; 0 is none.
    Latency,
    /// A factor.
    Factor,
    /// Seconds.
    Seconds,
}

/// Bytes of a block of a volume.
pub const BLOCK_BYTES: f64 = 4096.0;

/// `value` in words.
pub fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count => grouped(&format!("{value:.0}")),
        Unit::Bytes => bytes(value),
        Unit::Blocks => bytes(value * BLOCK_BYTES),
        Unit::Rate => format!("{}/s", amount(value)),
        Unit::ByteRate => format!("{}/s", bytes(value)),
        Unit::Latency => latency(value),
        Unit::Factor => format!("{value:.2}"),
        Unit::Seconds => seconds(value as u64),
    }
}

/// A part of a whole in percent; `–` where there is no whole.
pub fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", 100.0 * part / whole) } else { "–".to_owned() }
}

/// A number with thousands apart and few decimals.
pub fn amount(value: f64) -> String {
    let whole = value >= 100.0 || (value - value.round()).abs() < 0.05;
    grouped(&format!("{value:.*}", usize::from(!whole)))
}

fn bytes(value: f64) -> String {
    const UNITS: [(&str, f64); 5] = [
        ("TiB", 1_099_511_627_776.0),
        ("GiB", 1_073_741_824.0),
        ("MiB", 1_048_576.0),
        ("KiB", 1024.0),
        ("B", 1.0),
    ];
    let found = UNITS.iter().find(|(_, size)| value >= *size);
    let (unit, size) = found.unwrap_or(&UNITS[4]);
    format!("{} {unit}", amount(value / size))
}

fn latency(us: f64) -> String {
    let (value, unit) = match us {
        us if us <= 0.0 => return "–".to_owned(),
        us if us < 1e3 => (us, "µs"),
        us if us < 1e6 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    let decimals = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let short = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} {unit}")
}

/// A time in its two largest units.
pub fn seconds(value: u64) -> String {
    match value {
        0..60 => format!("{value} s"),
        60..3600 => format!("{} min {} s", value / 60, value % 60),
        3600..86_400 => format!("{} h {} min", value / 3600, value % 3600 / 60),
        _ => format!("{} d {} h", value / 86_400, value % 86_400 / 3600),
    }
}

/// The digits of a number with thousands apart.
pub fn grouped(digits: &str) -> String {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut text = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// Bytes of a key, a name or a value as text: what is no character that can be read, and a
/// backslash, as `\xNN`. What would turn the direction of text around cannot hide anything.
pub fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            if is_readable(char) {
                text.push(char);
            } else {
                let mut room = [0; 4];
                char.encode_utf8(&mut room).bytes().for_each(|byte| push_byte(&mut text, byte));
            }
        }
        chunk.invalid().iter().for_each(|byte| push_byte(&mut text, *byte));
    }
    text
}

fn is_readable(char: char) -> bool {
    let turns = matches!(char, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{61C}' | '\u{FEFF}');
    char != '\\' && !char.is_control() && !turns
}

fn push_byte(text: &mut String, byte: u8) {
    text.push_str(&format!("\\x{byte:02x}"));
}

/// The bytes that a person typed: text in which `\xNN` is a byte; `None` where a backslash begins
/// anything else.
pub fn typed(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = text.iter().copied();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        if bytes.next()? != b'x' {
            return None;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        out.push((digit()? << 4 | digit()?) as u8);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (value, unit, expected) in [
            (1_234_567.0, Unit::Count, "1,234,567"),
            (0.0, Unit::Bytes, "0 B"),
            (1536.0, Unit::Bytes, "1.5 KiB"),
            (134_217_728.0, Unit::Bytes, "128 MiB"),
            (1_048_575.0, Unit::Bytes, "1,024 KiB"),
            (3.0, Unit::Blocks, "12 KiB"),
            (12.34, Unit::Rate, "12.3/s"),
            (9.999, Unit::Latency, "10 µs"),
            (1_234.0, Unit::Latency, "1.23 ms"),
            (0.0, Unit::Latency, "–"),
            (2.5e6, Unit::Latency, "2.5 s"),
            (100.0, Unit::Latency, "100 µs"),
            (90_061.0, Unit::Seconds, "1 d 1 h"),
        ] {
            assert_eq!(shown(value, unit), expected, "{value} {unit:?}");
        }
        assert_eq!(grouped("-1234.50"), "-1,234.50");
        assert_eq!((share(1.0, 8.0), share(0.0, 0.0)), ("12.5 %".to_owned(), "–".to_owned()));
    }

    #[test]
    fn bytes_are_shown_so_that_typing_them_means_the_same() {
        for bytes in [&b"plain"[..], b"", b"a\\xff", b"\0\xFF\xC3", "ä\u{202E}\n".as_bytes()] {
            let shown = text_of(bytes);
            assert!(shown.chars().all(is_readable) || shown.contains('\\'), "{shown}");
            assert_eq!(typed(shown.as_bytes()).as_deref(), Some(bytes), "{shown}");
        }
        assert_eq!(text_of("ä\u{202E}x".as_bytes()), "ä\\xe2\\x80\\xaex");
        for wrong in ["\\", "\\n", "\\x4", "\\xzz"] {
            assert_eq!(typed(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
