//! Numbers of as many bytes as they need: seven bits in each, the lowest first; the last byte is
//! below 128.

use super::Damage;

const MORE: u8 = 1 << 7;

/// Adds `number` to `out`.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= u64::from(MORE) {
        out.push(number as u8 | MORE);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the beginning of `bytes`; `field` is what it says.
pub(super) fn take_number(bytes: &mut &[u8], field: &'static str) -> Result<u64, Damage> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (first, rest) =
            bytes.split_first().ok_or_else(|| Damage::new(field, bytes.len(), 1))?;
        *bytes = rest;
        let bits = u64::from(*first & !MORE);
        if bits << shift >> shift != bits {
            break;
        }
        number |= bits << shift;
        if first & MORE == 0 {
            return Ok(number);
        }
    }
    Err(Damage { field, found: u64::MAX, expected: u64::MAX - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            push_number(&mut bytes, number);
            bytes.push(9);
            let mut rest = &bytes[..];
            assert_eq!(take_number(&mut rest, "it"), Ok(number));
            assert_eq!(rest, [9]);
        }
    }

    #[test]
    fn what_is_no_number_is_damage() {
        for bytes in [&[][..], &[0x80], &[0xff; 9], &[0xff; 12], &[0x80, 0x80]] {
            assert!(take_number(&mut &*bytes, "it").is_err(), "{bytes:?}");
        }
    }
}
