//! Which entries may enter flash.

/// Which entries may enter flash.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Admission {
    /// All.
    #[default]
    Always,
    /// As many as keep writes to flash under a budget, bytes per second.
    WriteBudget(u64),
}
