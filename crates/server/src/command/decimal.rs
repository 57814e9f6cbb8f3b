//! Sums as `INCRBYFLOAT` has them.
//!
//! redis-server reads decimal numbers into the 80-bit floating point of x86 (a mantissa of 64
//! bits), adds there, and shows the exact result with 17 decimals, trailing zeros left out. The
//! same is done here with integers, rounding to nearest, ties to even, wherever both numbers have
//! at most 17 decimals or none, and the result is below 2^128. Everything else is added in 64-bit
//! floating point.

/// Decimals that a sum shows at most.
const DECIMALS: u32 = 17;
/// 10^17.
const UNIT: u128 = 100_000_000_000_000_000;
/// Bits of a mantissa.
const MANTISSA_BITS: u32 = 64;
/// Places that a mantissa is shifted by at most before a sum.
const GUARD_BITS: i32 = 62;
/// Fraction bits that are shown exactly.
const FRACTION_BITS_MAX: u32 = 120;

/// The sum of two numbers as text; `None` where it is infinite or not a number.
pub(crate) fn sum(left: &[u8], right: &[u8]) -> Option<String> {
    if let (Some(left), Some(right)) = (Extended::parse(left), Extended::parse(right))
        && let Some(text) = left.plus(right).shown()
    {
        return Some(text);
    }
    let sum = number(left)? + number(right)?;
    sum.is_finite().then(|| trimmed(format!("{sum:.17}")))
}

/// `text` as a number; `None` where it is none.
pub(crate) fn number(text: &[u8]) -> Option<f64> {
    entresol_wire::resp::parse_double(text)
}

/// A number of 80 bits: `mantissa` × 2^`exponent`, the mantissa's highest bit set unless it is
/// zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extended {
    is_negative: bool,
    mantissa: u64,
    exponent: i32,
}

