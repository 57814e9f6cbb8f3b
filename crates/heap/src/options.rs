//! Options for making and opening heaps, and the promises of a commit.

use std::sync::Arc;

use crate::cipher::Cipher;

/// How a new heap is set up.
#[derive(Debug, Clone)]
pub struct CreateOptions {
    /// Length of the file, bytes; rounded up to pages, and, where the heap may grow, to what the
    /// heap's own structures need at its limit.
    pub bytes: u64,
    /// The most it may grow to, bytes; below `bytes` it never grows. At most 32 TiB.
    pub limit_bytes: u64,
    /// The kind of the heap: whoever opens it names the same one. Zeros for none.
    pub label: [u8; 16],
    /// What commits promise unless they ask for something else.
    pub durability: Durability,
    /// How the file is written.
    pub medium: Medium,
    /// Size of the log, bytes, of which 16 KiB to 1 GiB count; `None` for an eighth of the heap,
    /// 64 KiB to 64 MiB.
    pub log_bytes: Option<u64>,
    /// What tells this heap from all others; `None` draws it.
    pub heap_id: Option<[u8; 16]>,
    /// What encrypts the heap, for ever; `None` for nothing. Then it is written by pages, and all
    /// of its pages are in memory while it is open.
    pub cipher: Option<Arc<dyn Cipher>>,
}

/// How a heap is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The kind of heap that is expected; `None` opens any.
    pub label: Option<[u8; 16]>,
    /// Whether it will be written.
    pub access: Access,
    /// What commits promise unless they ask for something else.
    pub durability: Durability,
    /// How the file is written.
    pub medium: Medium,
    /// What the heap was encrypted with when it was made; `None` for nothing.
    pub cipher: Option<Arc<dyn Cipher>>,
}

/// Whether a heap is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Alone, for reading and writing.
    ReadWrite,
    /// For reading, beside others that read; the file is not changed.
    ReadOnly,
}

/// How a heap's file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// By stores where the file is persistent memory (a mapping with `MAP_SYNC`) or memory of the
    /// system (tmpfs), which keeps no more of a sync than of a store; else by pages.
    Auto,
    /// By system calls and `fdatasync`.
    Pages,
    /// By stores and fences. On a file that is not persistent memory this survives the death of
    /// the process and nothing else.
    Bytes,
}

/// What a commit that returned survives. On a medium of stores every level is `Sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Power loss: synced before the commit returns, with the commits of other threads.
    #[default]
    Sync,
    /// As `Sync`; who syncs first waits so long for others to join.
    Group {
        /// Microseconds.
        delay_us: u32,
    },
    /// The death of the process at once, power loss after so long.
    Buffered {
        /// Milliseconds between syncs.
        epoch_ms: u32,
    },
    /// Nothing until `sync` or `close`; then everything before.
    None,
}

impl Default for CreateOptions {
    fn default() -> CreateOptions {
        CreateOptions {
            bytes: 64 << 20,
            limit_bytes: 0,
            label: [0; 16],
            durability: Durability::Sync,
            medium: Medium::Auto,
            log_bytes: None,
            heap_id: None,
            cipher: None,
        }
    }
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            label: None,
            access: Access::ReadWrite,
            durability: Durability::Sync,
            medium: Medium::Auto,
            cipher: None,
        }
    }
}
