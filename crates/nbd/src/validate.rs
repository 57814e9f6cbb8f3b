//! What a request deserves: decided from its head alone.
//!
//! The codes are those of the protocol: a write past the end has no room (ENOSPC), any other range
//! past the end is invalid (EINVAL), as are commands and flags that were not offered; writing to
//! what may only be read is not permitted (EPERM). No request ends the connection.

use entresol_volume::{Cost, Durable, ErrorKind, Hole, Request as VolumeRequest, VolumeInfo};
use entresol_wire::nbd::{
    Agreement, Command, CommandFlags, ErrorCode, ExportFlags, ReplyStyle, Request,
};

use crate::pending::Asked;

/// Longest read or write that is served; longer ones than half of it are not announced.
const PAYLOAD_TAKEN_MAX: u64 = 64 << 20;

/// What a request deserves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// An error, at once.
    Refuse(Refusal),
    /// Success, at once: there is nothing to do.
    Done,
    /// The connection ends when what is in flight is answered.
    Disconnect,
    /// The volume is asked; the answer holds so many bytes.
    Ask(VolumeRequest, Asked, usize),
    /// The volume is asked to write the payload, once it is there.
    Write(Durable),
    /// The volume is asked how a range stands.
    Status(StatusQuestion),
    /// As [`Action::Status`], but the payload says of what range and contexts.
    FilteredStatus(Extents),
}

/// Why a request gets an error, and which.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) detail: String,
}

impl Refusal {
    /// The server is about to stop.
    pub(crate) fn stopping() -> Refusal {
        let detail = "the server is about to stop".to_owned();
        Refusal { code: ErrorCode::Shutdown, detail }
    }
}

/// How a range stands: what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatusQuestion {
    pub(crate) length: u64,
    pub(crate) extents: Extents,
}

/// How many extents are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extents {
    One,
    Many,
}

/// What a client and the volume agreed on.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) agreement: Agreement,
    pub(crate) volume: VolumeInfo,
}

impl Terms {
    /// What `request` deserves.
    pub(crate) fn validate(&self, request: &Request) -> Action {
        let Some(command) = Command::from_number(request.command) else {
            return Action::Refuse(invalid(format!("there is no command {}", request.command)));
        };
        if command == Command::Disconnect {
            return Action::Disconnect;
        }
        if let Err(refusal) = self.check(command, request) {
            return Action::Refuse(refusal);
        }
        let Request { offset, length, flags, .. } = *request;
        let durable = match flags.contains(CommandFlags::FUA) {
            true => Durable::AtOnce,
            false => Durable::AtFlush,
        };
        let plain = |asked| Action::Ask(asked, Asked::Plain(command), 0);
        match command {
            Command::BlockStatus => self.validate_status(request),
            Command::Flush => plain(VolumeRequest::Flush),
            _ if length == 0 => Action::Done,
            Command::Read => {
                let whole =
                    self.agreement.style == ReplyStyle::Simple || flags.contains(CommandFlags::DF);
                let asked = if whole { Asked::ReadUnbroken } else { Asked::Read };
                let request = VolumeRequest::Read { offset, length: length as u32 };
                Action::Ask(request, asked, length as usize)
            }
            Command::Write => Action::Write(durable),
            Command::Trim => plain(VolumeRequest::Trim { offset, length, durable }),
            Command::Cache => plain(VolumeRequest::Prefetch { offset, length }),
            Command::WriteZeroes | Command::Disconnect => self.validate_zero(request, durable),
        }
    }

    fn validate_zero(&self, request: &Request, durable: Durable) -> Action {
        let Request { offset, length, flags, .. } = *request;
        let hole = match flags.contains(CommandFlags::NO_HOLE) {
            true => Hole::Forbidden,
            false => Hole::Allowed,
        };
        let (cost, asked) = match flags.contains(CommandFlags::FAST_ZERO) {
            true => (Cost::LessThanWrite, Asked::FastZero),
            false => (Cost::Any, Asked::Plain(Command::WriteZeroes)),
        };
        Action::Ask(VolumeRequest::Zero { offset, length, hole, cost, durable }, asked, 0)
    }

    fn validate_status(&self, request: &Request) -> Action {
        let extents = match request.flags.contains(CommandFlags::REQ_ONE) {
            true => Extents::One,
            false => Extents::Many,
        };
        if request.flags.contains(CommandFlags::PAYLOAD_LENGTH) {
            let most = 8 + 4 * self.agreement.contexts.len() as u64;
            if request.length > most {
                return Action::Refuse(invalid(format!(
                    "payload of a block status: expected at most {most} bytes, found {}",
                    request.length
                )));
            }
            return Action::FilteredStatus(extents);
        }
        match self.check_status(request.offset, request.length) {
            Ok(()) => Action::Status(StatusQuestion { length: request.length, extents }),
            Err(refusal) => Action::Refuse(refusal),
        }
    }

