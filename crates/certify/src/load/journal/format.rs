//! How a journal lies in its file: a header, then entries of 32 bytes. Little-endian; every part
//! ends with a CRC-32C of what is before it. A cut may leave a part of the last entry.

/// How names of journals end.
pub(super) const EXTENSION: &str = "actjournal";

const MAGIC: &[u8; 8] = b"ENTRJNL\x01";
const HEAD_BYTES: usize = 8 + 8 + 4;
const ENTRY_BYTES: usize = 32;
const CRC_BYTES: usize = 4;

/// One write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Position in the list of targets.
    pub(crate) device: u16,
    pub(crate) generation: u32,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// What happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Begun = 1,
    Acknowledged = 2,
}

/// A journal as far as it is whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Journalled {
    pub(super) run: u64,
    pub(super) identities: Vec<u32>,
    pub(super) events: Vec<(Event, Entry)>,
}

/// Magic, run, number of targets and their identities.
pub(super) fn header(run: u64, identities: &[u32]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(run.to_le_bytes());
    bytes.extend((identities.len() as u32).to_le_bytes());
    identities.iter().for_each(|identity| bytes.extend(identity.to_le_bytes()));
    let crc = crc32c::crc32c(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

impl Entry {
    pub(super) fn encode(&self, event: Event) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = event as u8;
        bytes[2..4].copy_from_slice(&self.device.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.length.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..ENTRY_BYTES - CRC_BYTES]);
        bytes[ENTRY_BYTES - CRC_BYTES..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<(Event, Entry)> {
        let body = whole(bytes)?;
        let event = match body[0] {
            1 => Event::Begun,
            2 => Event::Acknowledged,
            _ => return None,
        };
        let entry = Entry {
            device: number(&body[2..4]) as u16,
            generation: number(&body[4..8]) as u32,
            offset: number(&body[8..16]),
            length: number(&body[16..20]) as u32,
        };
        Some((event, entry))
    }
}

/// Reads a journal up to the first part that is not whole; `None`: its header is not.
pub(super) fn read(bytes: &[u8]) -> Option<Journalled> {
    let head = bytes.get(..HEAD_BYTES).filter(|head| head.starts_with(MAGIC))?;
    let run = number(&head[8..16]);
    let count = number(&head[16..20]) as usize;
    let end = count.checked_mul(4)?.checked_add(HEAD_BYTES + CRC_BYTES)?;
    let header = whole(bytes.get(..end)?)?;
    let identities = header[HEAD_BYTES..].chunks(4).map(|chunk| number(chunk) as u32).collect();
    let events = bytes[end..].chunks_exact(ENTRY_BYTES).map_while(Entry::decode).collect();
    Some(Journalled { run, identities, events })
}

/// What is before the checksum at the end, if that fits.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let (body, crc) = bytes.split_at_checked(bytes.len().checked_sub(CRC_BYTES)?)?;
    (number(crc) as u32 == crc32c::crc32c(body)).then_some(body)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_read_back_up_to_where_they_were_cut() {
        let entry = Entry { device: 3, generation: 77, offset: 1 << 40, length: 131_072 };
        let mut bytes = header(0x1234, &[9, 8]);
        let start = bytes.len();
        bytes.extend(entry.encode(Event::Begun));
        bytes.extend(entry.encode(Event::Acknowledged));
        let read_whole = read(&bytes).unwrap();
        assert_eq!((read_whole.run, read_whole.identities), (0x1234, vec![9, 8]));
        let expected = [(Event::Begun, entry), (Event::Acknowledged, entry)];
        assert_eq!(read_whole.events, expected);
        for length in 0..bytes.len() {
            let events = read(&bytes[..length]).map(|cut| cut.events.len());
            let expected = length.checked_sub(start).map(|rest| rest / ENTRY_BYTES);
            assert_eq!(events, expected, "cut at {length}");
        }
        bytes[start + 9] ^= 1;
        assert_eq!(read(&bytes).unwrap().events, []);
    }
}
