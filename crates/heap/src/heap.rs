//! The handle of an open heap.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use crate::backing::{Backing, FileBacking};
use crate::core::{Core, empty_record};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{PAGE_BYTES, SIZES_MAX, SIZES_OFFSET};
use crate::heap_file::no_words;
use crate::keeper;
use crate::log::Goal;
use crate::opening;
use crate::options::{Access, CreateOptions, Medium, OpenOptions};
use crate::read_guard::ReadGuard;
use crate::transaction::{self, Transaction};

/// An open heap. Cheap to clone; all clones are the same heap, and any thread may use any of them.
///
/// A **handle** is the offset of an allocation from the heap's base, in bytes: the same in every
/// process and after every opening. 0 is none.
///
/// Stores are made in place, in the process's own memory, where all threads see them at once. They
/// reach the file with the commit of the transaction that named them, and never otherwise.
/// Transactions do not isolate: two that change the same bytes must be kept apart by the program.
#[derive(Clone)]
pub struct Heap {
    owner: Arc<Owner>,
}

struct Owner {
    core: Arc<Core>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Heap {
    /// Makes a heap in a new file.
    ///
    /// Errors: `Exists`; `Full` if the file system has no room; `InvalidInput` for sizes that leave
    /// no page for data.
    pub fn create(path: &Path, options: &CreateOptions) -> Result<Heap> {
        let plan = opening::plan(options)?;
        let is_encrypted = options.cipher.is_some();
        let medium = medium_of(path, options.medium, is_encrypted)?;
        let backing = FileBacking::create(path)?;
        let made = opening::format(&backing, &plan, options.cipher.as_ref())
            .and_then(|()| sync_directory(path))
            .and_then(|()| backing.with_medium(medium, plan.limit_bytes));
        match made.and_then(|backing| Heap::start(Arc::new(backing), &opened_as(options), true)) {
            Ok(heap) => Ok(heap),
            Err(error) => {
                // Made by this call, and worth nothing; the error at hand says more than another.
                let _removed = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Opens the heap in a file, and recovers it if it was not closed.
    ///
    /// Errors: `NotFound`; `InUse`, with the process that has it; `Incompatible` for another kind
    /// of heap or something else; `Corrupt`, with what would be lost by a repair; `WrongKey` unless
    /// an encrypted heap is opened with the cipher that it was made with, and any other with none.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Heap> {
        let backing = FileBacking::open(path, options.access)?;
        let superblock = opening::read_superblock(&backing)?;
        let medium = medium_of(path, options.medium, superblock.cipher.is_some())?;
        let backing = backing.with_medium(medium, superblock.limit_bytes)?;
        Heap::start(Arc::new(backing), options, options.access == Access::ReadWrite)
    }

    /// Makes a heap on a backing of zeros. It starts no thread: commits do what a thread would.
    pub fn create_on(backing: Arc<dyn Backing>, options: &CreateOptions) -> Result<Heap> {
        let plan = opening::plan(options)?;
        opening::format(&*backing, &plan, options.cipher.as_ref())?;
        Heap::start(backing, &opened_as(options), false)
    }

    /// Opens the heap on a backing. It starts no thread: commits do what a thread would.
    pub fn open_on(backing: Arc<dyn Backing>, options: &OpenOptions) -> Result<Heap> {
        Heap::start(backing, options, false)
    }

    fn start(backing: Arc<dyn Backing>, options: &OpenOptions, has_keeper: bool) -> Result<Heap> {
        let core = Arc::new(opening::open(backing, options, has_keeper)?);
        let thread = if has_keeper { Some(keeper::start(&core)?) } else { None };
        Ok(Heap { owner: Arc::new(Owner { core, thread: Mutex::new(thread) }) })
    }

    /// Makes everything committed durable, brings it into its place in the file and lets others
    /// open the heap. Other clones find zeros; transactions in progress can only be aborted.
    /// What dropping the last clone does without telling of errors.
    pub fn close(self) -> Result<()> {
        let has_others = Arc::strong_count(&self.owner) > 1;
        self.owner.close(has_others)
    }

    /// As [`Heap::close`], where other threads may be using clones and the memory itself: until the
    /// last clone is dropped the address space stays where it is, with zeros in it, so that nothing
    /// they read or store does harm, and nothing of it reaches the file.
    pub fn close_under_users(&self) -> Result<()> {
        self.owner.close(true)
    }

    /// On return everything committed before survives power loss, as far as the medium does.
    pub fn sync(&self) -> Result<()> {
        self.core().log.sync().map(drop)
    }

    /// Where offset 0 is in this process. It never moves. Only bytes from the first handle on, up
    /// to the size, may be touched.
    pub fn base(&self) -> *mut u8 {
        self.core().memory.base()
    }

    /// Bytes from offset 0 to the end; grows and shrinks.
    pub fn size_bytes(&self) -> u64 {
        self.core().size.load(Ordering::Acquire)
    }

    /// The most it may grow to, bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.core().limit
    }

    /// Where data begins: the lowest handle there can be.
    pub fn data_offset(&self) -> u64 {
        self.core().data_offset
    }

    /// The kind that it was created with.
    pub fn label(&self) -> [u8; 16] {
        self.core().superblock.lock().label
    }

    /// What tells it from all others.
    pub fn heap_id(&self) -> [u8; 16] {
        self.core().superblock.lock().heap_id
    }

    /// The name of the cipher that encrypts it; `None` if nothing does.
    pub fn cipher(&self) -> Option<String> {
        let encryption = self.core().file.encryption.as_ref()?;
        Some(encryption.cipher().name().to_owned())
    }

    /// The handle that everything begins with; 0 until a transaction sets it.
    pub fn root(&self) -> u64 {
        self.core().root()
    }

    /// Begins a transaction. It belongs to no thread.
    pub fn begin(&self) -> Transaction {
        Transaction::new(self.clone())
    }

    /// Whether `handle` is that of a live allocation. One that is freed in a transaction is not
    /// live while the transaction lasts.
    pub fn is_live(&self, handle: u64) -> bool {
        self.usable_bytes(handle).is_some()
    }

    /// How many bytes the allocation has, at least those asked for; `None` if it is not live.
    pub fn usable_bytes(&self, handle: u64) -> Option<u64> {
        let found = self.core().allocator.lock().find(handle);
        found.map(|block| block.bytes)
    }

    /// Visits handle and usable bytes of every allocation that was live when this began.
    pub fn visit_live(&self, mut visit: impl FnMut(u64, u64)) {
        let mut live = Vec::new();
        self.core().allocator.lock().visit(|handle, bytes| live.push((handle, bytes)));
        live.into_iter().for_each(|(handle, bytes)| visit(handle, bytes));
    }

    /// Handles of live allocations from `from` on in ascending order; empty if there are none. At
    /// least `most`, if there are so many: go on behind the last one.
    pub fn live_from(&self, from: u64, most: usize) -> Vec<u64> {
        self.core().allocator.lock().list_from(from, most)
    }

    /// From now on allocations of exactly `bytes` are exactly so large, in this process and after
    /// every opening. Returns false if there is no room for another size, or if the size is of
    /// those that are exact anyway as runs of pages.
    pub fn register_size(&self, bytes: u64) -> Result<bool> {
        let core = self.core();
        if bytes == 0 || bytes > crate::allocator::SMALL_BYTES_MAX {
            return Ok(false);
        }
        let _one_at_a_time = core.registering.lock();
        let sizes = opening::registered_sizes(&core.memory);
        if sizes.contains(&bytes) || core.allocator.lock().is_exact(bytes) {
            return Ok(true);
        }
        if sizes.len() as u64 == SIZES_MAX {
            return Ok(false);
        }
        let word = SIZES_OFFSET + sizes.len() as u64 * 8;
        let mut transaction = self.begin();
        transaction.store_word(word, bytes);
        transaction.commit()?;
        core.allocator.lock().register(bytes);
        Ok(true)
    }

    /// Makes the current bytes of `ranges`, each offset and length, durable now. No transaction:
    /// after power loss all of them are there or none.
    pub fn persist(&self, ranges: &[(u64, u64)]) -> Result<()> {
        let core = self.core();
        let mut record = empty_record();
        for (offset, length) in ranges {
            core.check_range(*offset, *length)?;
            transaction::gather(&core.memory, *offset, offset + length, &mut record);
        }
        let end = core.append(&mut record)?;
        core.log.settle(end, Goal::Durable, Duration::ZERO)?;
        core.settle(end, crate::Durability::Sync)
    }

    /// Makes the heap at least `bytes` large, if it is smaller. Errors: `Full` beyond its limit, or
    /// if the file system has no room.
    pub fn grow(&self, bytes: u64) -> Result<()> {
        self.core().log.check()?;
        self.core().grow(bytes.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES))
    }

    /// Gives free room at the end back to the file system, down to `bytes`; returns the size.
    pub fn shrink(&self, bytes: u64) -> Result<u64> {
        self.core().log.check()?;
        self.core().shrink(bytes)
    }

    /// Brings everything committed into its place in the file. The heap does so by itself when its
    /// log is half full.
    pub fn checkpoint(&self) -> Result<()> {
        self.core().checkpoint()
    }

    /// Copies bytes out. Errors: `InvalidInput` outside the heap's data.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.core().check_range(offset, out.len() as u64)?;
        self.core().memory.read(offset, out);
        Ok(())
    }

