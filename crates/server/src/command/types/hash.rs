//! Hashes: each is the value of one entry, read and written as a whole.

use std::collections::{HashMap, HashSet};

use entresol_tier::Entry;
use entresol_wire::resp::{Protocol, Reply};
use rustc_apfloat::Float;

use crate::command::arguments::{
    ScanKind, check_reply, cursor, expiry_of, integer, is, scan_options,
};

use super::hash_value::{Field, HashValue, IsNew, push, remove, set};
use crate::command::decimal;
use crate::command::pattern;
use crate::command::plan::{Change, Effect, Plan, Steps};
use crate::command::request::{Request, VALUE_BYTES_MAX};
use crate::command::types::HASH;
use crate::failure::Failure;

type Planned<'a> = Result<Plan<'a>, Failure>;
type Decided = Result<(), Failure>;

/// Hashes of redis-server that are not larger than this are listpacks.
const COMPACT_FIELDS_MAX: usize = 128;
const COMPACT_BYTES_MAX: usize = 64;
/// From so many fields on a command looks them up in a table.
const TABLE_FIELDS_MIN: usize = 16;

/// The hash of `entry`; an empty one if there is no entry.
fn hash_of<'a>(entry: Option<&Entry<'a>>) -> Result<HashValue<'a>, Failure> {
    match entry {
        None => Ok(HashValue::new(&[])),
        Some(entry) if entry.label == HASH => Ok(HashValue::new(entry.value)),
        Some(_) => Err(Failure::WRONG_TYPE),
    }
}

/// Whether redis-server would keep this hash as a listpack.
pub(crate) fn is_compact(hash: HashValue<'_>) -> bool {
    let short = |field: Field<'_>| {
        field.name.len() <= COMPACT_BYTES_MAX && field.value.len() <= COMPACT_BYTES_MAX
    };
    hash.len() <= COMPACT_FIELDS_MAX && hash.fields().all(short)
}

pub(crate) fn hget<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, request: &Request<'_>, reply: &mut Reply<'_>| {
        answer_field(hash_of(entry)?.get(request.arguments.at(2)), reply);
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

fn answer_field(value: Option<&[u8]>, reply: &mut Reply<'_>) {
    match value {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    }
}

pub(crate) fn hmget<'a>(request: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Read { key: request.key(1)?, answer: answer_fields })
}

fn answer_fields(
    entry: Option<&Entry<'_>>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Decided {
    let hash = hash_of(entry)?;
    let mut names = request.arguments.from(2);
    let start = reply.mark();
    let put = |value, reply: &mut Reply<'_>| {
        answer_field(value, reply);
        check_reply(reply.mark() - start, request.reply_bytes_max)
    };
    reply.array(names.len());
    if names.len() < TABLE_FIELDS_MIN {
        return names.try_for_each(|name| put(hash.get(name), reply));
    }
    let table: HashMap<_, _> = hash.fields().map(|field| (field.name, field.value)).collect();
    names.try_for_each(|name| put(table.get(name).copied(), reply))
}

pub(crate) fn hgetall<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        let hash = hash_of(entry)?;
        reply.map(hash.len());
        hash.fields().for_each(|field| answer_pair(field, reply));
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

fn answer_pair(field: Field<'_>, reply: &mut Reply<'_>) {
    reply.bulk(field.name);
    reply.bulk(field.value);
}

pub(crate) fn hkeys<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        let hash = hash_of(entry)?;
        reply.array(hash.len());
        hash.fields().for_each(|field| reply.bulk(field.name));
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

pub(crate) fn hvals<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        let hash = hash_of(entry)?;
        reply.array(hash.len());
        hash.fields().for_each(|field| reply.bulk(field.value));
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

pub(crate) fn hlen<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        reply.integer(hash_of(entry)?.len() as i64);
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

