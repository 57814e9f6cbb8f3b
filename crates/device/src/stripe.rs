//! Several devices as one: consecutive units go to them in turn.
//!
//! Invariants:
//! 1. A range within one unit is one request to one member; a longer one is one request for each
//!    unit it touches.
//! 2. The first unit of every member is the stripe's own and holds its label (see `label.rs`), so
//!    that a wrong order, a missing member or a member of another stripe is noticed.
//! 3. A sync is a sync of every member.
//!
//! There is no redundancy: a lost member loses everything.

mod label;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use crate::device::{Counters, Device, Geometry, Queue, QueueOptions, WriteMode};
use crate::error::{Error, ErrorKind, Result};
use crate::file::{Force, Growth};
use crate::foreign::check_unknown;
use crate::pending::PendingIo;
use crate::place::{Ground, Place};
use crate::system;

use label::Label;
use queue::StripeQueue;

/// First bytes of every member of a stripe.
pub const STRIPE_MAGIC: &[u8; 8] = label::MAGIC;

/// A stripe over several devices.
pub struct StripeDevice {
    members: Vec<Arc<dyn Device>>,
    layout: Layout,
    geometry: Geometry,
    counters: Arc<Counters>,
    name: Arc<str>,
}

/// How a stripe is made and opened.
#[derive(Debug, Clone, Copy)]
pub struct StripeOptions {
    /// Bytes that go to one member before the next; for a new stripe. One that exists has its own.
    pub unit_bytes: u64,
    /// Whether labels of other stripes may be overwritten.
    pub force: Force,
    /// Whether a stripe is made where there is none. If not, opening writes nothing.
    pub makes: bool,
    /// Whether a stripe that is there takes what its members have more by now.
    pub growth: Growth,
}

impl Default for StripeOptions {
    fn default() -> StripeOptions {
        StripeOptions { unit_bytes: 1 << 20, force: Force::No, makes: true, growth: Growth::Never }
    }
}

/// Where bytes are.
#[derive(Debug, Clone, Copy)]
struct Layout {
    members: u64,
    unit_bytes: u64,
}

/// A range of a request that is on one member.
#[derive(Debug, Clone, Copy)]
struct Part {
    member: usize,
    /// On the member, bytes.
    offset: u64,
    /// Within the request, bytes.
    at: usize,
    length: usize,
}

