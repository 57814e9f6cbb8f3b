//! Commands on entries of any type.

use entresol_tier::{Condition, Entry, Expiry, Key, Operation, PutOptions, SpaceId, Timestamp};
use entresol_wire::resp::{Reply, parse_integer};

use super::arguments::{Unit, expiry_at, integer, is, shown};

use super::plan::{Change, Effect, Plan, Steps, StepsFuture, WriteAnswer};
use super::request::{Request, key_in};
use super::types::hash::is_compact;
use super::types::hash_value::HashValue;
use super::types::string::count_done;
use super::types::{HASH, STRING, type_name};
use crate::failure::Failure;
use crate::operations::{OwnedEntry, OwnedOutcome, Wants};

type Planned<'a> = Result<Plan<'a>, Failure>;
type Decided = Result<(), Failure>;

/// Strings of redis-server up to this length are stored in one piece with their header.
const EMBEDDED_BYTES_MAX: usize = 44;

pub(crate) fn del<'a>(request: &Request<'a>) -> Planned<'a> {
    if request.arguments.len() > 2 {
        // Before any is removed.
        request.arguments.from(1).try_for_each(|key| key_in(request.space, key).map(|_| ()))?;
        return Ok(Plan::Steps(remove_many));
    }
    let operation = Operation::Remove { key: request.key(1)?, condition: Condition::Always };
    Ok(Plan::Write { operation, answer: WriteAnswer::OneOrZero })
}

fn remove_many(steps: Steps) -> StepsFuture {
    Box::pin(async move {
        let request = steps.request();
        let removes = request.arguments.from(1).map(|key| {
            let key = key_in(request.space, key)?;
            Ok(Operation::Remove { key, condition: Condition::Always })
        });
        let mut removed = 0;
        let visit = |outcome: OwnedOutcome| {
            removed += count_done(&outcome);
            Ok(())
        };
        steps.engine.write_each(removes, visit).await?;
        Ok(format!(":{removed}\r\n").into_bytes())
    })
}

pub(crate) fn exists<'a>(request: &Request<'a>) -> Planned<'a> {
    if request.arguments.len() > 2 {
        return Ok(Plan::Steps(count_present));
    }
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        reply.integer(i64::from(entry.is_some()));
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

fn count_present(steps: Steps) -> StepsFuture {
    Box::pin(async move {
        let request = steps.request();
        let keys = request.arguments.from(1).map(|key| key_in(request.space, key));
        let mut present = 0;
        let visit = |outcome: OwnedOutcome| {
            present += i64::from(matches!(outcome, OwnedOutcome::Present));
            Ok(())
        };
        steps.engine.read_each(keys, Wants::Presence, visit).await?;
        Ok(format!(":{present}\r\n").into_bytes())
    })
}

pub(crate) fn type_of<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        reply.simple(entry.map_or("none", |entry| type_name(entry.label)));
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

/// Answers with what `shown` makes of the moment an entry ends at.
fn answer_end(
    entry: Option<&Entry<'_>>,
    reply: &mut Reply<'_>,
    shown: impl FnOnce(i64) -> i64,
) -> Decided {
    reply.integer(match entry.map(|entry| entry.expiry.at) {
        None => -2,
        Some(None) => -1,
        Some(Some(moment)) => shown(moment.0 as i64),
    });
    Ok(())
}

/// Milliseconds as the nearest number of seconds.
fn rounded_seconds(milliseconds: i64) -> i64 {
    milliseconds.saturating_add(500) / 1000
}

pub(crate) fn ttl<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, request: &Request<'_>, reply: &mut Reply<'_>| {
        answer_end(entry, reply, |end| rounded_seconds((end - request.now.0 as i64).max(0)))
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

pub(crate) fn pttl<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, request: &Request<'_>, reply: &mut Reply<'_>| {
        answer_end(entry, reply, |end| (end - request.now.0 as i64).max(0))
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

pub(crate) fn expiretime<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        answer_end(entry, reply, rounded_seconds)
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

pub(crate) fn pexpiretime<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        answer_end(entry, reply, |end| end)
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

pub(crate) fn expire<'a>(request: &Request<'a>) -> Planned<'a> {
    end_at(request)
}