pub(crate) fn hexists<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, request: &Request<'_>, reply: &mut Reply<'_>| {
        let found = hash_of(entry)?.get(request.arguments.at(2)).is_some();
        reply.integer(i64::from(found));
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

pub(crate) fn hstrlen<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, request: &Request<'_>, reply: &mut Reply<'_>| {
        let value = hash_of(entry)?.get(request.arguments.at(2)).unwrap_or_default();
        reply.integer(value.len() as i64);
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

pub(crate) fn hset<'a>(request: &Request<'a>) -> Planned<'a> {
    check_pairs(request, "hset")?;
    let update = |entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change| {
        let added = set_pairs(entry, request, change)?;
        change.reply(request).integer(added);
        Ok(())
    };
    Ok(Plan::Update { key: request.key(1)?, update })
}

pub(crate) fn hmset<'a>(request: &Request<'a>) -> Planned<'a> {
    check_pairs(request, "hmset")?;
    let update = |entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change| {
        set_pairs(entry, request, change)?;
        change.reply(request).simple("OK");
        Ok(())
    };
    Ok(Plan::Update { key: request.key(1)?, update })
}

fn check_pairs(request: &Request<'_>, command: &str) -> Decided {
    if request.arguments.len().is_multiple_of(2) { Ok(()) } else { Err(Failure::arity(command)) }
}

/// Sets all pairs from argument 2 on; how many are new.
fn set_pairs(
    entry: Option<&Entry<'_>>,
    request: &Request<'_>,
    change: &mut Change,
) -> Result<i64, Failure> {
    let hash = hash_of(entry)?;
    let names = request.arguments.from(2).step_by(2);
    let pairs =
        names.zip(request.arguments.from(3).step_by(2)).map(|(name, value)| Field { name, value });
    if pairs.len() < TABLE_FIELDS_MIN {
        change.value.extend_from_slice(entry.map(|entry| entry.value).unwrap_or_default());
        let is_new = |pair: Field<'_>| set(&mut change.value, pair) == IsNew::Yes;
        let added = pairs.map(is_new).filter(|is_new| *is_new).count();
        return put_hash(entry, change).map(|()| added as i64);
    }
    let mut fields: Vec<Field<'_>> = hash.fields().collect();
    let old_count = fields.len();
    let mut places: HashMap<&[u8], usize> =
        fields.iter().enumerate().map(|(place, field)| (field.name, place)).collect();
    for pair in pairs {
        let place = *places.entry(pair.name).or_insert(fields.len());
        match fields.get_mut(place) {
            Some(field) => field.value = pair.value,
            None => fields.push(pair),
        }
    }
    fields.iter().for_each(|field| push(&mut change.value, *field));
    put_hash(entry, change).map(|()| (fields.len() - old_count) as i64)
}

/// Decides on putting the hash in `change`, or on removing the entry if no field is left.
fn put_hash(entry: Option<&Entry<'_>>, change: &mut Change) -> Decided {
    if change.value.len() > VALUE_BYTES_MAX {
        return Err(Failure::new(format!(
            "ERR a hash takes at most {VALUE_BYTES_MAX} bytes, this one would take {}; \
             spread its fields over several keys",
            change.value.len()
        )));
    }
    change.effect = if change.value.is_empty() {
        Effect::Remove
    } else {
        Effect::Put { label: HASH, expiry: expiry_of(entry) }
    };
    Ok(())
}

pub(crate) fn hsetnx<'a>(request: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Update { key: request.key(1)?, update: update_setnx })
}

fn update_setnx(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let name = request.arguments.at(2);
    let found = hash_of(entry)?.get(name).is_some();
    if !found {
        put_field(entry, change, Field { name, value: request.arguments.at(3) })?;
    }
    change.reply(request).integer(i64::from(!found));
    Ok(())
}

fn put_field(entry: Option<&Entry<'_>>, change: &mut Change, field: Field<'_>) -> Decided {
    change.value.extend_from_slice(entry.map(|entry| entry.value).unwrap_or_default());
    set(&mut change.value, field);
    put_hash(entry, change)
}

