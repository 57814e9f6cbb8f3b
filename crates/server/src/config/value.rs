//! Kinds of values and how people write them: `512MB`, `100ms`, `periodic:100`.

use std::time::Duration;

use entresol_tier::Durability;

/// What a key takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Any text, or none.
    Text,
    /// Texts separated by commas, or none.
    List,
    /// A path, or none.
    Path,
    /// A whole number between two bounds, both included.
    Number(u64, u64),
    /// A whole number, which may be negative.
    Integer,
    /// A number of a port, or none.
    Port,
    /// A number of bytes between two bounds, both included.
    Size(u64, u64),
    /// A number of bytes between two bounds that is a power of two.
    PowerOfTwo(u64, u64),
    /// A length of time.
    Duration,
    /// Permission bits in octal.
    Mode,
    /// One of several words.
    Choice(&'static [&'static str]),
    /// A durability.
    Durability,
}

impl Kind {
    /// `text` in its stored form; what was expected if it is something else.
    pub(crate) fn check(self, text: &str) -> Result<String, String> {
        let valid = match self {
            Kind::Text | Kind::List | Kind::Path => !text.contains('\0'),
            Kind::Number(min, max) => {
                text.parse().is_ok_and(|number: u64| (min..=max).contains(&number))
            }
            Kind::Integer => text.parse::<i64>().is_ok(),
            Kind::Port => text.is_empty() || text.parse::<u16>().is_ok(),
            Kind::Size(min, max) => parse_size(text).is_ok_and(|size| (min..=max).contains(&size)),
            Kind::PowerOfTwo(min, max) => parse_size(text)
                .is_ok_and(|size| (min..=max).contains(&size) && size.is_power_of_two()),
            Kind::Duration => parse_duration(text).is_some(),
            Kind::Mode => u32::from_str_radix(text, 8).is_ok_and(|mode| mode <= 0o777),
            Kind::Choice(words) => words.contains(&text),
            Kind::Durability => parse_durability(text).is_some(),
        };
        if valid { Ok(text.to_owned()) } else { Err(self.expected()) }
    }

    /// Whether it says yes or no.
    pub(crate) fn is_switch(self) -> bool {
        matches!(self, Kind::Choice(["no", "yes"]))
    }

    /// The words that it takes, if it takes nothing else.
    pub(crate) fn choices(self) -> &'static [&'static str] {
        match self {
            Kind::Choice(words) => words,
            _ => &[],
        }
    }

    /// One word for what the kind takes.
    pub(crate) fn value_name(self) -> &'static str {
        match self {
            Kind::Text => "TEXT",
            Kind::List => "LIST",
            Kind::Path => "PATH",
            Kind::Number(..) | Kind::Integer => "NUMBER",
            Kind::Port => "PORT",
            Kind::Size(..) | Kind::PowerOfTwo(..) => "SIZE",
            Kind::Duration => "TIME",
            Kind::Mode => "MODE",
            Kind::Choice(["no", "yes"]) => "YES",
            Kind::Choice(_) => "CHOICE",
            Kind::Durability => "DURABILITY",
        }
    }

    /// What the kind takes, for people.
    pub(crate) fn expected(self) -> String {
        match self {
            Kind::Text => "text".to_owned(),
            Kind::List => "a list separated by commas".to_owned(),
            Kind::Path => "a path".to_owned(),
            Kind::Number(min, u64::MAX) => format!("a whole number from {min} on"),
            Kind::Number(min, max) => format!("a whole number from {min} to {max}"),
            Kind::Integer => "a whole number, which may be negative".to_owned(),
            Kind::Port => "a port from 0 (any free one) to 65535".to_owned(),
            Kind::Size(0, u64::MAX) => "a size like 512MB or 1GiB".to_owned(),
            Kind::Size(min, u64::MAX) => {
                format!("a size like 512MB or 1GiB, at least {}", format_size(min))
            }
            Kind::Size(min, max) => {
                format!("a size from {} to {}", format_size(min), format_size(max))
            }
            Kind::PowerOfTwo(min, max) => {
                format!("a power of two from {} to {}", format_size(min), format_size(max))
            }
            Kind::Duration => "a time like 100ms, 30s or 5m (a plain number is seconds)".to_owned(),
            Kind::Mode => "permission bits in octal like 660".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Durability => {
                "one of memory, process, flushed, periodic:MILLISECONDS, synced".to_owned()
            }
        }
    }
}

