//! The thread that looks whether the store's device answers, and says so if it does not.

use std::time::Duration;

use entresol_device::PendingIo;
use entresol_host::{LOOK_INTERVAL, Losses, STOP_INTERVAL, Stalls};
use tracing::{error, warn};

use crate::error::ServeError;
use crate::shared::Shared;

/// Looks at the device until the server stops.
pub(crate) fn watch(shared: &Shared) -> Result<(), ServeError> {
    let (mut stalls, mut losses) = (Stalls::default(), Losses::default());
    let mut looked = Duration::ZERO;
    while !shared.is_stopping() {
        let now = shared.started.elapsed();
        if now >= looked + LOOK_INTERVAL {
            looked = now;
            shared.look();
            let oldest: Vec<PendingIo> = shared.oldest_pending().into_iter().collect();
            stalls.look(&oldest).iter().for_each(|said| warn!("{said}"));
            let store = shared.tier.store();
            let lost = losses.look(store.ground(), store.buffers_remade());
            lost.iter().for_each(|said| error!("{said}"));
        }
        std::thread::park_timeout(STOP_INTERVAL);
    }
    Ok(())
}
