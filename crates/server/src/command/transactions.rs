//! Transactions: commands kept until `EXEC`, which carries them out while no other command runs.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use entresol_wire::resp::{Arguments, OwnedArguments, Reply};

use super::dispatch::execution;
use super::plan::{Change, Done, Plan, Steps, StepsFuture};

use super::plan::{Execution, Local};
use super::request::{Request, key_in};
use super::spec::Spec;
use super::table::find;
use crate::client::{Client, Transaction, WatchList, Watched, WatchedState};
use crate::engine_session::EngineSession;
use crate::failure::Failure;
use crate::modification::{Modification, Modify};

/// Most commands of a transaction.
const COMMANDS_MAX: usize = 1 << 20;
/// Most entries that one client watches.
const WATCHED_MAX: usize = 1 << 16;

pub(crate) fn multi(local: &mut Local<'_, '_>) -> Result<(), Failure> {
    let mut transaction = local.client.transaction.borrow_mut();
    if transaction.is_some() {
        return Err(Failure::fixed("ERR MULTI calls can not be nested"));
    }
    *transaction = Some(Transaction::default());
    local.client.facts.queued.store(0, Ordering::Relaxed);
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn discard(local: &mut Local<'_, '_>) -> Result<(), Failure> {
    if local.client.transaction.borrow().is_none() {
        return Err(Failure::fixed("ERR DISCARD without MULTI"));
    }
    local.client.discard();
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn unwatch(local: &mut Local<'_, '_>) -> Result<(), Failure> {
    local.client.forget_watched();
    local.reply.simple("OK");
    Ok(())
}

/// Keeps a command for `EXEC`; `bytes_max` is the most that a transaction's arguments take.
pub(crate) fn queue(
    transaction: &mut Transaction,
    spec: &'static Spec,
    arguments: Arguments<'_>,
    bytes_max: usize,
) -> Result<(), Failure> {
    transaction.bytes += arguments.kept_bytes() + 64;
    if transaction.bytes > bytes_max || transaction.commands.len() >= COMMANDS_MAX {
        transaction.aborted = true;
        return Err(Failure::new(format!(
            "ERR a transaction takes at most {bytes_max} bytes and {COMMANDS_MAX} commands"
        )));
    }
    transaction.commands.push((spec, OwnedArguments::copy(arguments)));
    Ok(())
}

pub(crate) fn watch<'a>(request: &Request<'a>) -> Result<Plan<'a>, Failure> {
    for key in request.arguments.from(1) {
        key_in(request.space, key)?;
    }
    Ok(Plan::Steps(|steps| Box::pin(watch_keys(steps))))
}

async fn watch_keys(steps: Steps) -> Result<Vec<u8>, Failure> {
    if steps.client.transaction.borrow().is_some() {
        return Err(Failure::fixed("ERR WATCH inside MULTI is not allowed"));
    }
    let request = steps.request();
    for bytes in request.arguments.from(1) {
        if steps.client.watched.borrow().has(request.space, bytes) {
            continue;
        }
        if steps.client.watched.borrow().entries().len() >= WATCHED_MAX {
            return Err(Failure::fixed("ERR too many watched keys"));
        }
        let absence = steps.engine.shared.absences.watch(request.space, bytes);
        let entry = steps.engine.get(key_in(request.space, bytes)?).await?;
        let state = match entry {
            Some(entry) => WatchedState::Present(entry.version, entry.expiry),
            None => WatchedState::Absent(absence),
        };
        let watched = Watched { space: request.space, key: bytes.to_vec(), state };
        steps.client.watched.borrow_mut().push(watched);
    }
    Ok(b"+OK\r\n".to_vec())
}

pub(crate) fn exec<'a>(_: &Request<'a>) -> Result<Plan<'a>, Failure> {
    Ok(Plan::Steps(|steps| Box::pin(execute(steps))))
}

async fn execute(steps: Steps) -> Result<Vec<u8>, Failure> {
    let client = Rc::clone(&steps.client);
    let replies = match client.begin_execution() {
        Some((transaction, watched)) => carry_out_all(&steps, transaction, watched).await,
        None => Err(Failure::fixed("ERR EXEC without MULTI")),
    };
    client.end_execution();
    if let Some(spec) = find(b"exec") {
        steps.engine.shared.tell_monitors(&client, spec, steps.arguments.view());
    }
    replies
}

