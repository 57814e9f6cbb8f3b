//! Changes of a volume while it serves: its options, its size, its creation and removal.
//!
//! A resize or a removal has the volume alone: earlier requests have ended, and later ones wait and
//! find the changed volume.

use std::rc::Rc;

use entresol_flash::{Condition, Key, Operation};

use crate::backing::BackingRequest;
use crate::cache::META_SPACE;
use crate::cache::care::Dirty;
use crate::cache::clean::{drain, settle_state};
use crate::cache::core::Core;
use crate::cache::open::set_gate;
use crate::cache::overwrite::OVERWRITES_MAX;
use crate::cache::share::Share;
use crate::cache::volume::Volume;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::{BLOCK_BYTES, KINDS, VolumeRecord, key_of, overwrite_key};
use crate::regions::Regions;
use crate::types::Tuning;

/// Changes options.
pub(crate) async fn tune(core: &Rc<Core>, volume: &Rc<Volume>, tuning: &Tuning) -> Result<()> {
    let before = volume.record.borrow().clone();
    let options = tuning.of(&before.options)?;
    let record = VolumeRecord { options: options.clone(), ..before.clone() };
    put_record(core, volume, &record).await?;
    // Others may have changed something else of it meanwhile.
    let present = volume.record.borrow().options.clone();
    volume.record.borrow_mut().options = tuning.of(&present)?;
    if options.share_bytes != before.options.share_bytes {
        let mut share = Share::new(options.share_bytes);
        if options.share_bytes > 0 {
            share.found(volume.blocks());
        }
        *volume.share.borrow_mut() = share;
    }
    if options.admission_hits != before.options.admission_hits {
        *volume.admission.borrow_mut() = volume.admission_of(options.admission_hits);
    }
    set_gate(core);
    Ok(())
}

/// Takes the size that the backing has now.
pub(crate) async fn resize(core: &Rc<Core>, volume: &Rc<Volume>) -> Result<()> {
    drain(core, volume).await?;
    settle_state(core, volume).await?;
    volume.with_backing(|backing| backing.grow())?;
    let (bytes, identity) = volume.with_backing(|backing| {
        let found = backing.description();
        (found.bytes, found.identity.clone())
    });
    if bytes == volume.bytes.get() {
        return Ok(());
    }
    // Regions are cut otherwise: all of them are closed first.
    volume.ask(&core.tasks, BackingRequest::Flush).await?;
    core.sync().await?;
    while volume.regions_writer.get() {
        volume.regions_changed.wait(&core.tasks).await;
    }
    volume.regions_writer.set(true);
    let record = VolumeRecord { bytes, identity, ..volume.record.borrow().clone() };
    let grown = take_size(core, volume, &record).await;
    volume.regions_writer.set(false);
    volume.regions_changed.raise(&core.tasks);
    grown
}

async fn take_size(core: &Rc<Core>, volume: &Rc<Volume>, record: &VolumeRecord) -> Result<()> {
    let regions = Regions::new(record.bytes);
    let key = key_of("regions/", volume.id);
    core.put_pinned(Key::new(META_SPACE, &key), &regions.closed().encode()).await?;
    put_record(core, volume, record).await?;
    let blocks = record.bytes.div_ceil(BLOCK_BYTES);
    let held = volume.held.borrow().grown(blocks);
    *volume.held.borrow_mut() = held;
    *volume.regions.borrow_mut() = regions;
    volume.record.borrow_mut().bytes = record.bytes;
    volume.record.borrow_mut().identity.clone_from(&record.identity);
    volume.bytes.set(record.bytes);
    Ok(())
}

async fn put_record(core: &Rc<Core>, volume: &Rc<Volume>, record: &VolumeRecord) -> Result<()> {
    let key = key_of("volume/", volume.id);
    core.put_pinned(Key::new(META_SPACE, &key), &record.encode()).await?;
    core.sync().await
}

/// Takes a volume off the cache.
pub(crate) async fn remove(core: &Rc<Core>, volume: &Rc<Volume>, dirty: Dirty) -> Result<()> {
    let blocks = volume.log.borrow().dirty_blocks();
    if blocks > 0 && dirty == Dirty::Keep {
        let detail = format!(
            "volume {}: {blocks} blocks are dirty, and only in this cache; write them back first \
             (`entresol volume flush {}`)",
            volume.name, volume.name
        );
        return Err(Error::new(ErrorKind::Io, detail));
    }
    volume.retired.set(true);
    volume.kick.raise(&core.tasks);
    while !volume.cleaner_stopped.get() {
        volume.cleaned.wait(&core.tasks).await;
    }
    core.ahead.borrow_mut().forget(volume.id, &(0..volume.blocks()));
    core.store.drop_space(volume.clean_space())?;
    core.store.drop_space(volume.log_space())?;
    let places = (0..OVERWRITES_MAX).map(|place| overwrite_key(volume.id, place));
    for key in places.chain(KINDS.iter().map(|kind| key_of(kind, volume.id))) {
        let key = Key::new(META_SPACE, &key);
        let condition = Condition::Always;
        core.flash(Operation::Remove { key, condition }).await?;
    }
    core.sync().await?;
    core.volumes.borrow_mut()[usize::from(volume.id.0)] = None;
    core.gate.forget(volume.id, core.now.get());
    core.room.raise(&core.tasks);
    Ok(())
}
