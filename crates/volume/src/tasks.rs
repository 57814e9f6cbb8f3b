//! Requests as futures on one thread: each runs until it waits for the cache device, a backing or
//! another request, and goes on in the turn in which that has ended.
//!
//! Invariants:
//! 1. A task is polled only when the operation that it waits for has ended (or was ended while the
//!    task ran).
//! 2. No cell is borrowed across a wait.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A request under way.
pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

/// The tasks of one cache.
#[derive(Default)]
pub(crate) struct Tasks {
    running: RefCell<Vec<Option<TaskFuture>>>,
    unused: RefCell<Vec<usize>>,
    ready: RefCell<VecDeque<usize>>,
    current: Cell<usize>,
}

impl Tasks {
    /// Begins a task; it runs in the next [`Tasks::run`].
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let mut running = self.running.borrow_mut();
        let place = self.unused.borrow_mut().pop().unwrap_or_else(|| {
            running.push(None);
            running.len() - 1
        });
        running[place] = Some(Box::pin(future));
        self.ready.borrow_mut().push_back(place);
    }

    /// Runs what can go on until nothing can; whether anything did.
    pub(crate) fn run(&self) -> bool {
        let mut ran = false;
        loop {
            let Some(place) = self.ready.borrow_mut().pop_front() else { return ran };
            let Some(mut future) = self.running.borrow_mut()[place].take() else { continue };
            ran = true;
            self.current.set(place);
            match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => self.running.borrow_mut()[place] = Some(future),
                Poll::Ready(()) => self.unused.borrow_mut().push(place),
            }
        }
    }

    /// Drops every task where it stands.
    pub(crate) fn abandon(&self) {
        let abandoned = std::mem::take(&mut *self.running.borrow_mut());
        self.unused.borrow_mut().clear();
        self.ready.borrow_mut().clear();
        drop(abandoned);
    }

    fn wake(&self, place: usize) {
        self.ready.borrow_mut().push_back(place);
    }
}

/// The end of one operation, awaited by one task.
pub(crate) struct Reply<T> {
    tasks: Rc<Tasks>,
    state: Rc<ReplyState<T>>,
}

struct ReplyState<T> {
    value: Cell<Option<T>>,
    waits: Cell<Option<usize>>,
}

/// Where the end of an operation is told.
pub(crate) struct Answer<T> {
    tasks: Rc<Tasks>,
    state: Rc<ReplyState<T>>,
}

/// A reply that will come, and where it is to be given.
pub(crate) fn reply<T>(tasks: &Rc<Tasks>) -> (Answer<T>, Reply<T>) {
    let state = Rc::new(ReplyState { value: Cell::new(None), waits: Cell::new(None) });
    let answer = Answer { tasks: Rc::clone(tasks), state: Rc::clone(&state) };
    (answer, Reply { tasks: Rc::clone(tasks), state })
}

impl<T> Answer<T> {
    /// The operation has ended.
    pub(crate) fn give(self, value: T) {
        self.state.value.set(Some(value));
        if let Some(task) = self.state.waits.take() {
            self.tasks.wake(task);
        }
    }
}

impl<T> Future for Reply<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        match self.state.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                self.state.waits.set(Some(self.tasks.current.get()));
                Poll::Pending
            }
        }
    }
}

/// Something that changes now and then, awaited by any number of tasks.
#[derive(Default)]
pub(crate) struct Signal {
    waits: RefCell<Vec<usize>>,
}

impl Signal {
    /// Wakes all that wait.
    pub(crate) fn raise(&self, tasks: &Tasks) {
        for task in self.waits.borrow_mut().drain(..) {
            tasks.wake(task);
        }
    }

    /// Waits for the next [`Signal::raise`].
    pub(crate) fn wait<'s>(&'s self, tasks: &'s Tasks) -> SignalWait<'s> {
        SignalWait { signal: self, tasks, begun: false }
    }
}

/// A wait for a signal.
pub(crate) struct SignalWait<'s> {
    signal: &'s Signal,
    tasks: &'s Tasks,
    begun: bool,
}

impl Future for SignalWait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.begun {
            return Poll::Ready(());
        }
        self.begun = true;
        self.signal.waits.borrow_mut().push(self.tasks.current.get());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_goes_on_when_what_it_waits_for_has_ended() {
        let tasks = Rc::new(Tasks::default());
        let (answer, told) = reply::<u32>(&tasks);
        let signal = Rc::new(Signal::default());
        let seen = Rc::new(Cell::new(0));
        let (by_task, raised, within) = (Rc::clone(&seen), Rc::clone(&signal), Rc::clone(&tasks));
        tasks.spawn(async move {
            by_task.set(told.await);
            raised.wait(&within).await;
            by_task.set(99);
        });
        assert!(tasks.run());
        assert!(!tasks.run());
        answer.give(7);
        assert!(tasks.run());
        assert_eq!(seen.get(), 7);
        signal.raise(&tasks);
        tasks.run();
        assert_eq!(seen.get(), 99);
    }
}
