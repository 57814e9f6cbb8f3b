//! Texts and failures that leave the library: {kind: u64, length: u64, bytes}, released by whoever
//! got them.

use std::any::Any;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use entresol_heap::{Error, ErrorKind};

/// The kind of what the system refuses; others are in `kind_of`.
const IO: u64 = 7;
/// The kind of a panic.
pub(crate) const DEFECT: u64 = 8;
/// The kind of a change or view that would have had to wait for another transaction.
const HELD: u64 = 9;
/// The kind of a change that would have had to wait in a circle: the transaction has to be undone.
const CIRCLE: u64 = 13;
/// The kind of a commit after whose failure the transaction is seen as committed.
const UNSETTLED: u64 = 14;
/// Kinds that only stores have.
const BUSY: u64 = 10;
const WRONG_KEY: u64 = 11;
const DEVICE: u64 = 12;

const WORDS_BEFORE: usize = 2;
const WORD_BYTES: usize = 8;

/// Why a function has no result.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: u64,
    pub(crate) sentence: String,
}

impl Failure {
    /// A panic: a defect of this library.
    pub(crate) fn defect(panic: &(dyn Any + Send)) -> Failure {
        Failure::from_host(&entresol_host::Failure::of_panic(panic))
    }

    /// A refused system call.
    pub(crate) fn io(what: &str) -> Failure {
        Failure::system(what, &std::io::Error::last_os_error())
    }

    /// The same, with what the system said.
    pub(crate) fn system(what: &str, error: &std::io::Error) -> Failure {
        Failure { kind: IO, sentence: format!("{what}: {error}") }
    }

    /// What a hosted store said.
    pub(crate) fn from_host(failure: &entresol_host::Failure) -> Failure {
        use entresol_host::Failure as Said;
        match failure {
            Said::Store(error) => {
                Failure { kind: kind_of_store(error.kind()), sentence: error.to_string() }
            }
            Said::System { wanted, source } => Failure::system(wanted, source),
            Said::Defect(said) => {
                let sentence = format!("a defect of the native library: {said}");
                Failure { kind: DEFECT, sentence }
            }
        }
    }
}

impl From<entresol_host::Failure> for Failure {
    fn from(failure: entresol_host::Failure) -> Failure {
        Failure::from_host(&failure)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { kind: kind_of(error.kind()), sentence: error.to_string() }
    }
}

export! {
    /// Releases a text that another function gave.
    entresol_text_release, Java_io_entresol_heap_engine_Jni_textRelease(text) {
        drop(take(text));
        Ok(0)
    }
}

/// Puts a text where the caller can read it; its address.
pub(crate) fn leak(kind: u64, sentence: &str) -> i64 {
    let bytes = sentence.as_bytes();
    let mut words = vec![kind, bytes.len() as u64];
    for chunk in bytes.chunks(WORD_BYTES) {
        let mut word = [0; WORD_BYTES];
        word[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_le_bytes(word).to_le());
    }
    let words = Box::leak(words.into_boxed_slice());
    words.as_ptr() as i64
}

/// Takes a text back.
pub(crate) fn take(address: i64) -> (u64, String) {
    let first = address as *mut u64;
    // SAFETY: `leak` made it, with its length in the second word.
    let length = unsafe { first.add(1).read() } as usize;
    let count = WORDS_BEFORE + length.div_ceil(WORD_BYTES);
    // SAFETY: as above; nobody else refers to it any more.
    let words = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, count)) };
    let bytes: Vec<u8> =
        words[WORDS_BEFORE..].iter().flat_map(|word| word.to_le().to_le_bytes()).collect();
    (words[0], String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// The caller's bytes.
///
/// # Safety
/// `length` bytes must be readable at `address` for as long as the result is used.
pub(crate) unsafe fn bytes<'a>(address: i64, length: i64) -> &'a [u8] {
    if length == 0 {
        // The address of nothing may be anything, 0 too.
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(address as *const u8, length as usize) }
}

/// The caller's path.
///
/// # Safety
/// As of `bytes`.
pub(crate) unsafe fn path<'a>(address: i64, length: i64) -> &'a Path {
    // SAFETY: the caller's promise.
    Path::new(OsStr::from_bytes(unsafe { bytes(address, length) }))
}

fn kind_of(kind: ErrorKind) -> u64 {
    match kind {
        ErrorKind::Full => 1,
        ErrorKind::InvalidInput | ErrorKind::NotLive | ErrorKind::ReadOnly => 2,
        ErrorKind::InUse => 3,
        ErrorKind::Corrupt => 4,
        ErrorKind::Poisoned | ErrorKind::Closed => 5,
        ErrorKind::Incompatible | ErrorKind::WrongKey => 6,
        ErrorKind::Held => HELD,
        ErrorKind::Busy => CIRCLE,
        ErrorKind::Unsettled => UNSETTLED,
        _ => IO,
    }
}

fn kind_of_store(kind: entresol_tier::ErrorKind) -> u64 {
    use entresol_tier::ErrorKind as Kind;
    match kind {
        Kind::Full => 1,
        Kind::InvalidInput => 2,
        Kind::Corrupt => 4,
        Kind::Poisoned => 5,
        Kind::Incompatible => 6,
        Kind::Busy => BUSY,
        Kind::WrongKey => WRONG_KEY,
        Kind::Device => DEVICE,
        _ => IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A C program's empty key is often at 0, which no slice may begin at.
    #[test]
    fn no_bytes_may_be_at_any_address() {
        for address in [0, 1, -1] {
            // SAFETY: nothing is read there.
            assert!(unsafe { bytes(address, 0) }.is_empty());
        }
    }

    #[test]
    fn texts_of_every_length_come_back() {
        for length in 0..20 {
            let sentence = "ä-sentence-of-twenty".chars().take(length).collect::<String>();
            assert_eq!(take(leak(3, &sentence)), (3, sentence));
        }
    }
}