/// Bytes out of `1024`, `512MB` (powers of ten) or `1GiB` (powers of two; `1G` and `1Gi` mean the
/// same); what was expected and found, if it is something else.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "ki" | "kib" => 1 << 10,
        "m" | "mi" | "mib" => 1 << 20,
        "g" | "gi" | "gib" => 1 << 30,
        "t" | "ti" | "tib" => 1 << 40,
        _ if !number.is_empty() && unit.trim().bytes().all(|byte| byte.is_ascii_alphabetic()) => {
            let unit = unit.trim();
            return Err(format!(
                "unknown unit '{unit}' in '{text}'; use KB, MB, GB, TB, KiB, MiB, GiB, TiB"
            ));
        }
        _ => 0,
    };
    let bytes = match (unit, number.parse::<u64>()) {
        (0, _) => None,
        (unit, Ok(number)) => number.checked_mul(unit),
        (unit, Err(_)) => {
            let bytes = number.parse::<f64>().ok().map(|number| (number * unit as f64).round());
            bytes.filter(|bytes| *bytes < u64::MAX as f64).map(|bytes| bytes as u64)
        }
    };
    bytes.ok_or_else(|| format!("expected a size like 512MB or 1.5GiB, found '{text}'"))
}

/// `bytes` in the largest unit of which it is a whole number.
pub fn format_size(bytes: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

/// A length of time out of `100ms`, `30s`, `5m`, `2h`, or a plain number of seconds.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let milliseconds = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(milliseconds).map(Duration::from_millis)
}

/// A durability out of `memory`, `process`, `flushed`, `periodic:MILLISECONDS` or `synced`.
pub(crate) fn parse_durability(text: &str) -> Option<Durability> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        for (text, expected) in [
            ("0", 0),
            ("1024", 1024),
            ("512MB", 512_000_000),
            ("512M", 512 << 20),
            ("512Mi", 512 << 20),
            ("512MiB", 512 << 20),
            ("1Gi", 1 << 30),
            ("1GiB", 1 << 30),
            ("64m", 64 << 20),
            ("64KB", 64_000),
            ("1.5KiB", 1536),
            ("1.5 GiB", 1_610_612_736),
            ("2 TiB", 2 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(expected), "{text}");
        }
        for text in ["-1", "", "GB", "1..5GB", "1e400", "99999999999TiB"] {
            let told = parse_size(text).unwrap_err();
            assert!(told.ends_with(&format!("found '{text}'")) || told.contains("unit"), "{told}");
        }
        assert!(parse_size("5XB").unwrap_err().starts_with("unknown unit 'XB' in '5XB'"));
        assert_eq!(format_size(1536), "1536B");
        assert_eq!(format_size(3 << 30), "3GiB");
    }

    #[test]
    fn durations_and_durabilities_parse() {
        assert_eq!(parse_duration("100ms"), Some(Duration::from_millis(100)));
        assert_eq!(parse_duration("30"), Some(Duration::from_secs(30)));
        assert_eq!(parse_duration("2h"), Some(Duration::from_secs(7200)));
        assert_eq!(parse_duration("fast"), None);
        let period = NonZeroU32::new(100).unwrap();
        assert_eq!(parse_durability("periodic:100"), Some(Durability::Periodic(period)));
        assert_eq!(parse_durability("periodic:100ms"), Some(Durability::Periodic(period)));
        assert_eq!(parse_durability("periodic:0"), None);
        assert_eq!(parse_durability("none"), None);
    }
}
