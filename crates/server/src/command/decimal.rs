//! Sums as `INCRBYFLOAT` has them.
//!
//! redis-server reads numbers into the 80-bit floating point of x86 (a mantissa of 64 bits), adds
//! there, and shows the exact result rounded to 17 decimals, trailing zeros left out.

use num_bigint::BigUint;
use rustc_apfloat::Float;
use rustc_apfloat::ieee::X87DoubleExtended;

/// Longest text of a number, as in redis-server.
const TEXT_BYTES_MAX: usize = 5 << 10;
/// Decimals that a sum shows at most.
const DECIMALS: u32 = 17;
/// Bits of a mantissa, the first one included.
const MANTISSA_BITS: u32 = 64;
/// The exponent's field of 2^0.
const EXPONENT_BIAS: i64 = 16383;

/// The sum of two numbers as text; `None` where it is infinite or one of them is no number.
pub(crate) fn sum(left: &[u8], right: &[u8]) -> Option<String> {
    let sum = (number(left)? + number(right)?).value;
    sum.is_finite().then(|| shown(sum))
}

/// `text` as a number, perhaps an infinite one; `None` where it is none.
pub(crate) fn number(text: &[u8]) -> Option<X87DoubleExtended> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= TEXT_BYTES_MAX)?;
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let signed = |number: X87DoubleExtended| if is_negative { -number } else { number };
    if ["inf", "infinity"].iter().any(|name| digits.eq_ignore_ascii_case(name)) {
        return Some(signed(X87DoubleExtended::INFINITY));
    }
    if !digits.starts_with(|first: char| first == '.' || first.is_ascii_digit()) {
        return None;
    }
    let is_hexadecimal = digits.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
    // The parser takes a missing exponent for 0.
    let ends = if is_hexadecimal { ['p', 'P', '+', '-'] } else { ['e', 'E', '+', '-'] };
    if digits.ends_with(ends) {
        return None;
    }
    let parsed = if is_hexadecimal && !digits.contains(['p', 'P']) {
        format!("{digits}p0").parse::<X87DoubleExtended>()
    } else {
        digits.parse()
    };
    let number = parsed.ok()?;
    let is_out_of_range = number.is_infinite() || (number.is_zero() && has_digit(digits));
    (!is_out_of_range).then(|| signed(number))
}

/// Whether the mantissa in `digits` is not zero.
fn has_digit(digits: &str) -> bool {
    let is_hexadecimal = digits.len() > 2 && digits.as_bytes()[1].eq_ignore_ascii_case(&b'x');
    let (mantissa, ends) =
        if is_hexadecimal { (&digits[2..], ['p', 'P']) } else { (digits, ['e', 'E']) };
    let mantissa = mantissa.split(ends).next().unwrap_or_default();
    mantissa.bytes().any(|digit| digit != b'0' && digit != b'.')
}

/// The exact value, rounded to 17 decimals, ties to even; trailing zeros left out.
fn shown(number: X87DoubleExtended) -> String {
    let bits = number.to_bits();
    let mantissa = BigUint::from(bits as u64);
    let field = (bits >> MANTISSA_BITS) as i64 & 0x7FFF;
    // Numbers below the normal ones have the exponent of the least of those.
    let exponent = field.max(1) - EXPONENT_BIAS - i64::from(MANTISSA_BITS - 1);
    let text = if exponent >= 0 {
        (mantissa << exponent as u64).to_string()
    } else {
        let places = exponent.unsigned_abs();
        let scaled = mantissa * BigUint::from(10u8).pow(DECIMALS);
        let half = BigUint::from(1u8) << (places - 1);
        let mut rounded = &scaled >> places;
        let lost = scaled - (&rounded << places);
        if lost > half || (lost == half && rounded.bit(0)) {
            rounded += 1u8;
        }
        let digits = format!("{rounded:0>width$}", width = DECIMALS as usize + 1);
        let (whole, decimals) = digits.split_at(digits.len() - DECIMALS as usize);
        format!("{whole}.{decimals}").trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if number.is_negative() && text != "0" { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn sums_are_those_of_80_bit_numbers() {
        for (left, right, expected) in [
            ("10.50", "0.1", Some("10.6")),
            ("5.0e3", "2.0e2", Some("5200")),
            ("0.1", "0.2", Some("0.3")),
            ("3", "-3", Some("0")),
            ("-0.5", "0.25", Some("-0.25")),
            ("100", "1", Some("101")),
            ("3.", ".5", Some("3.5")),
            ("-0.0", "-0", Some("0")),
            ("0e9", "+7", Some("7")),
            ("-1e-30", "0", Some("0")),
            ("1e-4940", "1", Some("1")),
            ("57438.827", "-2.5", Some("57436.32700000000000173")),
            ("-66697699842210543976748", "300", Some("-66697699842210543976448")),
            ("18446744073709551615", "1", Some("18446744073709551616")),
            ("1e30", "0.5", Some("1000000000000000000024696061952")),
            ("98765432109876543210.125", "1", Some("98765432109876543208")),
            ("-5620582822766226506730215073746465.5872", "0", {
                Some("-5620582822766226506715803554938880")
            }),
            ("0x10", "0x1p3", Some("24")),
            ("0x1.8p1", "1", Some("4")),
            ("1e4932", "1e4932", None),
            ("inf", "1", None),
            ("1e5000", "1", None),
            ("1e-5000", "1", None),
            ("nan", "1", None),
            ("1_0", "1", None),
            (" 1", "1", None),
            ("1 ", "1", None),
            ("1e", "1", None),
            (".", "1", None),
            ("--1", "1", None),
            ("x", "1", None),
            ("", "1", None),
        ] {
            let found = sum(left.as_bytes(), right.as_bytes());
            assert_eq!(found.as_deref(), expected, "{left} + {right}");
        }
        let twice = sum(b"1e308", b"1e308").unwrap();
        assert_eq!((twice.len(), &twice[..20]), (309, "19999999999999999999"));
    }
}
