//! Encryption of a heap at rest: the trait for ciphers, and the cipher that comes with it.
//!
//! A cipher makes a fresh key for each opening of the heap, and never chooses a nonce: the heap
//! does, and no two nonces are equal under one key.

use std::fmt;
use std::sync::Arc;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

use crate::error::Result;

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = NONCE_LEN;
/// Bytes of an authentication tag.
pub const TAG_BYTES: usize = 16;

/// What encrypts the bytes of heaps: a secret, and how keys come from it.
pub trait Cipher: fmt::Debug + Send + Sync {
    /// What it is called in the heap's file, at most 16 bytes: a heap is opened by a cipher of the
    /// name that it was made with.
    fn name(&self) -> &str;

    /// The key that belongs to `context`: always the same for the same secret and context, and for
    /// no other. It is asked for at each opening, and for each former opening whose bytes are read.
    fn key(&self, context: &[u8]) -> Result<Arc<dyn CipherKey>>;
}

/// A key in use: authenticated encryption with associated data.
pub trait CipherKey: Send + Sync {
    /// Encrypts `bytes`, at most 4 GiB, in place; returns the authentication tag of the result and
    /// of `associated`. Never called twice with one nonce.
    fn encrypt(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        bytes: &mut [u8],
    ) -> [u8; TAG_BYTES];

    /// Decrypts `bytes` in place if they and `associated` are what `tag` was made of; false if they
    /// are not, and then `bytes` hold nothing of use.
    fn decrypt(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        tag: &[u8; TAG_BYTES],
        bytes: &mut [u8],
    ) -> bool;
}

/// AES-256 in Galois/counter mode. Keys in use are derived from the secret by HKDF with SHA-256.
#[derive(Clone)]
pub struct Aes256Gcm {
    secret: [u8; 32],
}

/// What HKDF is told besides the secret: nobody else derives the same keys from it.
const DERIVATION: &[u8] = b"entresol heap encryption 1";

impl Aes256Gcm {
    /// The cipher with this secret.
    pub fn new(secret: [u8; 32]) -> Aes256Gcm {
        Aes256Gcm { secret }
    }
}

impl fmt::Debug for Aes256Gcm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aes256Gcm(…)")
    }
}

impl Cipher for Aes256Gcm {
    fn name(&self) -> &'static str {
        "aes-256-gcm"
    }

    fn key(&self, context: &[u8]) -> Result<Arc<dyn CipherKey>> {
        let info = [context];
        let derived = Salt::new(HKDF_SHA256, DERIVATION).extract(&self.secret);
        let key = derived.expand(&info, &AES_256_GCM).map(UnboundKey::from);
        let key = key.expect("HKDF yields 32 bytes, far fewer than its limit");
        Ok(Arc::new(AesKey(LessSafeKey::new(key))))
    }
}

struct AesKey(LessSafeKey);

impl CipherKey for AesKey {
    fn encrypt(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        bytes: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let sealed = self.0.seal_in_place_separate_tag(nonce, Aad::from(associated), bytes);
        let made = sealed.expect("4 GiB are far below the limit of the mode");
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(made.as_ref());
        tag
    }

    fn decrypt(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        tag: &[u8; TAG_BYTES],
        bytes: &mut [u8],
    ) -> bool {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let (tag, aad) = (ring::aead::Tag::from(*tag), Aad::from(associated));
        self.0.open_in_place_separate_tag(nonce, aad, tag, bytes, 0..).is_ok()
    }
}
