//! An open store with the thread that reaps its answers: what all objects of Python's share.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use entresol_host::{Failure, Given, HostedOptions, HostedStore, Request, Waiter};
use entresol_tier::Operation;
use entresol_tree::Session;
use parking_lot::Mutex;

use crate::answers::{Answers, Reply, Waiting, Waits};
use crate::failed::Failed;

/// A store as objects of Python's lead to it. It is closed with the last of them, if nobody did.
#[derive(Debug)]
pub(crate) struct Engine {
    host: Arc<HostedStore<Answers>>,
    waits: Arc<Waits>,
    path: String,
    /// The process that opened it: threads do not go along with a fork.
    process: u32,
    closed: AtomicBool,
    reaper: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Opens the store that `options` name, or makes it.
    pub(crate) fn open(options: &HostedOptions) -> Result<Engine, Failed> {
        let path = options.devices.clone();
        let host = HostedStore::open(options).map_err(|failure| refused(&path, &failure))?;
        let waits = Arc::default();
        let (store, slots) = (Arc::clone(&host), Arc::clone(&waits));
        let reaper = std::thread::Builder::new()
            .name("store reaper".to_owned())
            .spawn(move || reap(&store, &slots));
        let reaper = match reaper {
            Ok(thread) => thread,
            Err(error) => {
                host.close()?;
                return Err(Failed::other(format!("{path}: cannot start a thread: {error}")));
            }
        };
        Ok(Engine {
            host,
            waits,
            path,
            process: process::id(),
            closed: AtomicBool::new(false),
            reaper: Mutex::new(Some(reaper)),
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The store, as long as it may be used.
    pub(crate) fn host(&self) -> Result<&HostedStore<Answers>, Failed> {
        if self.is_closed() {
            return Err(Failed::closed(&self.path));
        }
        self.check_process()?;
        Ok(&self.host)
    }

    /// Does one operation in the caller's thread.
    pub(crate) fn ask(&self, operation: Operation<'_>) -> Result<Reply, Failed> {
        match self.begin(operation, Waiter::Caller)? {
            Begun::Answered(reply) => self.checked(reply),
            Begun::Waits(waiting) => self.checked(waiting.one()),
        }
    }

    /// Begins one operation of several, which the store answers side by side.
    pub(crate) fn begin(
        &self,
        operation: Operation<'_>,
        waiter: Waiter,
    ) -> Result<Begun<'_>, Failed> {
        let host = self.host()?;
        let waiting = self.waits.begin();
        let request = Request { token: waiting.token, now_ms: 0, operation, waiter };
        let mut reply = None;
        host.begin(&request, &mut |answer| {
            reply = Some(Reply::of(answer));
            Given::AtOnce
        });
        Ok(reply.map_or_else(|| Begun::Waits(waiting), Begun::Answered))
    }

    /// Takes the answer of an operation that was begun.
    pub(crate) fn finish(&self, begun: Begun<'_>) -> Result<Reply, Failed> {
        match begun {
            Begun::Answered(reply) => self.checked(reply),
            Begun::Waits(waiting) => self.checked(waiting.one()),
        }
    }

    /// Has a job done; its answers.
    pub(crate) fn job(
        &self,
        begin: impl FnOnce(&HostedStore<Answers>, u64) -> Result<(), Failure>,
    ) -> Result<Vec<Reply>, Failed> {
        let host = self.host()?;
        let waiting = self.waits.begin();
        begin(host, waiting.token).map_err(|failure| self.said(Failed::from(failure)))?;
        let mut replies = waiting.all();
        if let Some(last) = replies.pop() {
            replies.push(self.checked(last)?);
        }
        Ok(replies)
    }

    /// Has work done with a session of the ordered tables.
    pub(crate) fn with_tables<T>(
        &self,
        work: impl FnOnce(&mut Session) -> entresol_tier::Result<T>,
    ) -> Result<T, Failed> {
        let done = self.host()?.with_tables(work);
        let done = done.map_err(|failure| self.said(Failed::from(failure)))?;
        done.map_err(|error| self.said(Failed::from(error)))
    }

    /// Has work done that needs room for changes of ordered tables.
    pub(crate) fn change_tables<T>(
        &self,
        work: impl FnMut(&mut Session) -> entresol_tier::Result<T>,
    ) -> Result<T, Failed> {
        let done = self.host()?.change_tables(work);
        done.map_err(|failure| self.said(Failed::from(failure)))
    }

    /// Finishes what was begun, syncs, and makes the next opening fast.
    pub(crate) fn close(&self) -> Result<(), Failed> {
        self.check_process()?;
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let closed = self.host.close();
        if let Some(reaper) = self.reaper.lock().take() {
            // A thread that panicked has said so.
            let _ = reaper.join();
        }
        closed.map_err(Failed::from)
    }

    fn checked(&self, reply: Reply) -> Result<Reply, Failed> {
        match reply {
            Reply::Failed(failed) => Err(self.said(failed)),
            reply => Ok(reply),
        }
    }

    /// A failure as callers are told it: what a store says that was closed meanwhile, it says of a
    /// failed write, too.
    pub(crate) fn said(&self, failed: Failed) -> Failed {
        let was_closed = failed.is_poisoned() && self.is_closed();
        if was_closed { Failed::closed(&self.path) } else { failed }
    }

    fn check_process(&self) -> Result<(), Failed> {
        let here = process::id();
        if here == self.process {
            return Ok(());
        }
        Err(Failed::other(format!(
            "{}: process {} opened the store, and this is {here}, a fork of it; open a store in \
             the one process that uses it, and start workers by `spawn`",
            self.path, self.process
        )))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // There is nobody left to tell; a fork leaves the store to the process that opened it.
        let _ = self.close();
    }
}

/// What became of an operation so far.
#[derive(Debug)]
pub(crate) enum Begun<'e> {
    /// It is done.
    Answered(Reply),
    /// The one who reaps has its answer, now or later.
    Waits(Waiting<'e>),
}

/// Gives answers to those that wait, until the store is closed.
fn reap(host: &HostedStore<Answers>, waits: &Waits) {
    loop {
        match host.reap(|answers| answers.deliver(waits)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(failure) => waits.fail(&Failed::from(failure)),
        }
    }
    waits.fail(&Failed::other("the store was closed before it answered".to_owned()));
}

/// What is said of a store that cannot be opened.
fn refused(path: &str, failure: &Failure) -> Failed {
    let failed = Failed::from(failure);
    let failed = if failed.names(path) { failed } else { failed.about(path) };
    match failure {
        Failure::Store(error) if error.is_forceable() => {
            failed.with_advice("`mode=\"reformat\"` does")
        }
        _ => failed,
    }
}
