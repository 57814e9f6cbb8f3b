//! Strings.

use entresol_tier::{Condition, Entry, Expiry, Operation, PutOptions, Timestamp};
use entresol_wire::resp::Reply;

use crate::command::arguments::{Unit, check_reply, expiry_at, expiry_of, integer, is};

use crate::command::types::STRING;

use crate::command::decimal;
use crate::command::plan::{Change, Done, Effect, Plan, Steps, StepsFuture, WriteAnswer};
use crate::command::request::{Request, VALUE_BYTES_MAX, key_in};
use crate::command::types::string_value::string_of;
use crate::failure::Failure;
use crate::operations::{OwnedOutcome, Wants};

type Planned<'a> = Result<Plan<'a>, Failure>;
type Decided = Result<(), Failure>;

pub(crate) fn get<'a>(request: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Read { key: request.key(1)?, answer: answer_string })
}

fn answer_string(entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>) -> Decided {
    match string_of(entry)? {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    }
    Ok(())
}

/// The options of `SET`.
#[derive(Debug, Clone, Copy, Default)]
struct SetOptions {
    condition: Condition,
    expiry: Option<Timestamp>,
    keeps_expiry: bool,
    answers_old: bool,
}

fn set_options(request: &Request<'_>) -> Result<SetOptions, Failure> {
    let mut options = SetOptions::default();
    let mut expiry = None;
    let mut rest = request.arguments.from(3);
    while let Some(option) = rest.next() {
        if is(option, "NX") && options.condition != Condition::Present {
            options.condition = Condition::Absent;
        } else if is(option, "XX") && options.condition != Condition::Absent {
            options.condition = Condition::Present;
        } else if is(option, "GET") {
            options.answers_old = true;
        } else if is(option, "KEEPTTL") && expiry.is_none() {
            options.keeps_expiry = true;
        } else if let Some(unit) = Unit::named(option)
            && expiry.is_none_or(|(given, _)| given == unit)
            && !options.keeps_expiry
            && let Some(number) = rest.next()
        {
            expiry = Some((unit, number));
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    if let Some((unit, number)) = expiry {
        options.expiry = Some(unit.positive_moment(number, request, "set")?);
    }
    Ok(options)
}

pub(crate) fn set<'a>(request: &Request<'a>) -> Planned<'a> {
    let key = request.key(1)?;
    if request.arguments.len() == 3 {
        return plain_put(request, 2, PutOptions::default(), WriteAnswer::OkOrNull);
    }
    let options = set_options(request)?;
    if options.answers_old || options.keeps_expiry {
        return Ok(Plan::Update { key, update: update_set });
    }
    let put = PutOptions {
        condition: options.condition,
        expiry: options.expiry.map(expiry_at).unwrap_or_default(),
        ..PutOptions::default()
    };
    plain_put(request, 2, put, WriteAnswer::OkOrNull)
}

/// A put of argument `value` that needs no look at what is there.
fn plain_put<'a>(
    request: &Request<'a>,
    value: usize,
    options: PutOptions,
    answer: WriteAnswer,
) -> Planned<'a> {
    let value = request.arguments.at(value);
    check_length(value.len())?;
    let options = PutOptions { label: STRING, ..options };
    Ok(Plan::Write { operation: Operation::Put { key: request.key(1)?, value, options }, answer })
}

fn check_length(length: usize) -> Decided {
    if length > VALUE_BYTES_MAX { Err(Failure::VALUE_TOO_LONG) } else { Ok(()) }
}

fn update_set(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let options = set_options(request)?;
    let old = if options.answers_old { string_of(entry)? } else { None };
    let allowed = match options.condition {
        Condition::Absent => entry.is_none(),
        Condition::Present => entry.is_some(),
        _ => true,
    };
    if allowed {
        let value = request.arguments.at(2);
        check_length(value.len())?;
        change.value.extend_from_slice(value);
        let expiry = match options.expiry {
            Some(moment) => expiry_at(moment),
            None if options.keeps_expiry => expiry_of(entry),
            None => Expiry::default(),
        };
        change.effect = Effect::Put { label: STRING, expiry };
    }
    let mut reply = change.reply(request);
    match (options.answers_old, old) {
        (true, Some(old)) => reply.bulk(old),
        (false, _) if allowed => reply.simple("OK"),
        _ => reply.null(),
    }
    Ok(())
}

