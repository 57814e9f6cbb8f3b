//! Encryption of an open heap: keys, nonces and stamps.
//!
//! Invariants:
//! 1. No nonce is used twice under one key. Each opening for writing draws a salt and has a key of
//!    its own, derived from the secret, the heap's identity and the salt: openings that do not know
//!    of each other (copies of the file, a recovery that was cut short) never share one. Within an
//!    opening records are told apart by their positions, superblocks by their sequences, and
//!    everything else by a number that only grows.
//! 2. Bytes that decrypt were encrypted by somebody with the secret, for that place of that heap.
//!
//! An attacker who can write the file can put back older bytes of the whole file, or of pages and
//! cipher table together. Nothing notices that.

pub(crate) mod format;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_planted::planted;
use parking_lot::Mutex;

use crate::cipher::{Cipher, CipherKey, TAG_BYTES};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{PAGE_BYTES, RECORD_HEADER_BYTES, RecordHeader, RecordKind, Superblock};
use format::{CipherMark, Places, RECORD_OPEN, SALT_BYTES, Stamp, Subject, stamp_at};

type Salt = [u8; SALT_BYTES];

/// The keys of an open heap. Thread-safe.
pub(crate) struct Encryption {
    cipher: Arc<dyn Cipher>,
    heap_id: [u8; 16],
    salt: Salt,
    key: Arc<dyn CipherKey>,
    /// Given out so far.
    numbers: AtomicU64,
    /// Keys of former openings; a leaf among the locks, never held while a cipher is asked.
    former: Mutex<BTreeMap<Salt, Arc<dyn CipherKey>>>,
}

/// Keys of former openings that are remembered.
const FORMER_MAX: usize = 64;
/// Most bytes of one piece.
pub(crate) const PIECE_BYTES_MAX: u64 = 4 << 30;

impl Encryption {
    /// A fresh key for an opening of the heap.
    pub(crate) fn new(cipher: &Arc<dyn Cipher>, heap_id: [u8; 16]) -> Result<Encryption> {
        let salt = crate::random_id::draw_id()?;
        Ok(Encryption {
            cipher: Arc::clone(cipher),
            heap_id,
            salt,
            key: cipher.key(&context(heap_id, salt))?,
            numbers: AtomicU64::new(0),
            former: Mutex::default(),
        })
    }

    pub(crate) fn cipher(&self) -> &Arc<dyn Cipher> {
        &self.cipher
    }

    /// Refuses a superblock of another key or cipher, or one that somebody without the key made.
    pub(crate) fn verify(&self, heap: &str, superblock: &Superblock) -> Result<()> {
        let Some(mark) = &superblock.cipher else {
            let detail = format!("{heap}: the heap is not encrypted; open it without a key");
            return Err(Error::new(ErrorKind::WrongKey, detail));
        };
        if mark.name != name_of(&*self.cipher)? {
            let detail = format!(
                "{heap}: the heap is encrypted with {}; the key given is for {}",
                text_of(mark),
                self.cipher.name()
            );
            return Err(Error::new(ErrorKind::WrongKey, detail));
        }
        let of_nothing = Subject::Check.nonce(0);
        let telling = self.cipher.key(&context(self.heap_id, [0; SALT_BYTES]))?;
        if !telling.decrypt(&of_nothing, &[], &mark.check, &mut []) {
            let detail = format!("{heap}: the heap was made with another key; give that one");
            return Err(Error::new(ErrorKind::WrongKey, detail));
        }
        let nonce = Subject::Superblock.nonce(superblock.sequence);
        let key = self.key_of(mark.salt)?;
        let associated = superblock.authenticated();
        if !key.decrypt(&nonce, &associated, &mark.tag, &mut []) {
            let detail = format!(
                "{heap}: the superblock was changed by somebody without the key; restore a backup"
            );
            return Err(Error::new(ErrorKind::Corrupt, detail));
        }
        Ok(())
    }

    /// Marks a superblock as this opening's; it is not changed any more before it is written.
    pub(crate) fn sign(&self, superblock: &mut Superblock) -> Result<()> {
        let name = name_of(&*self.cipher)?;
        let check = match &superblock.cipher {
            Some(mark) => mark.check,
            None => self.check()?,
        };
        superblock.cipher = Some(CipherMark { name, check, salt: self.salt, tag: [0; TAG_BYTES] });
        let nonce = Subject::Superblock.nonce(superblock.sequence);
        let made = self.key.encrypt(&nonce, &superblock.authenticated(), &mut []);
        if let Some(mark) = &mut superblock.cipher {
            mark.tag = made;
        }
        Ok(())
    }

    /// What the secret makes of nothing: it tells secrets apart. Made once for each heap.
    fn check(&self) -> Result<[u8; TAG_BYTES]> {
        let key = self.cipher.key(&context(self.heap_id, [0; SALT_BYTES]))?;
        Ok(key.encrypt(&Subject::Check.nonce(0), &[], &mut []))
    }

    /// Encrypts a record in place: room for its header, then its body.
    pub(crate) fn encrypt_record(&self, header: &RecordHeader, record: &mut [u8]) {
        format::encode_record(header, record);
        let (head, body) = record.split_at_mut(RECORD_HEADER_BYTES as usize);
        let nonce = Subject::Record.nonce(header.position);
        let tag = self.key.encrypt(&nonce, &head[RECORD_OPEN], body);
        head[..TAG_BYTES].copy_from_slice(&tag);
    }

