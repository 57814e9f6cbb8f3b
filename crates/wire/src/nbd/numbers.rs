//! The protocol's numbers: magics, commands, flags, options, errors.

use std::fmt;

/// The port that IANA assigned.
pub const PORT: u16 = 10809;
/// Longest string of the protocol: a name, a query, a message.
pub const STRING_BYTES_MAX: usize = 4096;
/// Longest payload of a request or a reply that every peer must take.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// The metadata context of what is allocated.
pub const ALLOCATION_CONTEXT: &str = "base:allocation";
/// Flag of the context `base:allocation`: nothing is allocated there.
pub const STATE_HOLE: u32 = 1;
/// Flag of the context `base:allocation`: it reads as zeros.
pub const STATE_ZERO: u32 = 2;

pub(crate) const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
pub(crate) const OLDSTYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(crate) const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub(crate) const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
pub(crate) const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// Handshake flags; the client's answer has the same bits.
pub(crate) const FIXED_NEWSTYLE: u16 = 1;
pub(crate) const NO_ZEROES: u16 = 2;
/// Zeros that end the answer to [`option::EXPORT_NAME`] unless both sides said [`NO_ZEROES`].
pub(crate) const EXPORT_NAME_ZEROES: usize = 124;

/// Options of the handshake.
pub(crate) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const STARTTLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
    pub(crate) const EXTENDED_HEADERS: u32 = 11;
}

/// Replies to options that are no errors.
pub(crate) mod option_reply {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    /// Set in every error.
    pub(crate) const ERROR: u32 = 1 << 31;
}

/// What a server tells of an export.
pub(crate) mod information {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Types of chunks of replies.
pub(crate) mod chunk_type {
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const BLOCK_STATUS_EXTENDED: u16 = 6;
    /// Set in every error.
    pub(crate) const ERROR_BIT: u16 = 1 << 15;
    pub(crate) const ERROR: u16 = ERROR_BIT + 1;
    pub(crate) const ERROR_OFFSET: u16 = ERROR_BIT + 2;
}

/// Flag of a chunk: no other chunk of this reply follows.
pub(crate) const CHUNK_DONE: u16 = 1;

/// Why a server refuses an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It does not know the option.
    Unsupported,
    /// It knows it and has orders not to do it.
    Policy,
    /// It cannot make sense of it.
    Invalid,
    /// Its platform lacks something.
    Platform,
    /// It demands TLS first.
    TlsRequired,
    /// It has no such export.
    Unknown,
    /// It is about to stop.
    Shutdown,
    /// It demands a promise to keep to its block sizes.
    BlockSizeRequired,
    /// The option or its answer is too long.
    TooBig,
    /// It demands extended headers.
    ExtendedHeadersRequired,
    /// A number that the protocol does not know.
    Other(u32),
}

impl Refusal {
    /// Its number in a reply.
    pub(crate) fn number(self) -> u32 {
        let low = match self {
            Refusal::Unsupported => 1,
            Refusal::Policy => 2,
            Refusal::Invalid => 3,
            Refusal::Platform => 4,
            Refusal::TlsRequired => 5,
            Refusal::Unknown => 6,
            Refusal::Shutdown => 7,
            Refusal::BlockSizeRequired => 8,
            Refusal::TooBig => 9,
            Refusal::ExtendedHeadersRequired => 10,
            Refusal::Other(number) => number,
        };
        option_reply::ERROR | low
    }

    /// The refusal of a reply with `number`, which has the error's bit set.
    pub(crate) fn from_number(number: u32) -> Refusal {
        match number & !option_reply::ERROR {
            1 => Refusal::Unsupported,
            2 => Refusal::Policy,
            3 => Refusal::Invalid,
            4 => Refusal::Platform,
            5 => Refusal::TlsRequired,
            6 => Refusal::Unknown,
            7 => Refusal::Shutdown,
            8 => Refusal::BlockSizeRequired,
            9 => Refusal::TooBig,
            10 => Refusal::ExtendedHeadersRequired,
            other => Refusal::Other(other),
        }
    }
}

/// A command of the transmission phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Read a range.
    Read,
    /// Write a range.
    Write,
    /// Finish what is in flight and close the connection.
    Disconnect,
    /// What was answered before must survive power loss.
    Flush,
    /// A range is no longer needed.
    Trim,
    /// A range will be read soon.
    Cache,
    /// A range shall read as zeros.
    WriteZeroes,
    /// How does a range stand in the metadata contexts?
    BlockStatus,
}

impl Command {
    /// All commands.
    pub const ALL: [Command; 8] = [
        Command::Read,
        Command::Write,
        Command::Disconnect,
        Command::Flush,
        Command::Trim,
        Command::Cache,
        Command::WriteZeroes,
        Command::BlockStatus,
    ];

    /// Its number in a request.
    pub fn number(self) -> u16 {
        match self {
            Command::Read => 0,
            Command::Write => 1,
            Command::Disconnect => 2,
            Command::Flush => 3,
            Command::Trim => 4,
            Command::Cache => 5,
            Command::WriteZeroes => 6,
            Command::BlockStatus => 7,
        }
    }

    /// The command with `number`.
    pub fn from_number(number: u16) -> Option<Command> {
        Command::ALL.into_iter().find(|command| command.number() == number)
    }

    /// Its name, as messages spell it.
    pub fn name(self) -> &'static str {
        match self {
            Command::Read => "read",
            Command::Write => "write",
            Command::Disconnect => "disconnect",
            Command::Flush => "flush",
            Command::Trim => "trim",
            Command::Cache => "cache",
            Command::WriteZeroes => "write zeroes",
            Command::BlockStatus => "block status",
        }
    }
}

/// Flags of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct CommandFlags(pub u16);

