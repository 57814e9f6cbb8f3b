//! A look at one key, for who showed the token. It reads and changes nothing.
//!
//! The thread of the HTTP interface never waits for the device, so the read has a thread of its
//! own, one at a time. Whoever asks while the device does not answer is told so.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use entresol_host::now;
use entresol_net::Asked;
use entresol_page::{Unit, seconds, shown, text_of, typed};
use entresol_tier::{
    Error, Key, Operation, Outcome, Pinning, SessionOptions, SpaceId, Tiered, Timestamp,
};
use maud::{Markup, html};

use crate::command::types::hash_value::HashValue;
use crate::command::types::{HASH, type_name};
use crate::operations::{OwnedEntry, OwnedOutcome};
use crate::shared::Shared;

/// How long a look may take before the answer says that it does.
const PATIENCE: Duration = Duration::from_secs(1);
/// Larger entries are not read.
const ENTRY_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a value that are shown.
const SHOWN_BYTES: usize = 2048;
/// Fields of a hash that are shown, and bytes of each.
const SHOWN_FIELDS: usize = 50;
const FIELD_BYTES: usize = 128;

/// What there is to say of the key that is asked for.
pub(super) fn look(shared: &Shared, asked: &Asked<'_>) -> Markup {
    match key_of(shared, asked) {
        Ok((space, key)) => {
            let found = read(shared, space, key.clone());
            html! {
                h3 { "Database " (space.0) ", key " code { (text_of(&key)) } }
                (found.unwrap_or_else(|detail| html! { p.wrong { (detail) } }))
            }
        }
        Err(detail) => html! { p.wrong { (detail) } },
    }
}

fn key_of(shared: &Shared, asked: &Asked<'_>) -> Result<(SpaceId, Vec<u8>), String> {
    let text = asked.value("space").unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let number = text.trim().parse::<u16>().ok().filter(|number| *number < shared.spaces());
    let Some(number) = number else {
        return Err(format!(
            "database: expected a number from 0 to {}, found `{}`",
            shared.spaces().saturating_sub(1),
            text_of(text.as_bytes())
        ));
    };
    let text = asked.value("key").unwrap_or_default();
    let key = typed(&text).ok_or_else(|| {
        let found = String::from_utf8_lossy(&text).into_owned();
        format!(
            "key: expected text in which \\xNN is a byte and \\x5c a backslash, found `{found}`"
        )
    })?;
    Ok((SpaceId(number), key))
}

/// Reads the entry by a thread of its own.
fn read(shared: &Shared, space: SpaceId, key: Vec<u8>) -> Result<Markup, String> {
    let busy = "the look before has not ended: the device is slow or does not answer; try again";
    if shared.looking.swap(true, Ordering::AcqRel) {
        return Err(busy.to_owned());
    }
    let (tier, looking) = (Arc::clone(&shared.tier), Arc::clone(&shared.looking));
    let (done, answer) = sync_channel(1);
    let spawned = std::thread::Builder::new().name("look".to_owned()).spawn(move || {
        let found = get(&tier, space, &key);
        looking.store(false, Ordering::Release);
        // Who asked may have given up.
        let _ = done.send(found);
    });
    if let Err(error) = spawned {
        shared.looking.store(false, Ordering::Release);
        return Err(format!("a thread cannot be made: {error}"));
    }
    match answer.recv_timeout(PATIENCE) {
        Ok(Ok(outcome)) => Ok(described(&outcome, now())),
        Ok(Err(error)) => Err(error.to_string()),
        Err(RecvTimeoutError::Timeout) => Err(busy.to_owned()),
        Err(RecvTimeoutError::Disconnected) => Err("the look failed; the log says why".to_owned()),
    }
}

fn get(tier: &Arc<Tiered>, space: SpaceId, key: &[u8]) -> Result<OwnedOutcome, Error> {
    let mut session = tier.session(SessionOptions { depth: 1, ..SessionOptions::default() })?;
    session.set_entry_bytes_max(ENTRY_BYTES_MAX);
    let mut found = OwnedOutcome::Missing;
    let operation = Operation::Get { key: Key::new(space, key) };
    session.run(now(), operation, &mut |outcome: Outcome<'_>| found = outcome.into())?;
    Ok(found)
}

fn described(outcome: &OwnedOutcome, now: Timestamp) -> Markup {
    match outcome {
        OwnedOutcome::Found(entry) => entry_shown(entry, now),
        OwnedOutcome::Larger(bytes) => html! {
            p { "It is there. Its value takes " (shown(*bytes as f64, Unit::Bytes))
                ", more than the console reads." }
        },
        _ => html! { p { "There is no such key." } },
    }
}

fn entry_shown(entry: &OwnedEntry, now: Timestamp) -> Markup {
    let ends = entry.expiry.at.map(|at| at.0.saturating_sub(now.0) / 1000);
    let is_hash = entry.label == HASH;
    html! {
        table { tbody {
            tr { td { "Type" } td { (type_name(entry.label)) } }
            tr { td { "Value" } td { (shown(entry.value.len() as f64, Unit::Bytes)) } }
            tr { td { "Version" } td { (entry.version.0) } }
            tr { td { "Expires" } td { @match ends {
                Some(left) => { "in " (seconds(left)) }
                None => { "not at a set time" }
            } } }
            @if let Some(idle) = entry.expiry.idle_seconds {
                tr { td { "Expires unread" } td { "after " (seconds(u64::from(idle.get()))) } }
            }
            @if entry.pinning == Pinning::Pinned { tr { td { "Pinned" } td { "yes" } } }
        } }
        @if is_hash { (fields_shown(&entry.value)) } @else {
            pre { (cut(&entry.value, SHOWN_BYTES)) }
        }
    }
}

fn fields_shown(value: &[u8]) -> Markup {
    let hash = HashValue::new(value);
    let count = hash.len();
    html! {
        table {
            thead { tr { th { "Field" } th { "Value" } } }
            tbody { @for field in hash.fields().take(SHOWN_FIELDS) {
                tr {
                    td { code { (cut(field.name, FIELD_BYTES)) } }
                    td { code { (cut(field.value, FIELD_BYTES)) } }
                }
            } }
        }
        @if count > SHOWN_FIELDS { p.soft { (count - SHOWN_FIELDS) " more fields." } }
    }
}

/// The first bytes as text, and how many there are beyond.
fn cut(bytes: &[u8], most: usize) -> String {
    let mut text = text_of(&bytes[..bytes.len().min(most)]);
    if bytes.len() > most {
        text.push_str(&format!(" … ({} more bytes)", bytes.len() - most));
    }
    text
}