impl Extended {
    /// The nearest number to a decimal one; `None` if that has too many digits.
    fn parse(text: &[u8]) -> Option<Extended> {
        let (is_negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let Some(scaled) = scaled(digits, DECIMALS) else {
            // One bit stays free for what is rounded off.
            let whole = scaled(digits, 0).filter(|whole| whole.leading_zeros() > 0)?;
            return Some(Extended::rounded(is_negative, whole << 1, -1));
        };
        let (whole, rest) = (scaled / UNIT, scaled % UNIT);
        let mut bits = whole;
        let mut rest = rest;
        let mut exponent = 0;
        while scaled > 0 && bits >> MANTISSA_BITS == 0 {
            rest *= 2;
            bits = bits << 1 | u128::from(rest >= UNIT);
            rest %= UNIT;
            exponent -= 1;
        }
        Some(Extended::rounded(is_negative, bits << 1 | u128::from(rest > 0), exponent - 1))
    }

    /// The nearest number to `bits` × 2^`exponent`, whose lowest bit may stand for all below it.
    fn rounded(is_negative: bool, bits: u128, exponent: i32) -> Extended {
        let length = u128::BITS - bits.leading_zeros();
        if length <= MANTISSA_BITS {
            let shift = if bits == 0 { 0 } else { MANTISSA_BITS - length };
            let mantissa = (bits as u64) << shift;
            return Extended { is_negative, mantissa, exponent: exponent - shift as i32 };
        }
        let surplus = length - MANTISSA_BITS;
        let kept = bits >> surplus;
        let lost = bits & ((1 << surplus) - 1);
        let half = 1u128 << (surplus - 1);
        let up = lost > half || (lost == half && kept & 1 == 1);
        let kept = kept + u128::from(up);
        let exponent = exponent + surplus as i32;
        if kept >> MANTISSA_BITS == 0 {
            Extended { is_negative, mantissa: kept as u64, exponent }
        } else {
            Extended { is_negative, mantissa: (kept >> 1) as u64, exponent: exponent + 1 }
        }
    }

    fn plus(self, other: Extended) -> Extended {
        if self.mantissa == 0 || other.mantissa == 0 {
            return if self.mantissa == 0 { other } else { self };
        }
        let (high, low) =
            if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let shift = (high.exponent - low.exponent).min(GUARD_BITS);
        let surplus = ((high.exponent - low.exponent) - shift).min(127) as u32;
        let exponent = high.exponent - shift;
        let sticky = u128::from(low.mantissa) & ((1 << surplus) - 1) != 0;
        let low_bits = u128::from(low.mantissa) >> surplus | u128::from(sticky);
        let signed = |number: Extended, bits: u128| {
            if number.is_negative { -(bits as i128) } else { bits as i128 }
        };
        let sum = signed(high, u128::from(high.mantissa) << shift) + signed(low, low_bits);
        Extended::rounded(sum < 0, sum.unsigned_abs(), exponent)
    }

    /// The exact value with 17 decimals, trailing zeros left out.
    fn shown(self) -> Option<String> {
        let sign = if self.is_negative && self.mantissa != 0 { "-" } else { "" };
        if self.exponent > 0 {
            let fits = self.exponent <= (u128::BITS - MANTISSA_BITS) as i32;
            return fits.then(|| format!("{sign}{}", u128::from(self.mantissa) << self.exponent));
        }
        let mut places = self.exponent.unsigned_abs();
        let mut bits = u128::from(self.mantissa);
        if places > FRACTION_BITS_MAX {
            let surplus = (places - FRACTION_BITS_MAX).min(127);
            bits = bits >> surplus | u128::from(bits & ((1 << surplus) - 1) != 0);
            places = FRACTION_BITS_MAX;
        }
        let mask = (1u128 << places) - 1;
        let mut whole = bits >> places;
        let mut fraction = bits & mask;
        let mut decimals = 0u128;
        for _ in 0..DECIMALS {
            fraction *= 10;
            decimals = decimals * 10 + (fraction >> places);
            fraction &= mask;
        }
        let half = if places == 0 { u128::MAX } else { 1u128 << (places - 1) };
        decimals += u128::from(fraction > half || (fraction == half && decimals & 1 == 1));
        whole += decimals / UNIT;
        Some(trimmed(format!("{sign}{whole}.{:017}", decimals % UNIT)))
    }
}

/// `digits`, with a point and an exponent perhaps, times 10^`power` if that is a whole number.
fn scaled(digits: &[u8], power: u32) -> Option<u128> {
    let mut parts = digits.splitn(2, |byte| matches!(byte, b'e' | b'E'));
    let digits = parts.next()?;
    let exponent: i32 = match parts.next() {
        None => 0,
        Some(exponent) => std::str::from_utf8(exponent).ok()?.parse().ok()?,
    };
    let (mut value, mut decimals, mut seen_point, mut seen_digit) = (0u128, 0i32, false, false);
    for byte in digits {
        match byte {
            b'.' if !seen_point => seen_point = true,
            b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(u128::from(byte - b'0'))?;
                decimals += i32::from(seen_point);
                seen_digit = true;
            }
            _ => return None,
        }
    }
    let shift = (power as i32).checked_sub(decimals)?.checked_add(exponent)?;
    let shift = u32::try_from(shift).ok().filter(|_| seen_digit)?;
    value.checked_mul(10u128.checked_pow(shift)?)
}

fn trimmed(text: String) -> String {
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
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
            ("57438.827", "-2.5", Some("57436.32700000000000173")),
            ("-66697699842210543976748", "300", Some("-66697699842210543976448")),
            ("18446744073709551615", "1", Some("18446744073709551616")),
            ("1e30", "0.5", Some("1000000000000000000024696061952")),
            ("98765432109876543210.125", "1", Some("98765432109876543208")),
            ("1e308", "1e308", None),
            ("x", "1", None),
            ("", "1", None),
        ] {
            let found = sum(left.as_bytes(), right.as_bytes());
            assert_eq!(found.as_deref(), expected, "{left} + {right}");
        }
    }
}