/// The conditions that `EXPIRE` and kin may carry.
#[derive(Debug, Clone, Copy, Default)]
struct EndConditions {
    if_none: bool,
    if_some: bool,
    if_later: bool,
    if_earlier: bool,
}

fn end_conditions(request: &Request<'_>) -> Result<EndConditions, Failure> {
    let mut conditions = EndConditions::default();
    for option in request.arguments.from(3) {
        if is(option, "NX") {
            conditions.if_none = true;
        } else if is(option, "XX") {
            conditions.if_some = true;
        } else if is(option, "GT") {
            conditions.if_later = true;
        } else if is(option, "LT") {
            conditions.if_earlier = true;
        } else {
            return Err(Failure::new(format!("ERR Unsupported option {}", shown(option))));
        }
    }
    if conditions.if_none && (conditions.if_some || conditions.if_later || conditions.if_earlier) {
        return Err(Failure::fixed(
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        ));
    }
    if conditions.if_later && conditions.if_earlier {
        return Err(Failure::fixed("ERR GT and LT options at the same time are not compatible"));
    }
    Ok(conditions)
}

/// The moment that `EXPIRE` and kin name, milliseconds since the epoch; it may have passed.
fn end_moment(request: &Request<'_>) -> Result<i64, Failure> {
    let number = integer(request.arguments.at(2))?;
    let name = request.arguments.at(0).to_ascii_lowercase();
    let unit = match name.as_slice() {
        b"expire" => Unit::Seconds,
        b"pexpire" => Unit::Milliseconds,
        b"expireat" => Unit::EpochSeconds,
        _ => Unit::EpochMilliseconds,
    };
    unit.moment(number, request.now).ok_or_else(|| Failure::expire_time(&shown(&name)))
}

fn end_at<'a>(request: &Request<'a>) -> Planned<'a> {
    let conditional = request.arguments.len() > 3;
    if conditional {
        end_conditions(request)?;
    }
    let moment = end_moment(request)?;
    let key = request.key(1)?;
    if conditional {
        return Ok(Plan::Update { key, update: update_end });
    }
    let operation = if moment <= request.now.0 as i64 {
        Operation::Remove { key, condition: Condition::Always }
    } else {
        let expiry = expiry_at(Timestamp(moment as u64));
        Operation::Touch { key, expiry, condition: Condition::Always }
    };
    Ok(Plan::Write { operation, answer: WriteAnswer::OneOrZero })
}

fn update_end(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let conditions = end_conditions(request)?;
    let moment = end_moment(request)?;
    let allowed = entry.is_some_and(|entry| {
        let current = entry.expiry.at.map(|current| current.0 as i64);
        let none = conditions.if_none && current.is_some();
        let some = conditions.if_some && current.is_none();
        let later = conditions.if_later && current.is_none_or(|current| moment <= current);
        let earlier = conditions.if_earlier && current.is_some_and(|current| moment >= current);
        !(none || some || later || earlier)
    });
    if allowed {
        change.effect = if moment <= request.now.0 as i64 {
            Effect::Remove
        } else {
            Effect::Touch(expiry_at(Timestamp(moment as u64)))
        };
    }
    change.reply(request).integer(i64::from(allowed));
    Ok(())
}

pub(crate) fn persist<'a>(request: &Request<'a>) -> Planned<'a> {
    let update = |entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change| {
        let ends = entry.is_some_and(|entry| entry.expiry.at.is_some());
        if ends {
            change.effect = Effect::Touch(Expiry::default());
        }
        change.reply(request).integer(i64::from(ends));
        Ok(())
    };
    Ok(Plan::Update { key: request.key(1)?, update })
}

