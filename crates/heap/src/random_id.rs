//! Identities that no two heaps share.

use crate::error::{Error, Result};

/// Draws 16 bytes.
///
/// # Errors
/// The system gives none.
pub(crate) fn draw_id() -> Result<[u8; 16]> {
    let mut id = [0; 16];
    let drawn = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut id));
    drawn.map_err(|error| Error::io("cannot draw a random number for the heap", error))?;
    Ok(id)
}
