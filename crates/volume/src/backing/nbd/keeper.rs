//! The thread that waits for a link: it connects again, and wakes the link's owner at a given
//! moment.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use super::connect::{Connected, Target};
use crate::error::Result;

/// The owner's end of the thread.
pub(super) struct Keeper {
    orders: Option<Sender<Order>>,
    connected: Receiver<Result<Connected>>,
    waker: Arc<mio::Waker>,
    /// When it was told to wake the owner next.
    wakes_at: Cell<Option<Instant>>,
    thread: Option<JoinHandle<()>>,
}

enum Order {
    ConnectAt(Instant),
    WakeAt(Instant),
}

impl Keeper {
    /// Starts the thread; it connects to `target` and wakes by `waker`.
    pub(super) fn start(target: Target, waker: mio::Waker) -> io::Result<Keeper> {
        let waker = Arc::new(waker);
        let (orders, taken) = channel();
        let (tells, connected) = channel();
        let wakes = Arc::clone(&waker);
        let thread = std::thread::Builder::new()
            .name("nbd".to_owned())
            .spawn(move || serve(&target, &taken, &tells, &wakes))?;
        let orders = Some(orders);
        Ok(Keeper { orders, connected, waker, wakes_at: Cell::new(None), thread: Some(thread) })
    }

    /// Has it connect at a moment; [`Keeper::connected`] tells what came of it.
    pub(super) fn connect_at(&self, at: Instant) {
        self.order(Order::ConnectAt(at));
    }

    /// What came of an attempt to connect, once.
    pub(super) fn connected(&self) -> Option<Result<Connected>> {
        self.connected.try_recv().ok()
    }

    /// Has the owner woken at a moment, or before it.
    pub(super) fn wake_at(&self, at: Instant) {
        let known = self.wakes_at.get();
        if known.is_none_or(|known| known > at || known <= Instant::now()) {
            self.wakes_at.set(Some(at));
            self.order(Order::WakeAt(at));
        }
    }

    /// Has the owner's descriptor poll readable.
    pub(super) fn wake_now(&self) {
        self.waker.wake().expect("an event descriptor takes another event");
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            orders.send(order).expect("the thread takes orders until there is nobody to give any");
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It can only have panicked, which was told where it did.
            let _panicked = thread.join();
        }
    }
}

/// Follows orders until nobody can give any. A moment passes late while it connects.
fn serve(
    target: &Target,
    orders: &Receiver<Order>,
    tells: &Sender<Result<Connected>>,
    waker: &mio::Waker,
) {
    let (mut connects_at, mut wakes_at) = (None, None);
    loop {
        let next: Option<Instant> = [connects_at, wakes_at].into_iter().flatten().min();
        let order = match next {
            None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => orders.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match order {
            Ok(Order::ConnectAt(at)) => connects_at = Some(at),
            Ok(Order::WakeAt(at)) => wakes_at = Some(at),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        let connects = connects_at.take_if(|at| *at <= now).is_some();
        // The owner may have gone meanwhile.
        let told = connects && tells.send(target.connect()).is_ok();
        if told || wakes_at.take_if(|at| *at <= now).is_some() {
            waker.wake().expect("an event descriptor takes another event");
        }
    }
}