pub(crate) fn rename<'a>(request: &Request<'a>) -> Planned<'a> {
    request.key(1)?;
    request.key(2)?;
    Ok(Plan::Steps(|steps| {
        Box::pin(async move {
            let source = steps.request().key(1)?;
            let entry = steps.engine.get(source).await?.ok_or(Failure::NO_SUCH_KEY)?;
            let target = steps.request().key(2)?;
            if source != target {
                move_entry(&steps, source, target, &entry).await?;
            }
            Ok(b"+OK\r\n".to_vec())
        })
    }))
}

pub(crate) fn renamenx<'a>(request: &Request<'a>) -> Planned<'a> {
    request.key(1)?;
    request.key(2)?;
    Ok(Plan::Steps(|steps| {
        Box::pin(async move {
            let (source, target) = (steps.request().key(1)?, steps.request().key(2)?);
            let entry = steps.engine.get(source).await?.ok_or(Failure::NO_SUCH_KEY)?;
            if source == target || steps.engine.get(target).await?.is_some() {
                return Ok(b":0\r\n".to_vec());
            }
            move_entry(&steps, source, target, &entry).await?;
            Ok(b":1\r\n".to_vec())
        })
    }))
}

/// Puts `entry` at `target` and then removes it from `source`, so that a crash leaves one of them.
async fn move_entry(
    steps: &Steps,
    source: Key<'_>,
    target: Key<'_>,
    entry: &OwnedEntry,
) -> Decided {
    put_copy(steps, target, entry).await?;
    let condition = Condition::Always;
    steps.engine.run(Operation::Remove { key: source, condition }).await?;
    Ok(())
}

async fn put_copy(steps: &Steps, target: Key<'_>, entry: &OwnedEntry) -> Decided {
    let options = PutOptions {
        expiry: entry.expiry,
        label: entry.label,
        pinning: entry.pinning,
        ..PutOptions::default()
    };
    steps.engine.run(Operation::Put { key: target, value: &entry.value, options }).await?;
    Ok(())
}

/// The space that `argument` names.
pub(crate) fn space(argument: &[u8], spaces: u16) -> Result<SpaceId, Failure> {
    let number = integer(argument)?;
    if i32::try_from(number).is_err() {
        return Err(Failure::not_between(i64::from(i32::MIN), i64::from(i32::MAX)));
    }
    match u16::try_from(number) {
        Ok(number) if number < spaces => Ok(SpaceId(number)),
        _ => Err(Failure::SPACE_RANGE),
    }
}

pub(crate) fn move_key<'a>(request: &Request<'a>) -> Planned<'a> {
    request.key(1)?;
    Ok(Plan::Steps(|steps| {
        Box::pin(async move {
            let source = steps.request().key(1)?;
            let space = space(steps.arguments.view().at(2), steps.engine.shared.spaces())?;
            if space == source.space {
                return Err(Failure::SAME_OBJECT);
            }
            let target = Key { space, ..source };
            let Some(entry) = steps.engine.get(source).await? else {
                return Ok(b":0\r\n".to_vec());
            };
            if steps.engine.get(target).await?.is_some() {
                return Ok(b":0\r\n".to_vec());
            }
            move_entry(&steps, source, target, &entry).await?;
            Ok(b":1\r\n".to_vec())
        })
    }))
}

pub(crate) fn copy<'a>(request: &Request<'a>) -> Planned<'a> {
    request.key(1)?;
    request.key(2)?;
    Ok(Plan::Steps(|steps| Box::pin(copy_entry(steps))))
}

