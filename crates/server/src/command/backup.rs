//! `BACKUP`: the store as it was at one moment, read by a client while others use it.
//!
//! A snapshot belongs to the connection that took it, and ends with it at the latest. A thread of
//! the server's own takes it and reads it: a worker never waits for the device.

use std::rc::Rc;
use std::sync::Arc;

use entresol_tier::SnapshotSegment;

use super::arguments::quoted;
use super::plan::{Local, Plan, Steps};
use super::request::Request;
use crate::backup::{Backup, Copied};
use crate::client::Client;
use crate::engine_session::EngineSession;
use crate::failure::Failure;
use crate::operations::OwnedOutcome;
use crate::shared::{Copier, Wanted};

/// Most bytes of a read.
const READ_BYTES_MAX: u64 = 1 << 20;
/// Of an argument that is shown in an error.
const SHOWN_BYTES_MAX: usize = 40;

/// The segment of a snapshot that an argument names.
fn segment<'b>(backup: &'b Backup, at: &[u8]) -> Result<&'b SnapshotSegment, Failure> {
    backup.segment(number(at)?).ok_or_else(|| {
        let at = quoted(at, SHOWN_BYTES_MAX);
        Failure::new(format!("ERR the snapshot has no segment at byte {at} of the device"))
    })
}

/// The client's own, if it is the one that `named` names.
fn of_client(client: &Client, named: &[u8]) -> Result<Rc<Backup>, Failure> {
    let present = client.backup.borrow().clone();
    let named = number(named)?;
    present.filter(|backup| backup.number == named).ok_or_else(|| {
        Failure::new(format!(
            "ERR this connection has no snapshot {named}; `BACKUP BEGIN` takes one"
        ))
    })
}

fn number(argument: &[u8]) -> Result<u64, Failure> {
    let text = std::str::from_utf8(argument).ok();
    text.and_then(|text| text.parse().ok()).ok_or(Failure::NOT_AN_INTEGER)
}

/// Hands something to the thread that reads snapshots, and waits for it.
async fn copied(engine: &EngineSession, wanted: Wanted) -> Result<Copied, Failure> {
    let waiting = engine.operations.hand_over(|operation| {
        let copier = Copier { worker: engine.worker, operation, wanted };
        engine.shared.copiers.try_send(copier).is_ok()
    });
    let waiting = waiting.ok_or(Failure::fixed("BUSY too many reads of snapshots are waited for"));
    match waiting?.await? {
        OwnedOutcome::Copied(copied) => Ok(copied),
        _ => unreachable!("the outcome of a copy"),
    }
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    let length = format!("${}\r\n", bytes.len());
    [length.as_bytes(), bytes, b"\r\n"].concat()
}

/// `BACKUP BEGIN [IDLE]`.
pub(crate) fn begin<'a>(_: &Request<'a>) -> Result<Plan<'a>, Failure> {
    Ok(Plan::Steps(|steps: Steps| {
        Box::pin(async move {
            let arguments = steps.arguments.view();
            let when_idle = match arguments.len() {
                2 => false,
                3 if arguments.at(2).eq_ignore_ascii_case(b"idle") => true,
                _ => return Err(Failure::SYNTAX),
            };
            steps.client.backup.take();
            match copied(&steps.engine, Wanted::Snapshot { when_idle }).await? {
                Copied::Snapshot(taken) => {
                    let (backup, described) = *taken;
                    steps.client.backup.replace(Some(Rc::new(backup)));
                    Ok(bulk(described.as_bytes()))
                }
                Copied::Bytes(_) => unreachable!("a snapshot was asked for"),
            }
        })
    }))
}

/// `BACKUP READ snapshot at offset length`.
pub(crate) fn read<'a>(_: &Request<'a>) -> Result<Plan<'a>, Failure> {
    Ok(Plan::Steps(|steps: Steps| {
        Box::pin(async move {
            let arguments = steps.arguments.view();
            let backup = of_client(&steps.client, arguments.at(2))?;
            let of = *segment(&backup, arguments.at(3))?;
            let (offset, length) = (number(arguments.at(4))?, number(arguments.at(5))?);
            if length > READ_BYTES_MAX {
                let text = format!("ERR {length} bytes; at most {READ_BYTES_MAX} are read at once");
                return Err(Failure::new(text));
            }
            let (snapshot, length) = (Arc::clone(&backup.snapshot), length as usize);
            let when_idle = backup.when_idle;
            let wanted = Wanted::Bytes { snapshot, segment: of, offset, length, when_idle };
            match copied(&steps.engine, wanted).await {
                Ok(Copied::Bytes(bytes)) => Ok(bulk(&bytes)),
                Ok(Copied::Snapshot(_)) => unreachable!("bytes were asked for"),
                Err(error) if backup.snapshot.is_broken() => {
                    Err(Failure::new(format!("BACKUPBROKEN {}", error.text())))
                }
                Err(error) => Err(error),
            }
        })
    }))
}

/// `BACKUP DONE snapshot at [at …]`.
pub(crate) fn done(local: &mut Local<'_, '_>) -> Result<(), Failure> {
    let arguments = local.request.arguments;
    let backup = of_client(local.client, arguments.at(2))?;
    for at in arguments.from(3) {
        backup.snapshot.let_go(segment(&backup, at)?);
    }
    local.reply.simple("OK");
    Ok(())
}

/// `BACKUP END snapshot`.
pub(crate) fn end(local: &mut Local<'_, '_>) -> Result<(), Failure> {
    of_client(local.client, local.request.arguments.at(2))?;
    local.client.backup.take();
    local.reply.simple("OK");
    Ok(())
}