impl StripeDevice {
    /// Opens the stripe over `members`, in whatever order; makes it if none of them has a label.
    ///
    /// Errors: `Foreign` if labels are of different stripes, or not all have one; `InvalidInput`
    /// for members too small or too few, or a unit that is not a multiple of theirs.
    pub fn open(members: Vec<Arc<dyn Device>>, options: StripeOptions) -> Result<StripeDevice> {
        let name = members.iter().map(|member| member.name()).collect::<Vec<_>>().join(",");
        if members.is_empty() || members.len() > label::MEMBERS_MAX {
            let detail = format!(
                "a stripe over {} devices; expected 1 to {}",
                members.len(),
                label::MEMBERS_MAX
            );
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        let labels =
            members.iter().map(|member| Label::read(&**member)).collect::<Result<Vec<_>>>()?;
        let is_new = labels.iter().all(Option::is_none)
            || options.force == Force::Yes && !belong_together(&labels);
        if is_new && !options.makes {
            let detail = format!("{name}: there is no stripe over these devices to open");
            return Err(Error::new(ErrorKind::NotFound, detail));
        }
        let (members, label) = if is_new {
            if options.force == Force::No {
                let behind = label::LABEL_BYTES as u64;
                members.iter().try_for_each(|member| check_unknown(&**member, behind))?;
            }
            let label = make(&name, &members, options.unit_bytes)?;
            (members, label)
        } else {
            let (members, label) = arrange(&name, members, &labels)?;
            let grows = options.makes && options.growth == Growth::ToCapacity;
            let label = if grows { grow(&members, label)? } else { label };
            (members, label)
        };
        let largest = |size: fn(&Geometry) -> u32| {
            members.iter().map(|member| size(&member.geometry())).max().unwrap_or(0)
        };
        let geometry = Geometry {
            capacity_bytes: label.member_bytes * members.len() as u64,
            sector_bytes: largest(|geometry| geometry.sector_bytes),
            sync_unit_bytes: largest(|geometry| geometry.sync_unit_bytes),
        };
        let layout = Layout { members: members.len() as u64, unit_bytes: label.unit_bytes };
        let (counters, name) = (Arc::new(Counters::default()), name.into());
        Ok(StripeDevice { members, layout, geometry, counters, name })
    }

    /// Bytes that go to one member before the next.
    pub fn unit_bytes(&self) -> u64 {
        self.layout.unit_bytes
    }

    fn queue_over(
        &self,
        options: QueueOptions,
        open: impl Fn(&dyn Device) -> Result<Box<dyn Queue>>,
    ) -> Result<Box<dyn Queue>> {
        options.check(&self.name)?;
        let members = self.members.iter().map(|member| open(&**member)).collect::<Result<_>>()?;
        let stripe = queue::Stripe {
            name: Arc::clone(&self.name),
            layout: self.layout,
            geometry: self.geometry,
            counters: Arc::clone(&self.counters),
        };
        Ok(Box::new(StripeQueue::new(stripe, members, options)?))
    }
}

impl Layout {
    /// The parts of a range, in its order.
    fn parts(self, offset: u64, length: usize) -> impl Iterator<Item = Part> {
        let mut at = 0;
        std::iter::from_fn(move || {
            if at == length {
                return None;
            }
            let from = offset + at as u64;
            let (unit, within) = (from / self.unit_bytes, from % self.unit_bytes);
            let part = Part {
                member: (unit % self.members) as usize,
                offset: (unit / self.members + 1) * self.unit_bytes + within,
                at,
                length: ((self.unit_bytes - within) as usize).min(length - at),
            };
            at += part.length;
            Some(part)
        })
    }
}

impl Device for StripeDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn name(&self) -> String {
        self.name.to_string()
    }

    fn oldest_pending(&self, now: Duration) -> Option<PendingIo> {
        let members = self.members.iter();
        members.filter_map(|member| member.oldest_pending(now)).max_by_key(|pending| pending.age)
    }

    fn places(&self) -> Vec<Place> {
        self.members.iter().flat_map(|member| member.places()).collect()
    }

    fn ground(&self) -> Ground {
        self.members.iter().map(|member| member.ground()).fold(Ground::Firm, Ground::or)
    }