    /// The key for records of the superblock's generation.
    pub(crate) fn record_key(&self, superblock: &Superblock) -> Result<Arc<dyn CipherKey>> {
        match &superblock.cipher {
            Some(mark) => self.key_of(mark.salt),
            None => Ok(Arc::clone(&self.key)),
        }
    }

    /// Encrypts what stands at `offset`.
    pub(crate) fn encrypt(&self, subject: Subject, offset: u64, bytes: &mut [u8]) -> Stamp {
        let number = match planted!("heap-nonce-reused") {
            true => 0,
            false => self.numbers.fetch_add(1, Ordering::Relaxed),
        };
        let tag = self.key.encrypt(&subject.nonce(number), &offset.to_le_bytes(), bytes);
        Stamp { salt: self.salt, number, tag }
    }

    /// Decrypts what stands at `offset`; false if it is not what was encrypted there.
    pub(crate) fn decrypt(
        &self,
        subject: Subject,
        offset: u64,
        stamp: &Stamp,
        bytes: &mut [u8],
    ) -> Result<bool> {
        let key = self.key_of(stamp.salt)?;
        let nonce = subject.nonce(stamp.number);
        let is_whole = key.decrypt(&nonce, &offset.to_le_bytes(), &stamp.tag, bytes);
        Ok(is_whole || planted!("heap-page-tag-ignored"))
    }

    /// A page of the cipher table, encrypted: its own stamp, then those of `stamps`.
    pub(crate) fn table_image(&self, offset: u64, stamps: &[Stamp]) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES as usize];
        for (slot, stamp) in stamps.iter().enumerate() {
            stamp.encode(&mut page[stamp_at(slot as u64)]);
        }
        let (own, rest) = page.split_at_mut(format::STAMP_BYTES);
        self.encrypt(Subject::Table, offset, rest).encode(own);
        page
    }

    /// The stamps of a page of the cipher table; `None` if it is not whole.
    pub(crate) fn table_stamps(&self, offset: u64, page: &mut [u8]) -> Result<Option<Vec<Stamp>>> {
        let (own, rest) = page.split_at_mut(format::STAMP_BYTES);
        let stamp = Stamp::decode(own);
        if !self.decrypt(Subject::Table, offset, &stamp, rest)? {
            return Ok(None);
        }
        Ok(Some((0..format::STAMPS).map(|slot| Stamp::decode(&page[stamp_at(slot)])).collect()))
    }

    /// Pages of the cipher table from `first` on, for a heap of `size` bytes, that say that all
    /// pages are zeros; with their offsets.
    pub(crate) fn blank_tables(
        &self,
        places: Places,
        first: u64,
        size: u64,
    ) -> impl Iterator<Item = (u64, Vec<u8>)> {
        (first..places.tables(size)).map(move |table| {
            let offset = places.table_offset(table);
            (offset, self.table_image(offset, &[Stamp::BLANK; format::STAMPS as usize]))
        })
    }

    fn key_of(&self, salt: Salt) -> Result<Arc<dyn CipherKey>> {
        if salt == self.salt {
            return Ok(Arc::clone(&self.key));
        }
        if let Some(key) = self.former.lock().get(&salt) {
            return Ok(Arc::clone(key));
        }
        let key = self.cipher.key(&context(self.heap_id, salt))?;
        let mut former = self.former.lock();
        if former.len() == FORMER_MAX {
            former.clear();
        }
        former.insert(salt, Arc::clone(&key));
        Ok(key)
    }
}

/// Decrypts the record at the beginning of `bytes` if one stands whole at `position`: its header,
/// and its body.
pub(crate) fn decrypt_record(
    key: &dyn CipherKey,
    bytes: &[u8],
    position: u64,
    generation: u32,
) -> Option<(RecordHeader, Vec<u8>)> {
    let header = format::decode_record(bytes, position, generation)?;
    let head = RECORD_HEADER_BYTES as usize;
    let mut body = match header.kind {
        RecordKind::Padding => Vec::new(),
        _ => bytes.get(head..header.length as usize)?.to_vec(),
    };
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&bytes[..TAG_BYTES]);
    let nonce = Subject::Record.nonce(position);
    let is_whole = key.decrypt(&nonce, &bytes[RECORD_OPEN], &tag, &mut body);
    is_whole.then_some((header, body))
}

/// What a key is derived for.
fn context(heap_id: [u8; 16], salt: Salt) -> [u8; 32] {
    let mut context = [0; 32];
    context[..16].copy_from_slice(&heap_id);
    context[16..].copy_from_slice(&salt);
    context
}

fn name_of(cipher: &dyn Cipher) -> Result<[u8; 16]> {
    let mut name = [0; 16];
    let text = cipher.name().as_bytes();
    let Some(place) = name.get_mut(..text.len()).filter(|place| !place.is_empty()) else {
        let detail = format!(
            "a cipher called `{}`, {} bytes; expected a name of 1 to 16 bytes",
            cipher.name(),
            text.len()
        );
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    };
    place.copy_from_slice(text);
    Ok(name)
}

/// The name in a mark, for messages.
pub(crate) fn text_of(mark: &CipherMark) -> String {
    mark.name.escape_ascii().to_string().replace("\\x00", "")
}
