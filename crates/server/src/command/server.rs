//! Commands for those who run the server.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use entresol_host::open_files;
use tracing::info;

use super::arguments::{integer, is, shown};
use super::pattern;
use super::plan::Local;
use super::plan::{Plan, Steps};
use super::request::Request;
use super::table::SPECS;
use crate::client::clients_within;
use crate::config::{Change, Config, KEYS, parse_duration};
use crate::failure::Failure;
use crate::lock::lock;
use crate::meter::Counted;
use crate::reload;
use crate::shared::Saver;

type Outcome = Result<(), Failure>;

/// Bounds of the buckets of `LATENCY HISTOGRAM`: powers of two from 1 µs to 2^24 µs.
const HISTOGRAM_BUCKETS: u32 = 25;

/// Keys of redis-server's that clients ask for, and what holds here.
fn foreign_keys(config: &Config) -> [(&'static str, String); 5] {
    [
        ("appendonly", "no".to_owned()),
        ("maxmemory", config.memory_bytes().to_string()),
        ("maxmemory-policy", config.eviction_policy().to_owned()),
        ("proto-max-bulk-len", (64 << 20).to_string()),
        ("save", String::new()),
    ]
}

pub(crate) fn config_get(local: &mut Local<'_, '_>) -> Outcome {
    let config = lock(&local.engine.shared.config).clone();
    let patterns: Vec<Vec<u8>> =
        local.request.arguments.from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let wanted = |name: &str| patterns.iter().any(|p| pattern::matches(p, name.as_bytes()));
    let own = KEYS.iter().map(|key| (key.name, told(key.name, config.get(key.name))));
    let found: Vec<(&str, String)> =
        own.chain(foreign_keys(&config)).filter(|(name, _)| wanted(name)).collect();
    local.reply.map(found.len());
    for (name, value) in found {
        local.reply.bulk(name.as_bytes());
        local.reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// The value of a key as clients expect it: redis-server knows `timeout` too, in whole seconds.
fn told(name: &str, value: Option<&str>) -> String {
    let value = value.unwrap_or("");
    match parse_duration(value).filter(|_| name == "timeout") {
        Some(silent) => silent.as_millis().div_ceil(1000).to_string(),
        None => value.to_owned(),
    }
}

pub(crate) fn config_set(local: &mut Local<'_, '_>) -> Outcome {
    let arguments = local.request.arguments;
    if !arguments.len().is_multiple_of(2) {
        return Err(Failure::SYNTAX);
    }
    let mut config = lock(&local.engine.shared.config);
    let mut changed = config.clone();
    let foreign = foreign_keys(&config);
    let mut named = HashSet::new();
    for (name, value) in arguments.from(2).step_by(2).zip(arguments.from(3).step_by(2)) {
        let (given, value) = (shown(name), shown(value));
        let name = given.to_ascii_lowercase();
        let refused = |why: &str| {
            let text =
                format!("ERR CONFIG SET failed (possibly related to argument '{given}') - {why}");
            Failure::new(text)
        };
        let immutable = "can't set immutable config";
        if !named.insert(name.clone()) {
            return Err(refused("duplicate parameter"));
        }
        match KEYS.iter().find(|key| key.name == name) {
            None if foreign.iter().any(|(known, _)| *known == name) => {
                // What holds already may be said again, as clients and their tests do.
                if !foreign.contains(&(name.as_str(), value)) {
                    return Err(refused(immutable));
                }
            }
            None => {
                let text =
                    format!("ERR Unknown option or number of arguments for CONFIG SET - '{given}'");
                return Err(Failure::new(text));
            }
            Some(key) if key.change == Change::Restart => {
                return Err(refused(immutable));
            }
            Some(_) => {
                changed.set_live(&name, &value).map_err(|error| refused(error.detail()))?;
                demand_files(&config, &changed).map_err(|why| refused(&why))?;
            }
        }
    }
    for name in &named {
        let value = changed.get(name).unwrap_or_default();
        info!("client {} sets `{name}` to `{value}`", local.client.facts.address);
    }
    local.engine.shared.change_config(&mut config, changed);
    local.reply.simple("OK");
    Ok(())
}

/// Refuses more clients than `before` if the process may not have the files open that they take.
fn demand_files(before: &Config, changed: &Config) -> Result<(), String> {
    let wanted = changed.clients_max();
    let possible = open_files().map_or(wanted, |files| clients_within(files, wanted));
    if possible >= wanted || wanted <= before.clients_max() {
        return Ok(());
    }
    Err(format!(
        "The operating system is not able to handle the specified number of clients, try with \
         {possible}"
    ))
}

pub(crate) fn config_resetstat(local: &mut Local<'_, '_>) -> Outcome {
    let shared = &local.engine.shared;
    shared.meters.iter().for_each(|meter| meter.reset());
    *lock(&shared.forgotten) = Counted::of(&shared.clients, &shared.statistics_in_time());
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn config_rewrite(local: &mut Local<'_, '_>) -> Outcome {
    let config = lock(&local.engine.shared.config);
    let Some(file) = config.file() else {
        return Err(Failure::fixed("ERR The server is running without a config file"));
    };
    config.rewrite(file).map_err(|error| {
        let file = file.display();
        Failure::new(format!("ERR Rewriting config file: {file}: {error}; it is as it was"))
    })?;
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn acl_whoami(local: &mut Local<'_, '_>) -> Outcome {
    let name = lock(&local.client.facts.user).clone();
    local.reply.bulk(name.as_bytes());
    Ok(())
}

pub(crate) fn acl_list(local: &mut Local<'_, '_>) -> Outcome {
    let users = local.engine.shared.users();
    local.reply.array(users.iter().len());
    users.iter().for_each(|user| local.reply.bulk(user.described().as_bytes()));
    Ok(())
}

pub(crate) fn acl_users(local: &mut Local<'_, '_>) -> Outcome {
    let users = local.engine.shared.users();
    local.reply.array(users.iter().len());
    users.iter().for_each(|user| local.reply.bulk(user.name.as_bytes()));
    Ok(())
}

pub(crate) fn acl_load(local: &mut Local<'_, '_>) -> Outcome {
    match reload::users(&local.engine.shared) {
        Ok(Some(_)) => local.reply.simple("OK"),
        Ok(None) => {
            let text = "ERR this server has no file of users; start it with `users` = FILE";
            return Err(Failure::new(text.to_owned()));
        }
        Err(why) => return Err(Failure::new(format!("ERR {why}; users stay as they were"))),
    }
    Ok(())
}

pub(crate) fn acl_cat(local: &mut Local<'_, '_>) -> Outcome {
    demand_few(local, 3)?;
    let names: Vec<&str> = match local.request.arguments.get(2) {
        None => {
            let mut all: Vec<&str> = SPECS.iter().flat_map(|spec| spec.categories()).collect();
            all.sort_unstable();
            all.dedup();
            all
        }
        Some(group) => {
            let (given, group) = (shown(group), shown(group).to_ascii_lowercase());
            let members = SPECS.iter().filter(|spec| spec.is_in(&group)).map(|spec| spec.name);
            let members: Vec<&str> = members.collect();
            if members.is_empty() {
                return Err(Failure::new(format!("ERR Unknown category '{given}'")));
            }
            members
        }
    };
    local.reply.array(names.len());
    names.iter().for_each(|name| local.reply.bulk(name.as_bytes()));
    Ok(())
}

pub(crate) fn time(local: &mut Local<'_, '_>) -> Outcome {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default();
    local.reply.array(2);
    local.reply.bulk(now.as_secs().to_string().as_bytes());
    local.reply.bulk(now.subsec_micros().to_string().as_bytes());
    Ok(())
}

pub(crate) fn lastsave(local: &mut Local<'_, '_>) -> Outcome {
    let seconds = local.engine.shared.last_save_seconds.load(Ordering::Relaxed);
    local.reply.integer(seconds as i64);
    Ok(())
}

pub(crate) fn save<'a>(_: &Request<'a>) -> Result<Plan<'a>, Failure> {
    Ok(Plan::Steps(|steps| {
        Box::pin(async move {
            let engine = &steps.engine;
            let waiting = engine.operations.hand_over(|operation| {
                let saver = Saver { worker: engine.worker, operation };
                engine.shared.savers.try_send(saver).is_ok()
            });
            waiting.ok_or(Failure::fixed("BUSY too many syncs are being waited for"))?.await?;
            Ok(b"+OK\r\n".to_vec())
        })
    }))
}

pub(crate) fn monitor(local: &mut Local<'_, '_>) -> Outcome {
    if local.client.is_executing() {
        return Err(Failure::fixed("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    local.engine.shared.monitors.enter(local.client);
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn bgsave(local: &mut Local<'_, '_>) -> Outcome {
    let arguments = local.request.arguments;
    if arguments.len() > 2 || arguments.get(1).is_some_and(|option| !is(option, "SCHEDULE")) {
        return Err(Failure::SYNTAX);
    }
    local.engine.shared.wants_sync.store(true, Ordering::Release);
    local.reply.simple("Background saving started");
    Ok(())
}

pub(crate) fn wait(local: &mut Local<'_, '_>) -> Outcome {
    integer(local.request.arguments.at(1))?;
    let timeout = integer(local.request.arguments.at(2))
        .map_err(|_| Failure::fixed("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(Failure::fixed("ERR timeout is negative"));
    }
    local.reply.integer(0);
    Ok(())
}

pub(crate) fn memory_stats(local: &mut Local<'_, '_>) -> Outcome {
    let figures = local.engine.shared.statistics_in_time();
    let cap = lock(&local.engine.shared.config).memory_bytes();
    let clients = local.engine.shared.memory.used() as u64;
    let rows = [
        ("memory.cap", cap),
        ("index.bytes", figures.index_bytes),
        ("write-buffers.bytes", figures.buffer_bytes),
        ("cache.bytes", figures.cache_bytes),
        ("other.bytes", figures.other_bytes),
        ("clients.normal", clients),
        ("keys.count", figures.entries),
    ];
    local.reply.map(rows.len());
    for (name, value) in rows {
        local.reply.bulk(name.as_bytes());
        local.reply.integer(value as i64);
    }
    Ok(())
}

pub(crate) fn memory_doctor(local: &mut Local<'_, '_>) -> Outcome {
    let figures = local.engine.shared.statistics_in_time();
    let cap = lock(&local.engine.shared.config).memory_bytes();
    let text = if figures.index_bytes > cap / 2 {
        "The index takes more than half of the memory cap, which leaves little for the cache. \
         Raise `memory`."
    } else {
        "Memory is in order: the index takes less than half of the cap."
    };
    local.reply.verbatim(text);
    Ok(())
}

/// Refuses a subcommand with more than `most` words in all.
fn demand_few(local: &Local<'_, '_>, most: usize) -> Outcome {
    let arguments = local.request.arguments;
    if arguments.len() <= most {
        return Ok(());
    }
    let (container, name) = (shown(arguments.at(0)).to_ascii_uppercase(), shown(arguments.at(1)));
    Err(Failure::new(format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try {container} HELP."
    )))
}

pub(crate) fn slowlog_get(local: &mut Local<'_, '_>) -> Outcome {
    demand_few(local, 3)?;
    let count = match local.request.arguments.get(2) {
        None => 10,
        Some(count) => integer(count)
            .ok()
            .filter(|count| *count >= -1)
            .ok_or(Failure::fixed("ERR count should be greater than or equal to -1"))?,
    };
    let slow = lock(&local.engine.shared.slow);
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(slow.entries.len());
    local.reply.array(count);
    for entry in slow.entries.iter().take(count) {
        local.reply.array(6);
        local.reply.integer(entry.id as i64);
        local.reply.integer(entry.at_seconds as i64);
        local.reply.integer(entry.microseconds as i64);
        local.reply.array(entry.arguments.len());
        entry.arguments.iter().for_each(|argument| local.reply.bulk(argument));
        local.reply.bulk(entry.address.as_bytes());
        local.reply.bulk(entry.name.as_bytes());
    }
    Ok(())
}

pub(crate) fn slowlog_len(local: &mut Local<'_, '_>) -> Outcome {
    let length = lock(&local.engine.shared.slow).entries.len();
    local.reply.integer(length as i64);
    Ok(())
}

pub(crate) fn slowlog_reset(local: &mut Local<'_, '_>) -> Outcome {
    lock(&local.engine.shared.slow).entries.clear();
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn latency_histogram(local: &mut Local<'_, '_>) -> Outcome {
    let measured = local.engine.shared.measured();
    let names: Vec<String> =
        local.request.arguments.from(2).map(|name| shown(name).to_ascii_lowercase()).collect();
    let wanted: Vec<_> = SPECS
        .iter()
        .zip(&measured.commands)
        .filter(|(spec, figures)| {
            figures.calls > 0 && (names.is_empty() || names.iter().any(|name| name == spec.name))
        })
        .collect();
    local.reply.map(wanted.len());
    for (spec, figures) in wanted {
        local.reply.bulk(spec.name.as_bytes());
        local.reply.map(2);
        local.reply.bulk(b"calls");
        local.reply.integer(figures.calls as i64);
        local.reply.bulk(b"histogram_usec");
        let mut buckets: Vec<(u64, u64)> = Vec::new();
        let mut before = 0;
        for power in 0..HISTOGRAM_BUCKETS {
            let count = figures.latency.count_up_to_us(1 << power);
            if count > before {
                buckets.push((1 << power, count));
            }
            before = count;
        }
        local.reply.map(buckets.len());
        for (bound, count) in buckets {
            local.reply.integer(bound as i64);
            local.reply.integer(count as i64);
        }
    }
    Ok(())
}

pub(crate) fn latency_empty(local: &mut Local<'_, '_>) -> Outcome {
    local.reply.array(0);
    Ok(())
}

pub(crate) fn latency_reset(local: &mut Local<'_, '_>) -> Outcome {
    local.reply.integer(0);
    Ok(())
}

pub(crate) fn debug<'a>(request: &Request<'a>) -> Result<Plan<'a>, Failure> {
    let _ = request;
    Ok(Plan::Steps(|steps| Box::pin(debug_sleep(steps))))
}

async fn debug_sleep(steps: Steps) -> Result<Vec<u8>, Failure> {
    let arguments = steps.arguments.view();
    if !lock(&steps.engine.shared.config).allows_debug() {
        return Err(Failure::fixed(
            "ERR DEBUG command not allowed. Set enable-debug-command to \"yes\" in the \
             configuration, and restart the server.",
        ));
    }
    if !is(arguments.at(1), "SLEEP") || arguments.len() != 3 {
        return Err(super::introspection::unknown_subcommand(arguments.at(0), arguments.at(1)));
    }
    let seconds = entresol_wire::resp::parse_double(arguments.at(2)).ok_or(Failure::NOT_A_FLOAT)?;
    let end = steps.engine.now().0 + (seconds.clamp(0.0, 60.0) * 1000.0) as u64;
    while steps.engine.now().0 < end && !steps.engine.shared.is_stopping() {
        steps.engine.operations.yield_now().await;
    }
    Ok(b"+OK\r\n".to_vec())
}

pub(crate) fn shutdown(local: &mut Local<'_, '_>) -> Outcome {
    let options = local.request.arguments.from(1);
    let given = |name: &str| options.clone().any(|option| is(option, name));
    let known = ["NOSAVE", "SAVE", "NOW", "FORCE", "ABORT"];
    let unknown = options.clone().any(|option| !known.iter().any(|name| is(option, name)));
    let alone = !given("ABORT") || options.len() == 1;
    if unknown || !alone || (given("SAVE") && given("NOSAVE")) {
        return Err(Failure::SYNTAX);
    }
    if given("ABORT") {
        return Err(Failure::fixed("ERR No shutdown in progress."));
    }
    local.client.closing.set(true);
    let stopped = local.engine.shared.stop.send(());
    stopped.map_err(|_| Failure::fixed("ERR the server is stopping already"))
}
