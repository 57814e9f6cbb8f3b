//! The contents that a medium may have after power failed.
//!
//! Each write that no sync covered is kept, dropped, or torn into kept and dropped sectors. The
//! unit that was being written when power failed may hold garbage, and so may everything else in
//! that unit.

use entresol_random::SplitMix;

use crate::image::Image;

/// One of the things that may have happened to the writes that no sync covered. Numbers are
/// positions in the list of those writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashChoice {
    /// All of them were kept. Also what a killed process leaves behind.
    KeepAll,
    /// None of them was.
    DropAll,
    /// All but one.
    DropOne(usize),
    /// None but one.
    KeepOne(usize),
    /// All were kept, but one of them in part.
    TearOne(usize, Tear),
    /// A fate for each of them, drawn from a seed.
    Random(u64),
}

/// How a write is torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tear {
    /// So many sectors at its beginning were kept.
    Prefix(usize),
    /// So many sectors at its end were kept.
    Suffix(usize),
    /// All was kept but the unit around this sector, which holds garbage.
    Garbage(usize),
}

/// The fate of a sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped,
    Garbage,
}

/// One write that no sync covered.
pub(crate) struct Unsynced<'a> {
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
    /// Sectors that no later durable write has replaced.
    pub(crate) live: Vec<bool>,
}

/// Sizes that fates apply to, bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Granularity {
    pub(crate) sector: usize,
    pub(crate) unit: u64,
}

/// Choices for writes of so many sectors each: all and none, each alone kept, dropped and torn.
pub(crate) fn choices(sectors: &[usize]) -> Vec<CrashChoice> {
    let mut choices = vec![CrashChoice::KeepAll];
    if sectors.is_empty() {
        return choices;
    }
    choices.push(CrashChoice::DropAll);
    for (write, &count) in sectors.iter().enumerate() {
        if sectors.len() > 1 {
            choices.push(CrashChoice::DropOne(write));
            choices.push(CrashChoice::KeepOne(write));
        }
        let mut tears = vec![Tear::Garbage(0)];
        if count > 1 {
            tears.extend([Tear::Garbage(count - 1), Tear::Prefix(1), Tear::Suffix(count - 1)]);
        }
        if count > 3 {
            tears.extend([Tear::Prefix(count / 2), Tear::Prefix(count - 1), Tear::Suffix(1)]);
        }
        choices.extend(tears.into_iter().map(|tear| CrashChoice::TearOne(write, tear)));
    }
    choices
}

/// Lets `choice` happen to `writes`, on top of what is durable.
pub(crate) fn apply(
    image: &mut Image,
    writes: &[Unsynced<'_>],
    choice: CrashChoice,
    granularity: Granularity,
) {
    let seed = if let CrashChoice::Random(seed) = choice { seed } else { 0 };
    let mut random = SplitMix::new(seed);
    for (position, write) in writes.iter().enumerate() {
        let count = write.live.len();
        let fates = match choice {
            CrashChoice::KeepAll => vec![Fate::Kept; count],
            CrashChoice::DropAll => vec![Fate::Dropped; count],
            CrashChoice::DropOne(one) => vec![one_or(position == one, Fate::Dropped); count],
            CrashChoice::KeepOne(one) => vec![one_or(position != one, Fate::Dropped); count],
            CrashChoice::TearOne(one, tear) if one == position => torn(count, tear),
            CrashChoice::TearOne(..) => vec![Fate::Kept; count],
            CrashChoice::Random(_) => drawn(count, &mut random),
        };
        apply_one(image, write, &fates, granularity);
    }
}

fn apply_one(image: &mut Image, write: &Unsynced<'_>, fates: &[Fate], granularity: Granularity) {
    let Granularity { sector, unit } = granularity;
    for (index, fate) in fates.iter().enumerate() {
        let offset = write.offset + (index * sector) as u64;
        if write.live[index] && *fate == Fate::Kept {
            image.write(offset, &write.bytes[index * sector..(index + 1) * sector]);
        }
    }
    for (index, fate) in fates.iter().enumerate() {
        if write.live[index] && *fate == Fate::Garbage {
            let offset = (write.offset + (index * sector) as u64) / unit * unit;
            let mut garbage = vec![0; unit.min(image.capacity_bytes() - offset) as usize];
            SplitMix::new(offset ^ index as u64).fill(&mut garbage);
            image.write(offset, &garbage);
        }
    }
}

fn one_or(is_one: bool, fate: Fate) -> Fate {
    if is_one { fate } else { Fate::Kept }
}

fn torn(count: usize, tear: Tear) -> Vec<Fate> {
    let fate = |index: usize| match tear {
        Tear::Prefix(kept) => one_or(index >= kept, Fate::Dropped),
        Tear::Suffix(kept) => one_or(index + kept < count, Fate::Dropped),
        Tear::Garbage(sector) => one_or(index == sector, Fate::Garbage),
    };
    (0..count).map(fate).collect()
}

fn drawn(count: usize, random: &mut SplitMix) -> Vec<Fate> {
    match random.below(4) {
        0 => vec![Fate::Kept; count],
        1 => vec![Fate::Dropped; count],
        2 => torn(count, Tear::Prefix(random.below(count as u64) as usize)),
        _ => {
            let mut fates: Vec<Fate> =
                (0..count).map(|_| one_or(random.one_in(2), Fate::Dropped)).collect();
            if random.one_in(4) {
                fates[random.below(count as u64) as usize] = Fate::Garbage;
            }
            fates
        }
    }
}