pub(crate) fn setnx<'a>(request: &Request<'a>) -> Planned<'a> {
    let options = PutOptions { condition: Condition::Absent, ..PutOptions::default() };
    plain_put(request, 2, options, WriteAnswer::OneOrZero)
}

pub(crate) fn setex<'a>(request: &Request<'a>) -> Planned<'a> {
    put_expiring(request, Unit::Seconds, "setex")
}

pub(crate) fn psetex<'a>(request: &Request<'a>) -> Planned<'a> {
    put_expiring(request, Unit::Milliseconds, "psetex")
}

fn put_expiring<'a>(request: &Request<'a>, unit: Unit, command: &str) -> Planned<'a> {
    let moment = unit.positive_moment(request.arguments.at(2), request, command)?;
    let options = PutOptions { expiry: expiry_at(moment), ..PutOptions::default() };
    plain_put(request, 3, options, WriteAnswer::OkOrNull)
}

pub(crate) fn getset<'a>(request: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Update { key: request.key(1)?, update: update_getset })
}

fn update_getset(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let old = string_of(entry)?;
    let value = request.arguments.at(2);
    check_length(value.len())?;
    change.value.extend_from_slice(value);
    change.effect = Effect::Put { label: STRING, expiry: Expiry::default() };
    answer_old(old, request, change);
    Ok(())
}

fn answer_old(old: Option<&[u8]>, request: &Request<'_>, change: &mut Change) {
    match old {
        Some(old) => change.reply(request).bulk(old),
        None => change.reply(request).null(),
    }
}

pub(crate) fn getdel<'a>(request: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Update { key: request.key(1)?, update: update_getdel })
}

fn update_getdel(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let old = string_of(entry)?;
    if old.is_some() {
        change.effect = Effect::Remove;
    }
    answer_old(old, request, change);
    Ok(())
}

pub(crate) fn getex<'a>(request: &Request<'a>) -> Planned<'a> {
    let key = request.key(1)?;
    if request.arguments.len() == 2 {
        return Ok(Plan::Read { key, answer: answer_string });
    }
    getex_option(request)?;
    Ok(Plan::Update { key, update: update_getex })
}

/// The new expiry that `GETEX` names: its unit and number, or none for `PERSIST`.
fn getex_option<'a>(request: &Request<'a>) -> Result<Option<(Unit, &'a [u8])>, Failure> {
    let (mut expiry, mut stays) = (None, false);
    let mut rest = request.arguments.from(2);
    while let Some(option) = rest.next() {
        if is(option, "PERSIST") && expiry.is_none() {
            stays = true;
        } else if let Some(unit) = Unit::named(option)
            && !stays
            && expiry.is_none_or(|(given, _)| given == unit)
            && let Some(number) = rest.next()
        {
            expiry = Some((unit, number));
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok(expiry)
}

fn update_getex(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let old = string_of(entry)?;
    if let Some(entry) = entry {
        change.effect = match getex_option(request)? {
            None if entry.expiry.at.is_none() => Effect::Keep,
            None => Effect::Touch(Expiry::default()),
            Some((unit, number)) => {
                let moment = unit.positive_moment(number, request, "getex")?;
                if moment <= request.now {
                    Effect::Remove
                } else {
                    Effect::Touch(expiry_at(moment))
                }
            }
        };
    }
    answer_old(old, request, change);
    Ok(())
}

pub(crate) fn mget<'a>(_: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Steps(|steps| Box::pin(read_many(steps))))
}

async fn read_many(steps: Steps) -> Result<Vec<u8>, Failure> {
    let request = steps.request();
    let keys = request.arguments.from(1).map(|key| key_in(request.space, key));
    let limit = request.reply_bytes_max;
    let mut out = Vec::new();
    Reply::new(&mut out, steps.protocol).array(keys.len());
    let visit = |outcome: OwnedOutcome| {
        let mut reply = Reply::new(&mut out, steps.protocol);
        match outcome {
            OwnedOutcome::Found(entry) if entry.label == STRING => reply.bulk(&entry.value),
            _ => reply.null(),
        }
        check_reply(out.len(), limit)
    };
    steps.engine.read_each(keys, Wants::Entry, visit).await?;
    Ok(out)
}

pub(crate) fn mset<'a>(request: &Request<'a>) -> Planned<'a> {
    check_pairs(request, "mset")?;
    Ok(Plan::Steps(|steps| {
        Box::pin(async move {
            write_many(&steps).await?;
            Ok(b"+OK\r\n".to_vec())
        })
    }))
}