/// Whether those who watch are told of a command before it is carried out. Of `EXEC` they are told
/// behind the commands of its transaction, and of what answers at once with the space it leaves.
pub(crate) fn is_told_first(spec: &Spec) -> bool {
    spec.name != "exec" && matches!(execution(spec), Execution::Plan(_))
}

async fn carry_out_all(
    steps: &Steps,
    transaction: Transaction,
    watched: WatchList,
) -> Result<Vec<u8>, Failure> {
    if transaction.aborted {
        return Err(Failure::EXECUTION_ABORTED);
    }
    let mut out = Vec::new();
    for Watched { space, key, state } in watched.entries() {
        let entry = steps.engine.get(key_in(*space, key)?).await?;
        if !state.holds(entry.map(|entry| (entry.version, entry.expiry))) {
            Reply::new(&mut out, steps.protocol).null_array();
            return Ok(out);
        }
    }
    Reply::new(&mut out, steps.protocol).array(transaction.commands.len());
    let bytes_max = steps.engine.shared.output_bytes_max();
    let mut is_too_long = false;
    for (spec, arguments) in transaction.commands {
        let protocol = steps.client.protocol.get();
        let step = Steps {
            engine: Rc::clone(&steps.engine),
            client: Rc::clone(&steps.client),
            arguments,
            space: steps.client.space.get(),
            protocol,
        };
        let carried_out = carry_out_told(step, spec).await;
        // What follows is carried out all the same: all of them or none.
        is_too_long |= out.len() > bytes_max;
        match carried_out {
            _ if is_too_long => out = Vec::new(),
            Ok(reply) => out.extend_from_slice(&reply),
            Err(failure) => Reply::new(&mut out, protocol).error(failure.text()),
        }
    }
    if is_too_long || out.len() > bytes_max {
        steps.client.closing.set(true);
        return Err(Failure::fixed(
            "ERR the replies of the transaction are too long; all of it was carried out",
        ));
    }
    Ok(out)
}

/// Carries out one command and tells those who watch; its encoded reply.
async fn carry_out_told(steps: Steps, spec: &'static Spec) -> Result<Vec<u8>, Failure> {
    let (engine, client) = (Rc::clone(&steps.engine), Rc::clone(&steps.client));
    if is_told_first(spec) {
        engine.shared.tell_monitors(&client, spec, steps.arguments.view());
        return carry_out(steps, spec).await;
    }
    let arguments = steps.arguments.clone();
    let carried_out = carry_out(steps, spec).await;
    engine.shared.tell_monitors(&client, spec, arguments.view());
    carried_out
}

/// Carries out one command from beginning to end; its encoded reply.
pub(crate) async fn carry_out(steps: Steps, spec: &'static Spec) -> Result<Vec<u8>, Failure> {
    let begin: fn(Steps) -> StepsFuture = {
        let request = steps.request();
        let engine: &EngineSession = &steps.engine;
        let mut out = Vec::new();
        let plan = match execution(spec) {
            Execution::Local(function) => {
                let client: &Rc<Client> = &steps.client;
                let reply = Reply::new(&mut out, steps.protocol);
                function(&mut Local { engine: &steps.engine, client, request, reply })?;
                return Ok(out);
            }
            Execution::Plan(plan) => plan(&request)?,
        };
        match plan {
            Plan::Read { key, answer } => {
                let entry = engine.get(key).await?;
                let entry = entry.as_ref().map(|entry| entry.view(key.bytes));
                let mut reply = Reply::new(&mut out, steps.protocol);
                answer(entry.as_ref(), &request, &mut reply)?;
                return Ok(out);
            }
            Plan::Write { operation, answer } => {
                let outcome = engine.run(operation).await?;
                answer.write(Done::from(&outcome), &mut Reply::new(&mut out, steps.protocol));
                return Ok(out);
            }
            Plan::Update { key, update } => {
                let mut change = Change::default();
                let modify = Modify { engine, request: &request, key, update };
                Modification::new().finish(&modify, &mut change).await?;
                return Ok(change.reply);
            }
            Plan::Steps(begin) => begin,
        }
    };
    begin(steps).await
}
