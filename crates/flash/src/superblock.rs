//! The root on the device: two copies, of which the newer one that verifies counts.
//!
//! Invariants:
//! 1. A write goes over the older copy, between two syncs: one copy that verifies always stands.
//! 2. Each change is written to both, so that a copy that is damaged later does not bring back what
//!    was true before.

use entresol_device::{Device, IoBuffer};
use entresol_planted::planted;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{FORMAT_VERSION, FORMAT_VERSION_FIRST, SUPERBLOCK_BYTES, Superblock};

/// The root as it stands on a device.
#[derive(Debug)]
pub(crate) struct Root {
    pub superblock: Superblock,
    /// What is said of the other copy if it does not verify.
    pub damage: Option<String>,
}

/// The newer of the two copies that verify. `None` if the device is blank.
pub(crate) fn read(device: &dyn Device) -> Result<Option<Root>> {
    let mut newest: Option<Superblock> = None;
    let mut damage = None;
    let mut claimed = None;
    let mut blank = false;
    let mut unread = None;
    for copy in 0..2 {
        let mut buffer = IoBuffer::aligned(SUPERBLOCK_BYTES);
        if let Err(error) = device.read_at(copy * SUPERBLOCK_BYTES as u64, &mut buffer) {
            // As a damaged one: each change is written to both.
            damage = Some(damage_of(device, copy));
            unread = Some(error);
            continue;
        }
        claimed = claimed.or(Superblock::claimed_version(&buffer));
        blank |= buffer.iter().all(|byte| *byte == 0);
        match Superblock::decode(&buffer) {
            None => damage = Some(damage_of(device, copy)),
            Some(found) if newest.as_ref().is_none_or(|n| found.generation > n.generation) => {
                newest = Some(found);
            }
            Some(_) => {}
        }
    }
    if let (None, Some(error)) = (&newest, unread) {
        return Err(error.into());
    }
    match (newest, claimed) {
        (Some(superblock), _) => Ok(Some(Root { superblock, damage })),
        (None, None) => Ok(None),
        (None, Some(version)) if !(FORMAT_VERSION_FIRST..=FORMAT_VERSION).contains(&version) => {
            Err(Error::new(
                ErrorKind::Incompatible,
                format!(
                    "{} holds a store of format version {version}; this program reads versions \
                     {FORMAT_VERSION_FIRST} to {FORMAT_VERSION}",
                    device.name(),
                ),
            ))
        }
        // The making of a store writes one copy after the other, and was cut short.
        (None, Some(_)) if blank => Ok(None),
        (None, Some(_)) => Err(Error::unless_forced(
            ErrorKind::Corrupt,
            format!(
                "both superblock copies of {} (bytes 0 and {SUPERBLOCK_BYTES}) are damaged; \
                 restore the device from a copy, or force a new store to be made over it",
                device.name()
            ),
        )),
    }
}

fn damage_of(device: &dyn Device, copy: u64) -> String {
    let start = copy * SUPERBLOCK_BYTES as u64;
    format!(
        "the superblock copy at bytes {start} to {} of {} does not verify: the medium or another \
         program damaged it, or a crash cut its writing short",
        start + SUPERBLOCK_BYTES as u64 - 1,
        device.name()
    )
}

/// Writes `superblock` to `device`: a generation over the older copy, then one over the other.
pub(crate) fn write(device: &dyn Device, superblock: &mut Superblock) -> Result<()> {
    write_copy(device, superblock)?;
    write_copy(device, superblock)
}

/// Writes the next generation of `superblock` over the older copy, and syncs.
fn write_copy(device: &dyn Device, superblock: &mut Superblock) -> Result<()> {
    superblock.generation += 1;
    let bytes = superblock.encode().ok_or_else(|| too_many_floors(superblock.floors.len()))?;
    let mut buffer = IoBuffer::aligned(SUPERBLOCK_BYTES);
    buffer.copy_from_slice(&bytes);
    let copy = superblock.generation % 2;
    if !planted!("superblock-flipped-before-sync") {
        device.sync()?;
    }
    device.write_at(copy * SUPERBLOCK_BYTES as u64, &buffer)?;
    device.sync()?;
    Ok(())
}

pub(crate) fn too_many_floors(dropped: usize) -> Error {
    let detail = format!(
        "{dropped} partitions and spaces that were dropped are still on the medium beside older \
         entries, and the superblock names no more of them; let maintain() run and try again, or \
         drop a whole space"
    );
    Error::new(ErrorKind::Busy, detail)
}