pub(crate) fn hdel<'a>(request: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Update { key: request.key(1)?, update: update_del })
}

fn update_del(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let hash = hash_of(entry)?;
    let names = request.arguments.from(2);
    let removed = if names.len() < TABLE_FIELDS_MIN {
        change.value.extend_from_slice(entry.map(|entry| entry.value).unwrap_or_default());
        names.filter_map(|name| remove(&mut change.value, name)).count()
    } else {
        let gone: HashSet<&[u8]> = names.collect();
        let kept = hash.fields().filter(|field| !gone.contains(field.name));
        kept.for_each(|field| push(&mut change.value, field));
        hash.len() - HashValue::new(&change.value).len()
    };
    if removed > 0 {
        put_hash(entry, change)?;
    }
    change.reply(request).integer(removed as i64);
    Ok(())
}

pub(crate) fn hincrby<'a>(request: &Request<'a>) -> Planned<'a> {
    integer(request.arguments.at(3))?;
    Ok(Plan::Update { key: request.key(1)?, update: update_incrby })
}

fn update_incrby(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let amount = integer(request.arguments.at(3))?;
    let name = request.arguments.at(2);
    let old = match hash_of(entry)?.get(name) {
        Some(value) => {
            integer(value).map_err(|_| Failure::fixed("ERR hash value is not an integer"))?
        }
        None => 0,
    };
    let new = old.checked_add(amount).ok_or(Failure::OVERFLOW)?;
    put_field(entry, change, Field { name, value: new.to_string().as_bytes() })?;
    change.reply(request).integer(new);
    Ok(())
}

pub(crate) fn hincrbyfloat<'a>(request: &Request<'a>) -> Planned<'a> {
    match decimal::number(request.arguments.at(3)) {
        None => Err(Failure::NOT_A_FLOAT),
        Some(amount) if !amount.is_finite() => Err(Failure::fixed("ERR value is NaN or Infinity")),
        Some(_) => Ok(Plan::Update { key: request.key(1)?, update: update_incrbyfloat }),
    }
}

fn update_incrbyfloat(
    entry: Option<&Entry<'_>>,
    request: &Request<'_>,
    change: &mut Change,
) -> Decided {
    let name = request.arguments.at(2);
    let old = hash_of(entry)?.get(name).unwrap_or(b"0");
    if decimal::number(old).is_none() {
        return Err(Failure::fixed("ERR hash value is not a float"));
    }
    let new = decimal::sum(old, request.arguments.at(3)).ok_or(Failure::NOT_FINITE)?;
    put_field(entry, change, Field { name, value: new.as_bytes() })?;
    change.reply(request).bulk(new.as_bytes());
    Ok(())
}

pub(crate) fn hscan<'a>(request: &Request<'a>) -> Planned<'a> {
    cursor(request.arguments.at(2))?;
    Ok(Plan::Read { key: request.key(1)?, answer: answer_scan })
}

/// A small hash is answered at once. A large one is walked in the order of its fields' hashes: the
/// cursor is the hash to go on from, so fields that stay are visited whatever else changes.
fn answer_scan(entry: Option<&Entry<'_>>, request: &Request<'_>, reply: &mut Reply<'_>) -> Decided {
    let from = cursor(request.arguments.at(2))?;
    let hash = hash_of(entry)?;
    let options = scan_options(request, 3, ScanKind::Fields);
    if entry.is_none() {
        reply.array(2);
        reply.bulk(b"0");
        reply.array(0);
        return Ok(());
    }
    let options = options?;
    let (next, mut fields) = if is_compact(hash) {
        (0, hash.fields().collect())
    } else {
        fields_from(hash, from, options.count)
    };
    fields.retain(|field| options.pattern.is_none_or(|p| pattern::matches(p, field.name)));
    reply.array(2);
    reply.bulk(next.to_string().as_bytes());
    if options.leaves_out_values {
        reply.array(fields.len());
        fields.into_iter().for_each(|field| reply.bulk(field.name));
    } else {
        reply.array(2 * fields.len());
        fields.into_iter().for_each(|field| answer_pair(field, reply));
    }
    Ok(())
}

