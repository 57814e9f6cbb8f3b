//! `CLIENT` and its subcommands.

use std::sync::atomic::Ordering;

use entresol_tier::Timestamp;

use super::arguments::{integer, is, shown};
use super::plan::Local;
use super::table::SPECS;
use crate::client::{Facts, NOT_QUEUING, Silence};
use crate::failure::Failure;
use crate::lock::lock;
use crate::pause::Pause;

type Outcome = Result<(), Failure>;

pub(crate) fn id(local: &mut Local<'_, '_>) -> Outcome {
    local.reply.integer(local.client.facts.id as i64);
    Ok(())
}

pub(crate) fn info(local: &mut Local<'_, '_>) -> Outcome {
    let line = described(&local.client.facts, local.request.now.0);
    local.reply.verbatim(&line);
    Ok(())
}

pub(crate) fn list(local: &mut Local<'_, '_>) -> Outcome {
    let arguments = local.request.arguments;
    let mut wanted: Option<Vec<i64>> = None;
    match arguments.get(2) {
        None => {}
        Some(option) if is(option, "TYPE") && arguments.len() == 4 => {
            wanted = match ClientType::named(arguments.at(3))? {
                ClientType::Normal => None,
                ClientType::Other => Some(Vec::new()),
            };
        }
        Some(option) if is(option, "ID") && arguments.len() > 3 => {
            let ids: Result<Vec<i64>, Failure> = arguments.from(3).map(integer).collect();
            wanted = Some(ids.map_err(|_| Failure::fixed("ERR Invalid client ID"))?);
        }
        Some(_) => return Err(Failure::SYNTAX),
    }
    let mut text = String::new();
    for facts in local.engine.shared.clients.list() {
        if wanted.as_ref().is_none_or(|ids| ids.contains(&(facts.id as i64))) {
            text.push_str(&described(&facts, local.request.now.0));
        }
    }
    local.reply.verbatim(&text);
    Ok(())
}

/// The types of clients that `CLIENT LIST` and `CLIENT KILL` tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientType {
    /// All that there are here.
    Normal,
    /// Those of replication and subscriptions, of which there are none here.
    Other,
}

impl ClientType {
    fn named(name: &[u8]) -> Result<ClientType, Failure> {
        if is(name, "NORMAL") {
            return Ok(ClientType::Normal);
        }
        if ["MASTER", "REPLICA", "SLAVE", "PUBSUB"].iter().any(|known| is(name, known)) {
            return Ok(ClientType::Other);
        }
        Err(Failure::new(format!("ERR Unknown client type '{}'", shown(name))))
    }
}

/// A client in a line as redis-server has it.
fn described(facts: &Facts, now_ms: u64) -> String {
    let last = SPECS.get(usize::from(facts.last_command.load(Ordering::Relaxed)));
    let queued = facts.queued.load(Ordering::Relaxed);
    let multi = if queued == NOT_QUEUING { -1 } else { queued as i64 };
    let flags = match (queued != NOT_QUEUING, facts.paused.load(Ordering::Relaxed)) {
        (false, false) => "N",
        (true, false) => "x",
        (false, true) => "b",
        (true, true) => "xb",
    };
    let (library, library_version) = lock(&facts.library).clone();
    format!(
        "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={} db={} sub=0 psub=0 ssub=0 \
         multi={multi} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 \
         tot-mem={} events=r cmd={} user={} redir=-1 resp={} lib-name={library} \
         lib-ver={library_version}\n",
        facts.id,
        facts.address,
        facts.local_address,
        lock(&facts.name),
        now_ms.saturating_sub(facts.connected_ms) / 1000,
        now_ms.saturating_sub(facts.active_ms.load(Ordering::Relaxed)) / 1000,
        flags,
        facts.space.load(Ordering::Relaxed),
        facts.buffered_bytes.load(Ordering::Relaxed),
        last.map_or("NULL", |spec| spec.name),
        lock(&facts.user),
        if facts.speaks_resp3.load(Ordering::Relaxed) { 3 } else { 2 },
    )
}

pub(crate) fn getname(local: &mut Local<'_, '_>) -> Outcome {
    let name = lock(&local.client.facts.name).clone();
    if name.is_empty() {
        local.reply.null()
    } else {
        local.reply.bulk(name.as_bytes())
    }
    Ok(())
}