    fn is_file(&self) -> bool {
        self.members.iter().any(|member| member.is_file())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.geometry.check_memory(&self.name, offset, buffer)?;
        for Part { member, offset, at, length } in self.layout.parts(offset, buffer.len()) {
            self.counters.count_read(length);
            self.members[member].read_at(offset, &mut buffer[at..at + length])?;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.geometry.check_memory(&self.name, offset, bytes)?;
        for Part { member, offset, at, length } in self.layout.parts(offset, bytes.len()) {
            self.counters.count_write(length, WriteMode::Flushed);
            self.members[member].write_at(offset, &bytes[at..at + length])?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.counters.count_sync();
        self.members.iter().try_for_each(|member| member.sync())
    }

    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.geometry.check(&self.name, offset, length as usize)?;
        for part in self.layout.parts(offset, length as usize) {
            self.members[part.member].discard(part.offset, part.length as u64)?;
        }
        Ok(())
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        self.queue_over(options, |member| member.queue(options))
    }

    fn queue_of_thread(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        self.queue_over(options, |member| member.queue_of_thread(options))
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Labels the members of a new stripe, in the order given.
fn make(name: &str, members: &[Arc<dyn Device>], unit_bytes: u64) -> Result<Label> {
    let geometries = members.iter().map(|member| member.geometry());
    let smallest = geometries.clone().map(|geometry| geometry.capacity_bytes).min().unwrap_or(0);
    let unit_ok = geometries.clone().all(|geometry| {
        unit_bytes > 0 && unit_bytes.is_multiple_of(u64::from(geometry.sync_unit_bytes))
    });
    if !unit_ok || unit_bytes > label::UNIT_BYTES_MAX || smallest / unit_bytes < 2 {
        let detail = format!(
            "{name}: a stripe with units of {unit_bytes} bytes over devices of {smallest} bytes; \
             expected units that are multiples of 4096 (and of the devices' physical blocks), at \
             least two to a device"
        );
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    let mut label = Label {
        set: system::random_bytes()
            .map_err(|source| Error::io(format!("{name}: cannot draw a number"), source))?,
        members: members.len() as u32,
        index: 0,
        unit_bytes,
        member_bytes: bytes_of_member(smallest, unit_bytes),
    };
    for (index, member) in members.iter().enumerate() {
        label.index = index as u32;
        label.write(&**member)?;
    }
    Ok(label)
}

/// Bytes of a member of `capacity_bytes` that a stripe uses: whole units behind the first.
fn bytes_of_member(capacity_bytes: u64, unit_bytes: u64) -> u64 {
    (capacity_bytes / unit_bytes).saturating_sub(1) * unit_bytes
}

/// Takes what all members have more than their labels say; the label from then on. Where units are
/// where they were, and nothing is put into new ones before all labels are written.
fn grow(members: &[Arc<dyn Device>], label: Label) -> Result<Label> {
    let capacities = members.iter().map(|member| member.geometry().capacity_bytes);
    let member_bytes = bytes_of_member(capacities.min().unwrap_or(0), label.unit_bytes);
    let has_room = members.iter().all(|member| label.may_grow(&**member));
    if member_bytes <= label.member_bytes || !has_room {
        return Ok(label);
    }
    let label = Label { member_bytes, ..label };
    for (index, member) in members.iter().enumerate() {
        Label { index: index as u32, ..label }.write_grown(&**member)?;
    }
    Ok(label)
}

/// Puts the members of a stripe that exists into their order.
fn arrange(
    name: &str,
    members: Vec<Arc<dyn Device>>,
    labels: &[Option<Label>],
) -> Result<(Vec<Arc<dyn Device>>, Label)> {
    if !belong_together(labels) {
        let mut detail = format!("{name}: not the members of one stripe:");
        for (member, label) in members.iter().zip(labels) {
            let what = match label {
                None => "no label".to_owned(),
                Some(label) => format!("number {} of {}", label.index + 1, label.members),
            };
            detail.push_str(&format!(" {} has {what};", member.name()));
        }
        detail.push_str(" name all members of one stripe, or force it to lose what is there");
        return Err(Error::new(ErrorKind::Foreign, detail));
    }
    let mut pairs: Vec<(Arc<dyn Device>, Label)> =
        members.into_iter().zip(labels.iter().copied().flatten()).collect();
    pairs.sort_by_key(|(_, label)| label.index);
    let member_bytes = pairs.iter().map(|(_, label)| label.member_bytes).min().unwrap_or(0);
    let label = Label { member_bytes, ..pairs[0].1 };
    for (member, _) in &pairs {
        let capacity = member.geometry().capacity_bytes;
        let needed = label.member_bytes + label.unit_bytes;
        if capacity < needed {
            let detail = format!(
                "{}: {capacity} bytes; the stripe it is a member of needs {needed}",
                member.name()
            );
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
    }
    Ok((pairs.into_iter().map(|(member, _)| member).collect(), label))
}

/// Whether these are the labels of all members of one stripe. Growth that was cut off leaves some
/// as they were.
fn belong_together(labels: &[Option<Label>]) -> bool {
    let Some(Some(first)) = labels.first() else { return false };
    let mut seen = vec![false; labels.len()];
    labels.len() == first.members as usize
        && labels.iter().all(|label| {
            label.is_some_and(|label| {
                label.is_of_stripe(first)
                    && !std::mem::replace(&mut seen[label.index as usize], true)
            })
        })
}
