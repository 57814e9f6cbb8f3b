//! Counts as people write them; sizes, counts and times as they read them.

// Options and files of a server take the same sizes as all other commands.
pub(crate) use entresol_server::parse_size;

/// Parses a count: `5000000`, `5M`, `100k`.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let (number, unit) = split_unit(text);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" | "b" => 1e9,
        _ => return Err(format!("unknown unit '{unit}' in '{text}'; use k, M or G")),
    };
    scaled(text, number, factor)
}

/// Bytes with a unit, three digits or so: `1.70 GB`.
pub(crate) fn bytes(count: f64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB", "PB"];
    let mut value = count;
    let mut unit = 0;
    while value.abs() >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{value:.2} {}", units[unit]) }
}

/// A number with thousands apart and as many decimals as its size deserves.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v == v.trunc() && v < 1e15 => 0,
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 1.0 => 2,
        _ => 4,
    };
    entresol_page::grouped(&format!("{value:.decimals$}"))
}

/// Seconds with a unit that suits: `12.3 ms`, `4.2 s`, `3.1 h`.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        v if v < 1e-3 => format!("{:.1} µs", v * 1e6),
        v if v < 1.0 => format!("{:.1} ms", v * 1e3),
        v if v < 120.0 => format!("{v:.2} s"),
        v if v < 7200.0 => format!("{:.1} min", v / 60.0),
        v if v < 172_800.0 => format!("{:.1} h", v / 3600.0),
        v => format!("{:.1} days", v / 86_400.0),
    }
}

/// Two digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What [`hex`] wrote.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let pairs = digits.chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    (text[..end].trim_end(), &text[end..])
}

fn scaled(text: &str, number: &str, factor: f64) -> Result<u64, String> {
    if factor == 1.0
        && let Ok(value) = number.parse::<u64>()
    {
        return Ok(value);
    }
    match number.parse::<f64>() {
        Ok(value) if value >= 0.0 && value * factor < 1.8e19 => Ok((value * factor).round() as u64),
        _ => Err(expected_number(text)),
    }
}

fn expected_number(text: &str) -> String {
    format!("expected a number with an optional unit, found '{text}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_as_people_write_them() {
        assert_eq!(parse_count("5M"), Ok(5_000_000));
        assert_eq!(parse_count("1.7k"), Ok(1_700));
        assert!(parse_count("5MB").unwrap_err().contains("MB"));
    }

    #[test]
    fn bytes_come_back_from_their_digits() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
        assert_eq!(from_hex("000aFF"), Some(vec![0, 10, 255]));
        for text in ["0", "0g", "+1"] {
            assert_eq!(from_hex(text), None, "{text}");
        }
    }

    #[test]
    fn figures_are_grouped_and_scaled() {
        assert_eq!(number(1234567.0), "1,234,567");
        assert_eq!(number(12345.678), "12,346");
        assert_eq!(number(0.98765), "0.9877");
        assert_eq!(number(-1234.0), "-1,234");
        assert_eq!(bytes(1_700_000_000.0), "1.70 GB");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(90_000.0), "25.0 h");
    }
}