/// At least `count` fields whose hash is `from` or more, if there are as many, and where to go on.
fn fields_from(hash: HashValue<'_>, from: u64, count: usize) -> (u64, Vec<Field<'_>>) {
    // 53 bits: many clients keep cursors as floating-point numbers.
    let place = |field: &Field<'_>| (xxhash_rust::xxh3::xxh3_64(field.name) >> 11).max(1);
    let mut fields: Vec<_> = hash.fields().map(|field| (place(&field), field)).collect();
    fields.retain(|(place, _)| *place >= from);
    fields.sort_unstable_by_key(|(place, _)| *place);
    let mut end = count.min(fields.len());
    while end < fields.len() && fields[end].0 == fields[end - 1].0 {
        end += 1;
    }
    let next = fields.get(end).map_or(0, |(place, _)| *place);
    fields.truncate(end);
    (next, fields.into_iter().map(|(_, field)| field).collect())
}

pub(crate) fn hrandfield<'a>(request: &Request<'a>) -> Planned<'a> {
    if request.arguments.len() > 2 {
        let count = integer(request.arguments.at(2))?;
        let with_values = request.arguments.len() == 4;
        if count == i64::MIN {
            return Err(Failure::not_between(-i64::MAX, i64::MAX));
        }
        if request.arguments.len() > 4
            || (with_values && !is(request.arguments.at(3), "WITHVALUES"))
        {
            return Err(Failure::SYNTAX);
        }
        if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
            return Err(Failure::fixed("ERR value is out of range"));
        }
    }
    request.key(1)?;
    Ok(Plan::Steps(|steps| Box::pin(random_fields(steps))))
}

async fn random_fields(steps: Steps) -> Result<Vec<u8>, Failure> {
    let request = steps.request();
    let key = request.key(1)?;
    let entry = steps.engine.get(key).await?;
    let fields: Vec<_> =
        hash_of(entry.as_ref().map(|e| e.view(key.bytes)).as_ref())?.fields().collect();
    let below = |limit: usize| (steps.engine.random() % limit as u64) as usize;
    let mut out = Vec::new();
    let mut reply = Reply::new(&mut out, steps.protocol);
    let Some(count) = request.arguments.get(2) else {
        match fields.len() {
            0 => reply.null(),
            length => reply.bulk(fields[below(length)].name),
        }
        return Ok(out);
    };
    let (count, limit) = (integer(count)?, request.reply_bytes_max);
    let (length, place) = (fields.len(), |_| below(fields.len()));
    let drawn = if count < 0 && length > 0 { count.unsigned_abs() } else { 0 };
    // More than the reply may have bytes are refused, so no more need to be drawn.
    let drawn = usize::try_from(drawn).unwrap_or(usize::MAX).min(limit.saturating_add(1));
    let chosen = if count < 0 { Vec::new() } else { sample(length, count as usize, below) };
    let with_values = request.arguments.len() == 4;
    let nested = with_values && steps.protocol == Protocol::Resp3;
    let answered = drawn + chosen.len();
    reply.array(if with_values && !nested { answered.saturating_mul(2) } else { answered });
    for place in (0..drawn).map(place).chain(chosen) {
        let mut reply = Reply::new(&mut out, steps.protocol);
        if nested {
            reply.array(2);
        }
        reply.bulk(fields[place].name);
        if with_values {
            reply.bulk(fields[place].value);
        }
        check_reply(out.len(), limit)?;
    }
    Ok(out)
}

/// `count` distinct ones of the numbers below `length`, or all of them in their order.
fn sample(length: usize, count: usize, below: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..length).collect();
    if count < length {
        for place in 0..count {
            let other = place + below(length - place);
            places.swap(place, other);
        }
        places.truncate(count);
    }
    places
}
