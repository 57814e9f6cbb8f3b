//! Removal of the traces of an interrupted command: children, scratch directories, and files in
//! directories of others.
//!
//! Owners clean up on drop; a signal ends the process without drops, so they also register here.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use entresol_host::is_ignored;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::pipe;

use crate::failure::{Failure, Outcome};

#[derive(Debug, Default)]
struct Registered {
    children: Vec<u32>,
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

static REGISTERED: Mutex<Registered> =
    Mutex::new(Registered { children: Vec::new(), directories: Vec::new(), files: Vec::new() });

/// Exit status of a command that came to an end because a signal asked for it.
pub(crate) const STOPPED: u8 = 130;

/// The signals that ask a load or a server of volumes to come to an end: the end of its terminal
/// is one, unless whoever started it said that it is to go on, as `nohup` does.
pub(crate) fn stop_signals() -> impl Iterator<Item = i32> {
    let hangup = Some(SIGHUP).filter(|signal| !is_ignored(*signal));
    [SIGINT, SIGTERM].into_iter().chain(hangup)
}

/// A flag that the first signal to stop sets; the second ends the process.
pub(crate) fn stop_flag() -> Outcome<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stop_signals() {
        // In this order: the first signal finds the flag not yet set.
        flag::register_conditional_default(signal, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|e| Failure::doing("cannot watch for signals", e))?;
    }
    Ok(stop)
}

/// A stream that can be read once a signal to stop has come. It is told after the flag of
/// [`stop_flag`], if that was asked for before.
pub(crate) fn stop_stream() -> Outcome<UnixStream> {
    let told = |e| Failure::doing("cannot watch for signals", e);
    let (stopped, teller) = UnixStream::pair().map_err(told)?;
    for signal in stop_signals() {
        let teller = teller.try_clone().map_err(told)?;
        pipe::register(signal, teller).map_err(told)?;
    }
    Ok(stopped)
}

/// From now on a signal that ends the process cleans up first.
pub(crate) fn on_signals() -> Outcome<()> {
    const EXIT_OF_A_SIGNAL: i32 = 128;
    let watched = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals =
        Signals::new(watched).map_err(|e| Failure::doing("cannot watch for signals", e))?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Locked to the end, so that no owner comes to one: what a command finds once its
            // children are killed is no result, and it may start no more.
            let registered = registered();
            clean_up(&registered);
            std::process::exit(EXIT_OF_A_SIGNAL + signal);
        }
    });
    Ok(())
}

/// Starts a child, which a signal kills.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    // Locked before: a signal finds a child that is there.
    let mut registered = registered();
    let child = command.spawn()?;
    registered.children.push(child.id());
    Ok(child)
}

/// A child that has ended.
pub(crate) fn forget_child(pid: u32) {
    registered().children.retain(|child| *child != pid);
}

/// A directory to remove on a signal.
pub(crate) fn register_directory(path: &Path) {
    registered().directories.push(path.to_owned());
}

/// A directory that is gone.
pub(crate) fn forget_directory(path: &Path) {
    registered().directories.retain(|directory| directory != path);
}

/// A file to remove on a signal.
pub(crate) fn register_file(path: &Path) {
    registered().files.push(path.to_owned());
}

/// A file that is gone.
pub(crate) fn forget_file(path: &Path) {
    registered().files.retain(|file| file != path);
}

/// A file that a command is making: a signal removes it, unless it was there before, and somebody
/// else's.
pub(crate) struct Unfinished(Option<PathBuf>);

impl Unfinished {
    /// The file at `path`, which is to be made.
    pub(crate) fn new(path: &Path) -> Outcome<Unfinished> {
        on_signals()?;
        let is_new = path.symlink_metadata().is_err();
        let made = is_new.then(|| path.to_owned());
        made.iter().for_each(|path| register_file(path));
        Ok(Unfinished(made))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.iter().for_each(|path| forget_file(path));
    }
}

fn clean_up(registered: &Registered) {
    for child in &registered.children {
        // One that has ended meanwhile needs no signal.
        let _gone = kill(Pid::from_raw(child.cast_signed()), Signal::SIGKILL);
    }
    for file in &registered.files {
        // It may not have been made.
        drop(std::fs::remove_file(file));
    }
    for directory in &registered.directories {
        // There is no one left to tell about a directory that will not go away.
        drop(std::fs::remove_dir_all(directory));
    }
}

fn registered() -> MutexGuard<'static, Registered> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}
