//! foyer: a hybrid cache, memory before flash. It drops records when its flush queue is full, so
//! its load is paced, and its misses are a part of its figures.
//!
//! Direct I/O through its `psync` engine; 64 tasks on four runtime threads. Each record takes 4 KiB
//! on flash, so it gets a device of 2.6 times the data: room for every record.

use foyer::{
    BlockEngineConfig, DeviceBuilder, FsDeviceBuilder, HybridCache, HybridCacheBuilder,
    HybridCachePolicy, PsyncIoEngineConfig, RecoverMode,
};
use tokio::runtime::{Builder, Runtime};

use crate::contestant::{Contestant, Fault, Result, Settings};
use crate::plan::Phase;
use crate::turn::{Action, Turn};

struct Foyer {
    runtime: Runtime,
    cache: HybridCache<Vec<u8>, Vec<u8>>,
}

/// Opens foyer in the directory.
pub fn open(settings: &Settings) -> Result<Box<dyn Contestant>> {
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    let plan = &settings.plan;
    let cache_bytes = usize::try_from(plan.cache_bytes)?;
    let pool_bytes = usize::try_from(plan.memory_bytes / 10)?;
    let capacity = usize::try_from((plan.data_bytes() * 26 / 10).next_multiple_of(16 << 20))?;
    let device = FsDeviceBuilder::new(settings.directory.join("foyer"))
        .with_capacity(capacity)
        .with_direct(true)
        .build()?;
    let engine = BlockEngineConfig::new(device)
        .with_flushers(2)
        .with_buffer_pool_size(pool_bytes)
        .with_submit_queue_size_threshold(pool_bytes * 2);
    let cache = runtime.block_on(async {
        HybridCacheBuilder::new()
            .with_policy(HybridCachePolicy::WriteOnInsertion)
            .memory(cache_bytes)
            .with_shards(16)
            .with_weighter(|key: &Vec<u8>, value: &Vec<u8>| key.len() + value.len())
            .storage()
            .with_io_engine_config(PsyncIoEngineConfig::new())
            .with_engine_config(engine)
            .with_recover_mode(RecoverMode::None)
            .build()
            .await
    })?;
    Ok(Box::new(Foyer { runtime, cache }))
}

impl Contestant for Foyer {
    fn workers(&self, phase: Phase) -> usize {
        match phase {
            Phase::Load => 2,
            // A cache promises nothing that a sync could keep.
            Phase::Synced => 0,
            _ => 64,
        }
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        self.runtime.block_on(async {
            let tasks: Vec<_> = turns
                .into_iter()
                .map(|turn| tokio::spawn(play_turn(self.cache.clone(), turn)))
                .collect();
            let mut done = Vec::with_capacity(tasks.len());
            for task in tasks {
                done.push(task.await??);
            }
            Ok(done)
        })
    }

    fn load_rate(&self) -> Option<f64> {
        Some(40_000.0)
    }

    fn flush(&self) -> Result<()> {
        self.runtime.block_on(self.cache.storage().wait());
        Ok(())
    }
}

async fn play_turn(
    cache: HybridCache<Vec<u8>, Vec<u8>>,
    mut turn: Turn,
) -> std::result::Result<Turn, Fault> {
    while let Some(ticket) = turn.next() {
        if ticket.action == Action::Get {
            let entry = cache.get(ticket.key.as_slice()).await?;
            turn.got(&ticket, entry.as_ref().map(|entry| entry.value().as_slice()));
        } else {
            let mut value = Vec::new();
            turn.fill(&ticket, &mut value);
            cache.insert(ticket.key.to_vec(), value);
            turn.put(&ticket);
            // An insert never waits: without this the flushers would not get their turn.
            tokio::task::yield_now().await;
        }
    }
    Ok(turn)
}
