//! The contents of a device, cheap to copy: thousands of crash states are opened from one run.
//!
//! Invariant: pages are shared between copies until one of them writes.

use std::sync::Arc;

/// Bytes of a page.
const PAGE_BYTES: usize = 64 << 10;

/// Contents of a device. Pages never written are absent and read as zeros.
#[derive(Debug, Clone)]
pub struct Image {
    pages: Vec<Option<Arc<[u8]>>>,
    capacity_bytes: u64,
}

impl Image {
    /// Zeros.
    pub fn blank(capacity_bytes: u64) -> Image {
        let count = capacity_bytes.div_ceil(PAGE_BYTES as u64) as usize;
        Image { pages: vec![None; count], capacity_bytes }
    }

    /// Size in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Copies from `offset` on. Panics past the end.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        self.assert_inside(offset, bytes.len());
        let mut done = 0;
        while done < bytes.len() {
            let (page, at, length) = part(offset + done as u64, bytes.len() - done);
            let to = &mut bytes[done..done + length];
            match &self.pages[page] {
                Some(page) => to.copy_from_slice(&page[at..at + length]),
                None => to.fill(0),
            }
            done += length;
        }
    }

    /// Replaces what is at `offset`. Panics past the end.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.assert_inside(offset, bytes.len());
        let mut done = 0;
        while done < bytes.len() {
            let (page, at, length) = part(offset + done as u64, bytes.len() - done);
            let page = self.pages[page].get_or_insert_with(|| vec![0; PAGE_BYTES].into());
            let page = Arc::make_mut(page);
            page[at..at + length].copy_from_slice(&bytes[done..done + length]);
            done += length;
        }
    }

    /// Flips the bits of `mask` in the byte at `offset`.
    pub fn flip(&mut self, offset: u64, mask: u8) {
        let mut byte = [0];
        self.read(offset, &mut byte);
        self.write(offset, &[byte[0] ^ mask]);
    }

    /// All bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.capacity_bytes as usize];
        self.read(0, &mut bytes);
        bytes
    }

    fn assert_inside(&self, offset: u64, length: usize) {
        let end = offset + length as u64;
        assert!(end <= self.capacity_bytes, "{length} bytes at {offset} are past the image");
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Image) -> bool {
        self.capacity_bytes == other.capacity_bytes
            && self.pages.iter().zip(&other.pages).all(|(one, two)| match (one, two) {
                (None, None) => true,
                (Some(one), Some(two)) => Arc::ptr_eq(one, two) || one == two,
                (Some(page), None) | (None, Some(page)) => page.iter().all(|&byte| byte == 0),
            })
    }
}

impl Eq for Image {}

/// Page, position in it and length of the first part of a range.
fn part(offset: u64, length: usize) -> (usize, usize, usize) {
    let at = (offset % PAGE_BYTES as u64) as usize;
    ((offset / PAGE_BYTES as u64) as usize, at, length.min(PAGE_BYTES - at))
}