/// `name` if a client can have it.
pub(crate) fn checked_name(name: &[u8]) -> Result<String, Failure> {
    if name.len() > 1024 || !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err(Failure::fixed(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    Ok(shown(name))
}

pub(crate) fn setname(local: &mut Local<'_, '_>) -> Outcome {
    *lock(&local.client.facts.name) = checked_name(local.request.arguments.at(2))?;
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn setinfo(local: &mut Local<'_, '_>) -> Outcome {
    let (option, value) = (local.request.arguments.at(2), local.request.arguments.at(3));
    let value = checked_name(value).map_err(|_| {
        Failure::new(format!(
            "ERR {} cannot contain spaces, newlines or special \
            characters.",
            shown(option).to_ascii_lowercase()
        ))
    })?;
    let mut library = lock(&local.client.facts.library);
    if is(option, "LIB-NAME") {
        library.0 = value;
    } else if is(option, "LIB-VER") {
        library.1 = value;
    } else {
        let text = format!("ERR Unrecognized option '{}'", shown(option));
        return Err(Failure::new(text));
    }
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn reply(local: &mut Local<'_, '_>) -> Outcome {
    let mode = local.request.arguments.at(2);
    if is(mode, "ON") {
        local.client.silence.set(Silence::Off);
        local.reply.simple("OK");
    } else if is(mode, "OFF") {
        local.client.silence.set(Silence::On);
    } else if is(mode, "SKIP") {
        if local.client.silence.get() == Silence::Off {
            local.client.silence.set(Silence::Once);
        }
    } else {
        return Err(Failure::SYNTAX);
    }
    Ok(())
}

/// Which clients `CLIENT KILL` means.
#[derive(Debug, Default)]
struct Victims {
    id: Option<u64>,
    address: Option<String>,
    local_address: Option<String>,
    user: Option<String>,
    kind: Option<ClientType>,
    spares_caller: bool,
}

impl Victims {
    fn include(&self, facts: &Facts) -> bool {
        self.id.is_none_or(|id| id == facts.id)
            && self.address.as_ref().is_none_or(|address| *address == facts.address)
            && self.local_address.as_ref().is_none_or(|local| *local == facts.local_address)
            && self.user.as_ref().is_none_or(|user| *user == *lock(&facts.user))
            && self.kind != Some(ClientType::Other)
    }
}

fn victims(local: &Local<'_, '_>) -> Result<Victims, Failure> {
    let mut victims = Victims { spares_caller: true, ..Victims::default() };
    let mut rest = local.request.arguments.from(2);
    while let Some(option) = rest.next() {
        let value = rest.next().ok_or(Failure::SYNTAX)?;
        if is(option, "ID") {
            let id = integer(value).ok().and_then(|id| u64::try_from(id).ok());
            let invalid = Failure::fixed("ERR client-id should be greater than 0");
            victims.id = Some(id.filter(|id| *id > 0).ok_or(invalid)?);
        } else if is(option, "ADDR") {
            victims.address = Some(shown(value));
        } else if is(option, "LADDR") {
            victims.local_address = Some(shown(value));
        } else if is(option, "USER") {
            if local.engine.shared.users().find(value).is_none() {
                let text = format!("ERR No such user '{}'", shown(value));
                return Err(Failure::new(text));
            }
            victims.user = Some(shown(value));
        } else if is(option, "SKIPME") {
            victims.spares_caller = match value {
                value if is(value, "YES") => true,
                value if is(value, "NO") => false,
                _ => return Err(Failure::SYNTAX),
            };
        } else if is(option, "TYPE") {
            victims.kind = Some(ClientType::named(value)?);
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok(victims)
}

pub(crate) fn kill(local: &mut Local<'_, '_>) -> Outcome {
    let arguments = local.request.arguments;
    let old_style = arguments.len() == 3;
    let victims = if old_style {
        Victims { address: Some(shown(arguments.at(2))), ..Victims::default() }
    } else {
        victims(local)?
    };
    let shared = &local.engine.shared;
    let mut killed = 0;
    for facts in shared.clients.list() {
        let own = facts.id == local.client.facts.id;
        if !victims.include(&facts) || (own && victims.spares_caller) {
            continue;
        }
        killed += 1;
        if own {
            local.client.closing.set(true);
        } else {
            facts.killed.store(true, Ordering::Relaxed);
            shared.clients.kills.fetch_add(1, Ordering::Release);
            shared.trays[facts.worker].wake();
        }
    }
    match (old_style, killed) {
        (true, 0) => return Err(Failure::fixed("ERR No such client")),
        (true, _) => local.reply.simple("OK"),
        (false, _) => local.reply.integer(killed),
    }
    Ok(())
}

pub(crate) fn no_evict(local: &mut Local<'_, '_>) -> Outcome {
    let mode = local.request.arguments.at(2);
    if !is(mode, "ON") && !is(mode, "OFF") {
        return Err(Failure::SYNTAX);
    }
    local.client.facts.evictable.store(is(mode, "OFF"), Ordering::Relaxed);
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn no_touch(local: &mut Local<'_, '_>) -> Outcome {
    let mode = local.request.arguments.at(2);
    if !is(mode, "ON") && !is(mode, "OFF") {
        return Err(Failure::SYNTAX);
    }
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn pause(local: &mut Local<'_, '_>) -> Outcome {
    let arguments = local.request.arguments;
    let kind = match arguments.get(3) {
        None => Pause::All,
        Some(mode) if is(mode, "WRITE") => Pause::Writes,
        Some(mode) if is(mode, "ALL") => Pause::All,
        Some(_) => {
            return Err(Failure::fixed("ERR CLIENT PAUSE mode must be WRITE or ALL"));
        }
    };
    let timeout = integer(arguments.at(2))
        .map_err(|_| Failure::fixed("ERR timeout is not an integer or out of range"))?;
    let timeout = u64::try_from(timeout).map_err(|_| Failure::fixed("ERR timeout is negative"))?;
    let now = local.request.now;
    let until = Timestamp(now.0.saturating_add(timeout));
    local.engine.shared.pauses.begin(kind, until, now);
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn unpause(local: &mut Local<'_, '_>) -> Outcome {
    local.engine.shared.pauses.end();
    local.engine.shared.wake(crate::transaction_gate::Wake::Everyone);
    local.reply.simple("OK");
    Ok(())
}