pub(crate) fn msetnx<'a>(request: &Request<'a>) -> Planned<'a> {
    check_pairs(request, "msetnx")?;
    Ok(Plan::Steps(write_many_if_absent))
}

fn check_pairs(request: &Request<'_>, command: &str) -> Decided {
    if request.arguments.len().is_multiple_of(2) {
        return Err(Failure::arity(command));
    }
    for key in request.arguments.from(1).step_by(2) {
        key_in(request.space, key)?;
    }
    request.arguments.from(2).step_by(2).try_for_each(|value| check_length(value.len()))
}

async fn write_many(steps: &Steps) -> Result<(), Failure> {
    let request = steps.request();
    let writes = (1..request.arguments.len()).step_by(2).map(|index| {
        let options = PutOptions { label: STRING, ..PutOptions::default() };
        let value = request.arguments.at(index + 1);
        Ok(Operation::Put { key: request.key(index)?, value, options })
    });
    steps.engine.write_each(writes, |_| Ok(())).await
}

fn write_many_if_absent(steps: Steps) -> StepsFuture {
    Box::pin(async move {
        let request = steps.request();
        for key in request.arguments.from(1).step_by(2) {
            if steps.engine.get(key_in(request.space, key)?).await?.is_some() {
                return Ok(b":0\r\n".to_vec());
            }
        }
        write_many(&steps).await?;
        Ok(b":1\r\n".to_vec())
    })
}

pub(crate) fn append<'a>(request: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Update { key: request.key(1)?, update: update_append })
}

fn update_append(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let old = string_of(entry)?.unwrap_or_default();
    let tail = request.arguments.at(2);
    check_length(old.len() + tail.len())?;
    change.value.reserve_exact(old.len() + tail.len());
    change.value.extend_from_slice(old);
    change.value.extend_from_slice(tail);
    put_and_answer_length(entry, request, change);
    Ok(())
}

fn put_and_answer_length(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) {
    change.effect = Effect::Put { label: STRING, expiry: expiry_of(entry) };
    let length = change.value.len() as i64;
    change.reply(request).integer(length);
}

pub(crate) fn strlen<'a>(request: &Request<'a>) -> Planned<'a> {
    let answer = |entry: Option<&Entry<'_>>, _: &Request<'_>, reply: &mut Reply<'_>| {
        reply.integer(string_of(entry)?.unwrap_or_default().len() as i64);
        Ok(())
    };
    Ok(Plan::Read { key: request.key(1)?, answer })
}

pub(crate) fn getrange<'a>(request: &Request<'a>) -> Planned<'a> {
    integer(request.arguments.at(2))?;
    integer(request.arguments.at(3))?;
    Ok(Plan::Read { key: request.key(1)?, answer: answer_range })
}

fn answer_range(
    entry: Option<&Entry<'_>>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Decided {
    let value = string_of(entry)?.unwrap_or_default();
    let start = integer(request.arguments.at(2))?;
    let end = integer(request.arguments.at(3))?;
    reply.bulk(range_of(value, start, end));
    Ok(())
}

