//! Numbers as RESP and its commands write them.

/// Parses a decimal integer written in its one canonical form: no sign but `-`, no leading zero, no
/// space.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude = 0u64;
    for digit in digits {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Parses a floating-point number: decimal or exponent notation, `inf`, no spaces, no NaN.
pub fn parse_double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: f64 = text.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

/// Appends `number` in the form RESP3 doubles have.
pub fn format_double(number: f64, out: &mut Vec<u8>) {
    if number.is_infinite() {
        out.extend_from_slice(if number > 0.0 { b"inf" } else { b"-inf" });
    } else {
        out.extend_from_slice(number.to_string().as_bytes());
    }
}

/// Appends `number` in decimal.
pub(crate) fn format_integer(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut rest = number.unsigned_abs();
    let mut used = 0;
    for place in digits.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
        used += 1;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_integers_parse() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", None),
            ("00", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
            ("-", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
            ("12a", None),
        ] {
            assert_eq!(parse_integer(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn formatted_integers_parse_back() {
        for number in [0, 1, -1, 10, 99, 100, -12345, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            format_integer(number, &mut out);
            assert_eq!(parse_integer(&out), Some(number));
        }
    }
}