async fn copy_entry(steps: Steps) -> Result<Vec<u8>, Failure> {
    let request = steps.request();
    let source = request.key(1)?;
    let mut target = request.key(2)?;
    let mut replaces = false;
    let mut rest = request.arguments.from(3);
    while let Some(option) = rest.next() {
        if is(option, "REPLACE") {
            replaces = true;
        } else if is(option, "DB")
            && let Some(number) = rest.next()
        {
            target.space = space(number, steps.engine.shared.spaces())?;
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    if source == target {
        return Err(Failure::SAME_OBJECT);
    }
    let Some(entry) = steps.engine.get(source).await? else {
        return Ok(b":0\r\n".to_vec());
    };
    if !replaces && steps.engine.get(target).await?.is_some() {
        return Ok(b":0\r\n".to_vec());
    }
    put_copy(&steps, target, &entry).await?;
    Ok(b":1\r\n".to_vec())
}

pub(crate) fn dbsize<'a>(_: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Steps(|steps| {
        Box::pin(async move {
            let count = steps.engine.shared.tier.count(steps.space);
            Ok(format!(":{count}\r\n").into_bytes())
        })
    }))
}

/// Reads the one option of `FLUSHDB` and `FLUSHALL`, which changes nothing here.
fn check_flush(request: &Request<'_>) -> Decided {
    let option = request.arguments.at(1);
    match request.arguments.len() {
        1 => Ok(()),
        2 if is(option, "SYNC") || is(option, "ASYNC") => Ok(()),
        _ => Err(Failure::SYNTAX),
    }
}

pub(crate) fn flushdb<'a>(request: &Request<'a>) -> Planned<'a> {
    check_flush(request)?;
    Ok(Plan::Steps(|steps| {
        Box::pin(async move {
            steps.engine.shared.tier.drop_space(steps.space)?;
            Ok(b"+OK\r\n".to_vec())
        })
    }))
}

pub(crate) fn flushall<'a>(request: &Request<'a>) -> Planned<'a> {
    check_flush(request)?;
    Ok(Plan::Steps(|steps| {
        Box::pin(async move {
            for space in steps.engine.shared.tier.spaces() {
                steps.engine.shared.tier.drop_space(space)?;
            }
            Ok(b"+OK\r\n".to_vec())
        })
    }))
}

pub(crate) fn object_encoding<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        match entry {
            None => reply.null(),
            Some(entry) => reply.bulk(encoding(entry).as_bytes()),
        }
        Ok(())
    };
    Ok(Plan::Read { key: request.key(2)?, answer })
}

/// How redis-server would keep a value that was just set.
fn encoding(entry: &Entry<'_>) -> &'static str {
    match entry.label {
        STRING if parse_integer(entry.value).is_some() => "int",
        STRING if entry.value.len() <= EMBEDDED_BYTES_MAX => "embstr",
        HASH if is_compact(HashValue::new(entry.value)) => "listpack",
        HASH => "hashtable",
        _ => "raw",
    }
}

pub(crate) fn object_refcount<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        answer_if_present(entry, 1, reply);
        Ok(())
    };
    Ok(Plan::Read { key: request.key(2)?, answer })
}

pub(crate) fn object_idletime<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        answer_if_present(entry, 0, reply);
        Ok(())
    };
    Ok(Plan::Read { key: request.key(2)?, answer })
}

fn answer_if_present(entry: Option<&Entry<'_>>, number: i64, reply: &mut Reply<'_>) {
    match entry {
        None => reply.null(),
        Some(_) => reply.integer(number),
    }
}

pub(crate) fn object_freq<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        if entry.is_some() {
            return Err(Failure::fixed(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. \
                 Please note that when switching between policies at runtime LRU and LFU data \
                 will take some time to adjust.",
            ));
        }
        reply.null();
        Ok(())
    };
    Ok(Plan::Read { key: request.key(2)?, answer })
}

pub(crate) fn memory_usage<'a>(request: &Request<'a>) -> Planned<'a> {
    let mut options = request.arguments.from(3);
    while let Some(option) = options.next() {
        let samples = options.next().filter(|_| is(option, "SAMPLES")).ok_or(Failure::SYNTAX)?;
        if integer(samples)? < 0 {
            return Err(Failure::SYNTAX);
        }
    }
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        match entry {
            None => reply.null(),
            Some(entry) => reply.integer((entry.key.len() + entry.value.len()) as i64 + 32),
        }
        Ok(())
    };
    Ok(Plan::Read { key: request.key(2)?, answer })
}
