//! Memory that devices can transfer to and from: aligned, and kept alive while a request is in
//! flight.
//!
//! Invariants:
//! 1. Every buffer starts at a multiple of 4096 bytes.
//! 2. An [`IoBuffer`] is owned by one side at a time: the queue while in flight, then the caller.
//! 3. A [`WriteBuffer`] may be read by the device while its owner appends behind the range in
//!    flight; the owner never changes bytes of a range in flight.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crossbeam_queue::ArrayQueue;

use crate::error::{Error, Result};

/// Alignment of every buffer, bytes.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// Aligned memory of a read. Derefs to exactly the bytes that were asked for.
#[derive(Debug)]
pub struct IoBuffer {
    memory: Option<Memory>,
    length: usize,
    home: Option<Arc<ArrayQueue<Memory>>>,
}
