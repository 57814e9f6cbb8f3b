//! A configuration read as ACT 6 reads it, misreadings included, with the messages of ACT.

use super::grammar::{self, Line};
use super::items::{Item, ItemValue, Subject};
use super::validate::{self, Violation};
use super::{Index, Storage};
use crate::derive::{DeriveError, IndexRates, StorageRates};
use crate::text;

/// What ACT makes of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct CompatReading<T> {
    /// What it prints after the banner: errors, and where it gets so far, both echo blocks.
    pub printed: Vec<u8>,
    /// The configuration with its rates; `None`: ACT gives up, with status 255.
    pub outcome: Option<T>,
}

/// Longest name of a device in ACT, bytes.
const DEVICE_NAME_BYTES_MAX: usize = 127;

impl Storage {
    /// Reads `file` as ACT 6 does. `processors` is asked for the number of those online where the
    /// file does not say how many threads there are.
    pub fn parse_compat(
        file: &[u8],
        processors: impl FnOnce() -> u32,
    ) -> CompatReading<(Storage, StorageRates)> {
        let mut printed = Vec::new();
        let outcome = read::<Storage>(file, &mut printed).and_then(|mut it| {
            settle(validate::devices(&it.device_names), &mut printed)?;
            count_threads(&mut it.service_threads, processors, &mut printed);
            settle(validate::storage(&it), &mut printed)?;
            let rates = derived(it.derive_compat(), &mut printed)?;
            printed.extend(text::echo_storage(&it, &rates).into_bytes());
            Some((it, rates))
        });
        CompatReading { printed, outcome }
    }
}

impl Index {
    /// Reads `file` as ACT 6 does. `processors` is asked for the number of those online where the
    /// file does not say how many threads there are.
    pub fn parse_compat(
        file: &[u8],
        processors: impl FnOnce() -> u32,
    ) -> CompatReading<(Index, IndexRates)> {
        let mut printed = Vec::new();
        let outcome = read::<Index>(file, &mut printed).and_then(|mut it| {
            settle(validate::devices(&it.device_names), &mut printed)?;
            count_threads(&mut it.service_threads, processors, &mut printed);
            settle(validate::index(&it), &mut printed)?;
            let rates = derived(it.derive_compat(), &mut printed)?;
            printed.extend(text::echo_index(&it, &rates).into_bytes());
            Some((it, rates))
        });
        CompatReading { printed, outcome }
    }
}

fn read<T: Subject>(file: &[u8], printed: &mut Vec<u8>) -> Option<T> {
    let mut it = T::default();
    for line in grammar::lines(file, T::PIECE_BYTES) {
        let Some(item) = T::ACT_ITEMS.iter().find(|item| item.name.as_bytes() == line.name) else {
            printed.extend_from_slice(b"ERROR: ignoring unknown config item '");
            printed.extend_from_slice(line.name);
            printed.extend_from_slice(b"'\n");
            return None;
        };
        fill(&mut it, item, &line, printed);
    }
    Some(it)
}

fn fill<T: Subject>(it: &mut T, item: &Item<T>, line: &Line<'_>, printed: &mut Vec<u8>) {
    let word = grammar::words(line.rest, grammar::is_blank).next();
    match item.value {
        ItemValue::Devices => add_devices(it, line.rest, printed),
        ItemValue::Count(field) => *field(it) = count(word, printed),
        ItemValue::Flag(field) => *field(it) = word.is_some_and(|word| word[0] == b'y'),
        ItemValue::Sizes(_) | ItemValue::Test(_) | ItemValue::Legacy(_) => {}
    }
}

fn add_devices<T: Subject>(it: &mut T, rest: &[u8], printed: &mut Vec<u8>) {
    let separates = |byte| grammar::is_blank(byte) || byte == b',' || byte == b';';
    for name in grammar::words(rest, separates) {
        let bad = if name.len() > DEVICE_NAME_BYTES_MAX {
            Some([b"ERROR: bad device name '", name, b"'\n"].concat())
        } else if it.devices().len() == T::DEVICES_MAX {
            Some(b"ERROR: too many device names\n".to_vec())
        } else {
            None
        };
        if let Some(message) = bad {
            printed.extend(message);
            it.devices().clear();
            return;
        }
        it.devices().push(String::from_utf8_lossy(name).into_owned());
    }
}

/// C's `strtoul`, whose result ACT compares with the largest 32-bit number.
fn count(word: Option<&[u8]>, printed: &mut Vec<u8>) -> u32 {
    let Some(word) = word else {
        printed.extend_from_slice(b"ERROR: missing integer config value\n");
        return 0;
    };
    let blanks = word.iter().take_while(|byte| matches!(byte, 0x0b | 0x0c)).count();
    let (negative, digits) = match &word[blanks..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let mut value = Some(0u64);
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        let digit = u64::from(digit - b'0');
        value = value.and_then(|value| value.checked_mul(10)?.checked_add(digit));
    }
    let value = match value {
        None => u64::MAX,
        Some(value) if negative => value.wrapping_neg(),
        Some(value) => value,
    };
    u32::try_from(value).unwrap_or_else(|_| {
        printed.extend_from_slice(b"ERROR: ");
        printed.extend_from_slice(word);
        printed.extend_from_slice(b" overflows unsigned int\n");
        0
    })
}

fn count_threads(threads: &mut u32, processors: impl FnOnce() -> u32, printed: &mut Vec<u8>) {
    if *threads == 0 {
        let processors = processors();
        printed.extend(format!("detected {processors} CPUs\n\n").into_bytes());
        *threads = processors.saturating_mul(5);
    }
}

fn settle(violation: Option<Violation>, printed: &mut Vec<u8>) -> Option<()> {
    match violation {
        None => Some(()),
        Some(Violation { item, .. }) => {
            let message = format!("ERROR: invalid or missing configuration of '{item}'\n");
            printed.extend(message.into_bytes());
            None
        }
    }
}

fn derived<T>(rates: Result<T, DeriveError>, printed: &mut Vec<u8>) -> Option<T> {
    rates
        .map_err(|error| {
            let said = error.compat_text().map_or(error.to_string(), str::to_owned);
            printed.extend(format!("ERROR: {said}\n").into_bytes());
        })
        .ok()
}