/// Bytes `start` to `end`, both included, negative ones counted from the end.
fn range_of(value: &[u8], start: i64, end: i64) -> &[u8] {
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let length = value.len() as i64;
    let from_end = |index: i64| if index < 0 { (index + length).max(0) } else { index };
    let (start, end) = (from_end(start), from_end(end).min(length - 1));
    if start > end || length == 0 {
        return &[];
    }
    &value[start as usize..=end as usize]
}

pub(crate) fn setrange<'a>(request: &Request<'a>) -> Planned<'a> {
    if integer(request.arguments.at(2))? < 0 {
        return Err(Failure::fixed("ERR offset is out of range"));
    }
    Ok(Plan::Update { key: request.key(1)?, update: update_range })
}

fn update_range(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let offset = integer(request.arguments.at(2))?;
    let patch = request.arguments.at(3);
    let old = string_of(entry)?.unwrap_or_default();
    if patch.is_empty() {
        change.reply(request).integer(old.len() as i64);
        return Ok(());
    }
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let end = offset.saturating_add(patch.len());
    check_length(end)?;
    change.value.extend_from_slice(old);
    if change.value.len() < end {
        change.value.resize(end, 0);
    }
    change.value[offset..end].copy_from_slice(patch);
    put_and_answer_length(entry, request, change);
    Ok(())
}

pub(crate) fn incr<'a>(request: &Request<'a>) -> Planned<'a> {
    let update = |entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change| {
        add(entry, request, change, 1)
    };
    Ok(Plan::Update { key: request.key(1)?, update })
}

pub(crate) fn decr<'a>(request: &Request<'a>) -> Planned<'a> {
    let update = |entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change| {
        add(entry, request, change, -1)
    };
    Ok(Plan::Update { key: request.key(1)?, update })
}

pub(crate) fn incrby<'a>(request: &Request<'a>) -> Planned<'a> {
    integer(request.arguments.at(2))?;
    let update = |entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change| {
        add(entry, request, change, integer(request.arguments.at(2))?)
    };
    Ok(Plan::Update { key: request.key(1)?, update })
}

pub(crate) fn decrby<'a>(request: &Request<'a>) -> Planned<'a> {
    if integer(request.arguments.at(2))? == i64::MIN {
        return Err(Failure::fixed("ERR decrement would overflow"));
    }
    let update = |entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change| {
        add(entry, request, change, -integer(request.arguments.at(2))?)
    };
    Ok(Plan::Update { key: request.key(1)?, update })
}

fn add(
    entry: Option<&Entry<'_>>,
    request: &Request<'_>,
    change: &mut Change,
    amount: i64,
) -> Decided {
    let old = match string_of(entry)? {
        Some(value) => integer(value)?,
        None => 0,
    };
    let new = old.checked_add(amount).ok_or(Failure::OVERFLOW)?;
    change.value.extend_from_slice(new.to_string().as_bytes());
    change.effect = Effect::Put { label: STRING, expiry: expiry_of(entry) };
    change.reply(request).integer(new);
    Ok(())
}

pub(crate) fn incrbyfloat<'a>(request: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Update { key: request.key(1)?, update: update_float })
}

fn update_float(entry: Option<&Entry<'_>>, request: &Request<'_>, change: &mut Change) -> Decided {
    let old = string_of(entry)?.unwrap_or(b"0");
    let amount = request.arguments.at(2);
    if decimal::number(old).is_none() || decimal::number(amount).is_none() {
        return Err(Failure::NOT_A_FLOAT);
    }
    let new = decimal::sum(old, amount).ok_or(Failure::NOT_FINITE)?;
    change.value.extend_from_slice(new.as_bytes());
    change.effect = Effect::Put { label: STRING, expiry: expiry_of(entry) };
    change.reply(request).bulk(new.as_bytes());
    Ok(())
}

/// Whether a write changed anything; used where several writes are counted.
pub(crate) fn count_done(outcome: &OwnedOutcome) -> i64 {
    i64::from(Done::from(outcome) == Done::Yes)
}
