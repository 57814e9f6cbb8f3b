//! Decimal sums as `INCRBYFLOAT` has them.
//!
//! Redis adds in 80-bit floating point and shows at most 17 decimals with trailing zeros left out.
//! Here numbers with up to 17 decimals are added exactly, which agrees wherever 80 bits are exact
//! enough to show; everything else is added in 64-bit floating point.

/// Decimals that a sum shows at most.
const DECIMALS: u32 = 17;

/// The sum of two numbers as text; `None` where it is infinite or not a number.
pub(crate) fn sum(left: &[u8], right: &[u8]) -> Option<String> {
    if let (Some(left), Some(right)) = (scaled(left), scaled(right))
        && let Some(sum) = left.checked_add(right)
        && sum.unsigned_abs() < 10u128.pow(36)
    {
        return Some(shown(sum));
    }
    let sum = number(left)? + number(right)?;
    sum.is_finite().then(|| trimmed(format!("{sum:.17}")))
}

/// `text` as a number; `None` where it is none.
pub(crate) fn number(text: &[u8]) -> Option<f64> {
    entresol_wire::resp::parse_double(text)
}

/// `text` times 10^17, if that is exact.
fn scaled(text: &[u8]) -> Option<i128> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (mut value, mut decimals, mut seen_point, mut seen_digit) = (0i128, 0u32, false, false);
    for byte in digits {
        match byte {
            b'.' if !seen_point => seen_point = true,
            b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                decimals += u32::from(seen_point);
                seen_digit = true;
            }
            _ => return None,
        }
    }
    if !seen_digit || decimals > DECIMALS {
        return None;
    }
    let value = value.checked_mul(10i128.pow(DECIMALS - decimals))?;
    Some(if negative { -value } else { value })
}

fn shown(value: i128) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let unit = 10u128.pow(DECIMALS);
    let magnitude = value.unsigned_abs();
    trimmed(format!("{sign}{}.{:017}", magnitude / unit, magnitude % unit))
}

fn trimmed(text: String) -> String {
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn sums_are_decimal() {
        for (left, right, expected) in [
            ("10.50", "0.1", Some("10.6")),
            ("5.0e3", "2.0e2", Some("5200")),
            ("0.1", "0.2", Some("0.3")),
            ("3", "-3", Some("0")),
            ("-0.5", "0.25", Some("-0.25")),
            ("100", "1", Some("101")),
            ("1e308", "1e308", None),
            ("x", "1", None),
            ("", "1", None),
        ] {
            assert_eq!(sum(left.as_bytes(), right.as_bytes()).as_deref(), expected, "{left}+{right}");
        }
    }
}
