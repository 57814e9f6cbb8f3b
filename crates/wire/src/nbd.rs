//! NBD: the protocol that exports block devices, for servers and for clients.
//!
//! A connection begins with a handshake, [`ServerHandshake`] on one side and [`ClientHandshake`] on
//! the other: state machines that take bytes and append the bytes to send. Their result is an
//! [`Agreement`]; from then on [`Request`]s go one way and replies the other, which
//! [`ReplyEncoder`] writes and [`ReplyHeader`] and [`Chunk`] read. [`Uri`] names an export.
//!
//! The module speaks the fixed newstyle handshake, structured replies, extended headers and
//! metadata contexts. Source: the protocol's own description, `doc/proto.md` of the NBD project,
//! which is in the public domain, with its extension for extended headers.

mod assembly;
mod chunk;
mod client;
mod error;
mod fields;
mod numbers;
mod reply;
mod request;
mod server;
mod uri;

pub use assembly::ReadAssembly;
pub use chunk::{Chunk, Extents, StatusExtent};
pub use client::{ClientGoal, ClientHandshake, ClientOptions, ClientStep, ListedExport, TlsWish};
pub use error::{Error, ErrorKind};
pub use numbers::{
    ALLOCATION_CONTEXT, BlockSizes, Command, CommandFlags, ErrorCode, ExportFlags,
    PAYLOAD_BYTES_MAX, PORT, Refusal, STATE_HOLE, STATE_ZERO, STRING_BYTES_MAX,
};
pub use reply::{ReplyEncoder, ReplyHeader, ReplyStyle, ReplyTo};
pub use request::{Request, StatusFilter};
pub use server::{Availability, Export, Offer, ServerHandshake, ServerStep, TlsRule};
pub use uri::{Transport, Uri};

/// What a server and a client agreed on in the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// The export's name as the server spells it; as the client asked for it, where the server
    /// did not say.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What it can.
    pub flags: ExportFlags,
    /// Sizes of requests.
    pub sizes: BlockSizes,
    /// How requests and replies are framed.
    pub style: ReplyStyle,
    /// The metadata contexts that [`Command::BlockStatus`] reports: numbers and names.
    pub contexts: Vec<(u32, String)>,
    /// Whether the connection is encrypted.
    pub security: Security,
}

/// Whether a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// It is not.
    Plain,
    /// It is, by TLS.
    Encrypted,
}
