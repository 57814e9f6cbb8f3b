//! `entresol heap`: heaps that programs keep their objects in, while no program has them open.

mod backup;
mod check;
mod create;
mod dump;
mod info;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use entresol_heap::{Access, Aes256Gcm, Cipher, Error, ErrorKind, Heap, OpenOptions};
use entresol_tier::EncryptionKey;

use crate::failure::{Failure, Outcome};

/// What is done with heaps.
#[derive(Debug, Subcommand)]
pub(crate) enum HeapCommand {
    /// Make a heap in a new file
    Create(create::CreateArgs),
    /// Sizes and figures of a heap
    Info(info::InfoArgs),
    /// Look for damage, and give up what is damaged
    Check(check::CheckArgs),
    /// List the live allocations, or show the bytes of one
    Dump(dump::DumpArgs),
    /// Copy a heap into a new file
    Backup(backup::BackupArgs),
}

/// Does it.
pub(crate) fn run(command: &HeapCommand) -> Outcome<()> {
    match command {
        HeapCommand::Create(args) => create::run(args),
        HeapCommand::Info(args) => info::run(args),
        HeapCommand::Check(args) => check::run(args),
        HeapCommand::Dump(args) => dump::run(args),
        HeapCommand::Backup(args) => backup::run(args),
    }
}

/// What a heap is encrypted with.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// File with the key of a heap that is encrypted: 32 bytes, or 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl KeyArgs {
    fn cipher(&self) -> Outcome<Option<Arc<dyn Cipher>>> {
        let Some(path) = &self.key_file else { return Ok(None) };
        let wrong =
            |detail: String| Failure::CannotRun(format!("--key-file {}: {detail}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let key = EncryptionKey::parse(&bytes).map_err(|error| wrong(error.to_string()))?;
        Ok(Some(Arc::new(Aes256Gcm::new(key.0))))
    }
}

/// Opens the heap for reading; what its log holds is seen, and the file is not changed.
fn open(path: &Path, key: &KeyArgs) -> Outcome<Heap> {
    let cipher = key.cipher()?;
    let options = OpenOptions { access: Access::ReadOnly, cipher, ..OpenOptions::default() };
    Ok(Heap::open(path, &options)?)
}

/// The kind of a heap as text: printable bytes as they are.
fn label_text(label: [u8; 16]) -> String {
    let end = label.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    label[..end].escape_ascii().to_string()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let next = match error.kind() {
            ErrorKind::NotFound => "; `entresol heap create` makes one",
            ErrorKind::WrongKey => "; see `--key-file`",
            ErrorKind::Exists => "; choose another name",
            ErrorKind::Full => "; free some room, or choose another size or place",
            _ => "",
        };
        Failure::CannotRun(format!("{error}{next}"))
    }
}
