//! Whether a read brought the bytes that were written there.
//!
//! A unit that is being written may come torn, and a unit that was written during the read may come
//! in its older version. So a unit that seems wrong is read again, and counts only if it is still
//! wrong.

use crate::load::content::{Place, Wrong};
use crate::load::ledger::Floors;
use crate::load::session::Session;

/// How often what seems wrong is read again.
const TRIES: usize = 3;

/// The first unit of `bytes`, read from `device` at `offset`, that is not what was written there.
/// `read_again` fills memory with what is there now, and says whether it could.
pub(crate) fn judge(
    session: &Session,
    (device, offset): (usize, u64),
    bytes: &mut [u8],
    read_again: &mut dyn FnMut(&mut [u8]) -> bool,
) -> Option<Wrong> {
    let place = Place { device: session.targets[device].identity(), offset };
    let range = (offset, bytes.len());
    let verify =
        |floors: &Floors, bytes: &[u8]| session.content.verify_against(floors, place, bytes).wrong;
    let mut wrong = verify(&session.floors(device, range), bytes);
    for _ in 0..TRIES {
        if wrong.is_none() {
            break;
        }
        // Looked up before the read begins: what is acknowledged after that need not be in it.
        let floors = session.floors(device, range);
        if !read_again(bytes) {
            break;
        }
        wrong = verify(&floors, bytes);
    }
    wrong
}
