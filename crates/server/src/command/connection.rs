//! Commands on the connection itself: who the client is and how it speaks.

use std::sync::Arc;

use entresol_wire::resp::{Protocol, Reply};

use super::arguments::{integer, is, shown};
use super::keys::space;
use super::plan::Local;
use super::plan::{Plan, Steps};
use super::request::Request;
use crate::client::Silence;
use crate::failure::Failure;
use crate::lock::lock;
use crate::operations::{OwnedOutcome, PasswordMatch};
use crate::shared::Comparison;
use crate::users::{PASSWORD_BYTES_MAX, User};

type Outcome = Result<(), Failure>;

/// The version of redis-server whose commands and replies these are.
pub(crate) const COMPATIBLE_VERSION: &str = "7.0.15";

pub(crate) fn ping(local: &mut Local<'_, '_>) -> Outcome {
    match local.request.arguments.len() {
        1 => local.reply.simple("PONG"),
        2 => local.reply.bulk(local.request.arguments.at(1)),
        _ => return Err(Failure::arity("ping")),
    }
    Ok(())
}

pub(crate) fn echo(local: &mut Local<'_, '_>) -> Outcome {
    local.reply.bulk(local.request.arguments.at(1));
    Ok(())
}

pub(crate) fn select(local: &mut Local<'_, '_>) -> Outcome {
    let space = space(local.request.arguments.at(1), local.engine.shared.spaces())?;
    local.client.select(space);
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn quit(local: &mut Local<'_, '_>) -> Outcome {
    local.client.closing.set(true);
    local.reply.simple("OK");
    Ok(())
}

pub(crate) fn reset(local: &mut Local<'_, '_>) -> Outcome {
    let client = local.client;
    client.discard();
    local.engine.shared.monitors.leave(client);
    client.select(entresol_tier::SpaceId(0));
    client.speak(Protocol::Resp2);
    client.silence.set(Silence::Off);
    lock(&client.facts.name).clear();
    let initial = local.engine.shared.users().initial();
    *lock(&client.facts.user) = "default".to_owned();
    *client.user.borrow_mut() = initial;
    local.reply.simple("RESET");
    Ok(())
}

pub(crate) fn auth<'a>(request: &Request<'a>) -> Result<Plan<'a>, Failure> {
    if request.arguments.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    Ok(Plan::Steps(|steps| {
        Box::pin(async move {
            let arguments = steps.arguments.view();
            let (name, password) = match arguments.get(2) {
                Some(password) => (arguments.at(1), password),
                None => (b"default".as_slice(), arguments.at(1)),
            };
            let needs_none = |user: Arc<User>| user.password().is_none();
            if arguments.len() == 2
                && steps.engine.shared.users().find(name).is_some_and(needs_none)
            {
                return Err(Failure::fixed(
                    "ERR AUTH <password> called without any password configured for the default \
                     user. Are you sure your configuration is correct?",
                ));
            }
            authenticate(&steps, name, password).await?;
            Ok(b"+OK\r\n".to_vec())
        })
    }))
}

/// Makes the client the user called `name` if `password` is the right one. An unknown name takes as
/// long as a wrong password.
async fn authenticate(steps: &Steps, name: &[u8], password: &[u8]) -> Result<(), Failure> {
    let shared = &steps.engine.shared;
    let user = shared.users().find(name);
    let hash = match &user {
        Some(user) => user.password().map(str::to_owned),
        None => {
            Some(shared.users().iter().find_map(|user| user.password()).unwrap_or("").to_owned())
        }
    };
    let right = match hash {
        None => true,
        Some(_) if password.len() > PASSWORD_BYTES_MAX => false,
        Some(hash) => {
            let (worker, password) = (steps.engine.worker, password.to_vec());
            let waiting = steps.engine.operations.hand_over(|operation| {
                let comparison = Comparison { worker, operation, password, hash };
                shared.verifier.try_send(comparison).is_ok()
            });
            let busy = Failure::fixed("BUSY too many passwords are being compared");
            matches!(waiting.ok_or(busy)?.await?, OwnedOutcome::Verified(PasswordMatch::Right))
        }
    };
    match user {
        Some(user) if right => {
            steps.client.become_user(user);
            Ok(())
        }
        _ => Err(Failure::WRONG_PASSWORD),
    }
}

pub(crate) fn hello<'a>(_: &Request<'a>) -> Result<Plan<'a>, Failure> {
    Ok(Plan::Steps(|steps| Box::pin(greet(steps))))
}

async fn greet(steps: Steps) -> Result<Vec<u8>, Failure> {
    let arguments = steps.arguments.view();
    let client = &steps.client;
    let mut protocol = client.protocol.get();
    if let Some(version) = arguments.get(1) {
        protocol = match integer(version) {
            Err(_) => {
                let text = "ERR Protocol version is not an integer or out of range";
                return Err(Failure::fixed(text));
            }
            Ok(2) => Protocol::Resp2,
            Ok(3) => Protocol::Resp3,
            Ok(_) => return Err(Failure::fixed("NOPROTO unsupported protocol version")),
        };
    }
    let mut name = None;
    let mut rest = arguments.from(2);
    while let Some(option) = rest.next() {
        if is(option, "AUTH") && rest.len() >= 2 {
            let (user, password) = (rest.next(), rest.next());
            authenticate(&steps, user.unwrap_or_default(), password.unwrap_or_default()).await?;
        } else if is(option, "SETNAME")
            && let Some(given) = rest.next()
        {
            name = Some(super::clients::checked_name(given)?);
        } else {
            let option = shown(option);
            return Err(Failure::new(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if client.user.borrow().is_none() {
        return Err(Failure::fixed(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO AUTH <user> <pass> option can be used to authenticate the client and select \
             the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        *lock(&client.facts.name) = name;
    }
    client.speak(protocol);
    let mut out = Vec::new();
    let mut reply = Reply::new(&mut out, protocol);
    reply.map(7);
    for (field, value) in [("server", "redis"), ("version", COMPATIBLE_VERSION)] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(if protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(client.facts.id as i64);
    for (field, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(out)
}