impl CommandFlags {
    /// No flag.
    pub const NONE: CommandFlags = CommandFlags(0);
    /// Answer once it survives power loss.
    pub const FUA: CommandFlags = CommandFlags(1);
    /// Zeros shall be no hole.
    pub const NO_HOLE: CommandFlags = CommandFlags(1 << 1);
    /// Answer a read in one piece.
    pub const DF: CommandFlags = CommandFlags(1 << 2);
    /// One extent of block status for each context.
    pub const REQ_ONE: CommandFlags = CommandFlags(1 << 3);
    /// Fail at once if zeros cost as much as a write.
    pub const FAST_ZERO: CommandFlags = CommandFlags(1 << 4);
    /// The length is that of a payload which follows (extended headers).
    pub const PAYLOAD_LENGTH: CommandFlags = CommandFlags(1 << 5);

    /// Whether all of `flags` are set.
    pub fn contains(self, flags: CommandFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and those of `other`.
    pub fn with(self, other: CommandFlags) -> CommandFlags {
        CommandFlags(self.0 | other.0)
    }

    /// These without those of `other`.
    pub fn without(self, other: CommandFlags) -> CommandFlags {
        CommandFlags(self.0 & !other.0)
    }
}

/// What an export can: its transmission flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportFlags(pub u16);

impl ExportFlags {
    /// Always set.
    pub const HAS_FLAGS: ExportFlags = ExportFlags(1);
    /// It may only be read.
    pub const READ_ONLY: ExportFlags = ExportFlags(1 << 1);
    /// It takes [`Command::Flush`].
    pub const FLUSH: ExportFlags = ExportFlags(1 << 2);
    /// It takes [`CommandFlags::FUA`].
    pub const FUA: ExportFlags = ExportFlags(1 << 3);
    /// It lies on a spinning device.
    pub const ROTATIONAL: ExportFlags = ExportFlags(1 << 4);
    /// It takes [`Command::Trim`].
    pub const TRIM: ExportFlags = ExportFlags(1 << 5);
    /// It takes [`Command::WriteZeroes`].
    pub const WRITE_ZEROES: ExportFlags = ExportFlags(1 << 6);
    /// It takes [`CommandFlags::DF`].
    pub const DF: ExportFlags = ExportFlags(1 << 7);
    /// Its connections see each other's flushes: a client may use several.
    pub const MULTI_CONN: ExportFlags = ExportFlags(1 << 8);
    /// It takes [`Command::Cache`].
    pub const CACHE: ExportFlags = ExportFlags(1 << 10);
    /// It takes [`CommandFlags::FAST_ZERO`].
    pub const FAST_ZERO: ExportFlags = ExportFlags(1 << 11);
    /// It takes a filter of contexts with [`Command::BlockStatus`] (extended headers).
    pub const BLOCK_STATUS_PAYLOAD: ExportFlags = ExportFlags(1 << 12);

    /// Whether all of `flags` are set.
    pub fn contains(self, flags: ExportFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and those of `other`.
    pub fn with(self, other: ExportFlags) -> ExportFlags {
        ExportFlags(self.0 | other.0)
    }
}

/// An error of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// EPERM: the export may only be read.
    NotPermitted,
    /// EIO: the medium failed.
    Io,
    /// ENOMEM.
    Memory,
    /// EINVAL: the request is none that the server takes.
    Invalid,
    /// ENOSPC: a write past the end, or no room.
    NoSpace,
    /// EOVERFLOW: the length is too large for this command.
    Overflow,
    /// ENOTSUP: zeros cannot be had fast.
    NotSupported,
    /// ESHUTDOWN: the server is about to stop.
    Shutdown,
}

impl ErrorCode {
    /// All of them.
    pub const ALL: [ErrorCode; 8] = [
        ErrorCode::NotPermitted,
        ErrorCode::Io,
        ErrorCode::Memory,
        ErrorCode::Invalid,
        ErrorCode::NoSpace,
        ErrorCode::Overflow,
        ErrorCode::NotSupported,
        ErrorCode::Shutdown,
    ];

    /// Its number in a reply.
    pub fn number(self) -> u32 {
        match self {
            ErrorCode::NotPermitted => 1,
            ErrorCode::Io => 5,
            ErrorCode::Memory => 12,
            ErrorCode::Invalid => 22,
            ErrorCode::NoSpace => 28,
            ErrorCode::Overflow => 75,
            ErrorCode::NotSupported => 95,
            ErrorCode::Shutdown => 108,
        }
    }

    /// The error with `number`, which is not 0; one that the protocol does not know counts as
    /// [`ErrorCode::Invalid`].
    pub fn from_number(number: u32) -> ErrorCode {
        let mut all = ErrorCode::ALL.into_iter();
        all.find(|code| code.number() == number).unwrap_or(ErrorCode::Invalid)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorCode::NotPermitted => "EPERM",
            ErrorCode::Io => "EIO",
            ErrorCode::Memory => "ENOMEM",
            ErrorCode::Invalid => "EINVAL",
            ErrorCode::NoSpace => "ENOSPC",
            ErrorCode::Overflow => "EOVERFLOW",
            ErrorCode::NotSupported => "ENOTSUP",
            ErrorCode::Shutdown => "ESHUTDOWN",
        })
    }
}

/// Sizes of requests, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of it: a power of two, at most 64 KiB.
    pub minimum: u32,
    /// Multiples of it cost least: a power of two, at least 512 and the minimum.
    pub preferred: u32,
    /// Longest payload of a request or a reply.
    pub payload_max: u32,
}

impl Default for BlockSizes {
    /// What holds where a server says nothing.
    fn default() -> BlockSizes {
        BlockSizes { minimum: 1, preferred: 4096, payload_max: PAYLOAD_BYTES_MAX }
    }
}