    /// The word at `offset`, in one piece where that is a multiple of 8, acquiring what was stored
    /// before it. Errors: `InvalidInput` outside the heap's data.
    pub fn load_u64(&self, offset: u64) -> Result<u64> {
        self.core().check_range(offset, 8)?;
        Ok(self.core().memory.load(offset))
    }

    /// Blocks freed from now on are not reused as long as the guard lives.
    pub fn guard(&self) -> ReadGuard {
        ReadGuard::new(self.clone())
    }

    pub(crate) fn core(&self) -> &Core {
        &self.owner.core
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Heap({})", self.core().name())
    }
}

impl Owner {
    fn close(&self, blanks: bool) -> Result<()> {
        let Some(thread) = self.take_thread() else { return self.core.close(blanks) };
        self.core.signal.stop();
        if thread.join().is_err() {
            let detail = format!("{}: the heap's thread died", self.core.name());
            let error = Error::new(ErrorKind::Io, detail);
            return Err(self.core.log.poison(&error));
        }
        self.core.close(blanks)
    }

    fn take_thread(&self) -> Option<JoinHandle<()>> {
        self.thread.lock().take()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Who wants to know of errors calls `close`.
        let _untold = self.close(false);
    }
}

fn opened_as(options: &CreateOptions) -> OpenOptions {
    OpenOptions {
        label: Some(options.label),
        access: Access::ReadWrite,
        durability: options.durability,
        medium: options.medium,
        cipher: options.cipher.clone(),
    }
}

/// How the file is written. Persistent memory is written by pages, too, if the heap is encrypted.
fn medium_of(path: &Path, asked: Medium, is_encrypted: bool) -> Result<Medium> {
    match (asked, is_encrypted) {
        (Medium::Bytes, true) => Err(no_words(&path.display().to_string())),
        (_, true) => Ok(Medium::Pages),
        (asked, false) => Ok(asked),
    }
}

/// A new name is durable once its directory is synced.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| Error::io(format!("{}: cannot sync", directory.display()), error))
}