    /// Whether the range of a block status can be.
    pub(crate) fn check_status(&self, offset: u64, length: u64) -> Result<(), Refusal> {
        if self.agreement.contexts.is_empty() {
            return Err(invalid("block status: no metadata context was chosen".to_owned()));
        }
        if length == 0 {
            return Err(invalid("block status: expected a length, found 0".to_owned()));
        }
        self.check_range(Command::BlockStatus, offset, length)
    }

    /// Flags, permission, sizes and range.
    fn check(&self, command: Command, request: &Request) -> Result<(), Refusal> {
        let extended = self.agreement.style == ReplyStyle::Extended;
        let allowed = self.allowed_flags(command);
        let odd = request.flags.without(allowed);
        if odd != CommandFlags::NONE {
            let name = command.name();
            return Err(invalid(format!("{name}: flags {:#x} were not offered", odd.0)));
        }
        let has_payload = request.flags.contains(CommandFlags::PAYLOAD_LENGTH);
        if extended && command == Command::Write && !has_payload {
            return Err(invalid("write: expected flag 0x20 and a payload, found none".to_owned()));
        }
        if self.writes(command) && self.volume.read_only {
            let detail = format!("volume {} may only be read", self.volume.name);
            return Err(Refusal { code: ErrorCode::NotPermitted, detail });
        }
        if command == Command::Trim && !self.offers(ExportFlags::TRIM) {
            return Err(invalid("trim: was not offered".to_owned()));
        }
        let Request { offset, length, .. } = *request;
        // More than is announced: clients that do not look at that are served all the same.
        let payload_max = PAYLOAD_TAKEN_MAX;
        match command {
            Command::Read if length > payload_max => {
                let detail = format!("read: expected at most {payload_max} bytes, found {length}");
                Err(Refusal { code: ErrorCode::Overflow, detail })
            }
            Command::Write if length > payload_max => {
                Err(invalid(format!("write: expected at most {payload_max} bytes, found {length}")))
            }
            Command::Flush if offset != 0 || length != 0 => {
                Err(invalid("flush: expected offset and length 0, found others".to_owned()))
            }
            // Its range may stand in a payload; it is looked at later.
            Command::BlockStatus | Command::Flush => Ok(()),
            _ => self.check_range(command, offset, length),
        }
    }

    fn check_range(&self, command: Command, offset: u64, length: u64) -> Result<(), Refusal> {
        let size = self.agreement.bytes;
        if offset.checked_add(length).is_some_and(|end| end <= size) {
            return Ok(());
        }
        let code = match command {
            Command::Write | Command::WriteZeroes => ErrorCode::NoSpace,
            _ => ErrorCode::Invalid,
        };
        let name = command.name();
        let detail = format!(
            "{name}: expected a range within {size} bytes, found {length} bytes at {offset}"
        );
        Err(Refusal { code, detail })
    }

    fn writes(&self, command: Command) -> bool {
        matches!(command, Command::Write | Command::Trim | Command::WriteZeroes)
    }

    fn offers(&self, flag: ExportFlags) -> bool {
        self.agreement.flags.contains(flag)
    }

    fn allowed_flags(&self, command: Command) -> CommandFlags {
        let on = |flag: CommandFlags, offered: bool| {
            if offered { flag } else { CommandFlags::NONE }
        };
        let own = match command {
            Command::Read => on(CommandFlags::DF, self.offers(ExportFlags::DF)),
            Command::Write => {
                let extended = self.agreement.style == ReplyStyle::Extended;
                on(CommandFlags::PAYLOAD_LENGTH, extended)
            }
            Command::WriteZeroes => CommandFlags::NO_HOLE
                .with(on(CommandFlags::FAST_ZERO, self.offers(ExportFlags::FAST_ZERO))),
            Command::BlockStatus => {
                let filters = self.offers(ExportFlags::BLOCK_STATUS_PAYLOAD);
                CommandFlags::REQ_ONE.with(on(CommandFlags::PAYLOAD_LENGTH, filters))
            }
            _ => CommandFlags::NONE,
        };
        own.with(CommandFlags::FUA)
    }
}

/// What a client is told of a volume's error.
pub(crate) fn error_code(kind: ErrorKind, asked: Asked) -> ErrorCode {
    match kind {
        ErrorKind::InvalidInput | ErrorKind::Name => ErrorCode::Invalid,
        ErrorKind::NoSpace => ErrorCode::NoSpace,
        ErrorKind::ReadOnly => ErrorCode::NotPermitted,
        // The protocol has this answer for fast zeros only.
        ErrorKind::Unsupported if asked == Asked::FastZero => ErrorCode::NotSupported,
        ErrorKind::Unsupported => ErrorCode::Invalid,
        ErrorKind::Closing => ErrorCode::Shutdown,
        _ => ErrorCode::Io,
    }
}

fn invalid(detail: String) -> Refusal {
    Refusal { code: ErrorCode::Invalid, detail }
}
