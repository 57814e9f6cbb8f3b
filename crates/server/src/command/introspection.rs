//! `COMMAND` and what all commands with subcommands share.

use entresol_wire::resp::Reply;

use super::arguments::{check_reply, is, quoted, shown};
use super::pattern;
use super::plan::Local;
use super::spec::{ADMIN, DENYOOM, FAST, NO_AUTH, NO_MULTI, READONLY, Spec, WRITE};
use super::table::{self, SPECS};
use crate::failure::Failure;

type Outcome = Result<(), Failure>;

/// A container without a subcommand that it has.
pub(crate) fn container(local: &mut Local<'_, '_>) -> Outcome {
    Err(unknown_subcommand(local.request.arguments.at(0), local.request.arguments.at(1)))
}

/// There is no subcommand `name` of `container`.
pub(crate) fn unknown_subcommand(container: &[u8], name: &[u8]) -> Failure {
    let name = quoted(name, 128);
    let container = shown(container).to_ascii_uppercase();
    Failure::new(format!("ERR unknown subcommand '{name}'. Try {container} HELP."))
}

pub(crate) fn help(local: &mut Local<'_, '_>) -> Outcome {
    let container = shown(local.request.arguments.at(0)).to_ascii_lowercase();
    let subcommands: Vec<&Spec> =
        SPECS.iter().filter(|spec| spec.container() == Some(container.as_str())).collect();
    local.reply.array(1 + subcommands.len());
    let title = container.to_ascii_uppercase();
    local.reply.simple(&format!("{title} <subcommand> [<arg> ...]. Subcommands are:"));
    for spec in subcommands {
        let name = spec.name.rsplit('|').next().unwrap_or_default().to_ascii_uppercase();
        local.reply.simple(&format!("{name}: {}", spec.summary));
    }
    Ok(())
}

/// Commands that are no subcommands.
pub(crate) fn commands() -> impl Iterator<Item = &'static Spec> + Clone {
    SPECS.iter().filter(|spec| spec.container().is_none())
}

pub(crate) fn all(local: &mut Local<'_, '_>) -> Outcome {
    if local.request.arguments.len() > 1 {
        return container(local);
    }
    local.reply.array(commands().count());
    commands().for_each(|spec| describe(spec, &mut local.reply));
    Ok(())
}

pub(crate) fn count(local: &mut Local<'_, '_>) -> Outcome {
    local.reply.integer(commands().count() as i64);
    Ok(())
}

pub(crate) fn info(local: &mut Local<'_, '_>) -> Outcome {
    let names = local.request.arguments.from(2);
    if names.len() == 0 {
        local.reply.array(commands().count());
        commands().for_each(|spec| describe(spec, &mut local.reply));
        return Ok(());
    }
    let start = local.reply.mark();
    local.reply.array(names.len());
    for name in names {
        match table::find(name) {
            Some(spec) => describe(spec, &mut local.reply),
            None => local.reply.null(),
        }
        check_reply(local.reply.mark() - start, local.request.reply_bytes_max)?;
    }
    Ok(())
}

/// A command as `COMMAND INFO` has it.
fn describe(spec: &Spec, reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.integer(i64::from(spec.arity));
    let flags: Vec<&str> = [
        (WRITE, "write"),
        (READONLY, "readonly"),
        (DENYOOM, "denyoom"),
        (ADMIN, "admin"),
        (FAST, "fast"),
        (NO_AUTH, "no_auth"),
        (NO_MULTI, "no_multi"),
    ]
    .into_iter()
    .filter_map(|(flag, name)| spec.has(flag).then_some(name))
    .collect();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    reply.integer(i64::from(spec.keys.first));
    reply.integer(i64::from(spec.keys.last));
    reply.integer(i64::from(spec.keys.step));
    let categories: Vec<_> = spec.categories().collect();
    reply.set(categories.len());
    categories.iter().for_each(|category| reply.simple(&format!("@{category}")));
    reply.array(0);
    reply.array(0);
    let subcommands: Vec<&Spec> =
        SPECS.iter().filter(|other| other.container() == Some(spec.name)).collect();
    reply.array(subcommands.len());
    subcommands.iter().for_each(|subcommand| describe(subcommand, reply));
}

pub(crate) fn docs(local: &mut Local<'_, '_>) -> Outcome {
    let named: Vec<&Spec> = match local.request.arguments.from(2) {
        names if names.len() == 0 => commands().collect(),
        names => names.filter_map(table::find).collect(),
    };
    let start = local.reply.mark();
    local.reply.map(named.len());
    for spec in named {
        document(spec, &mut local.reply);
        check_reply(local.reply.mark() - start, local.request.reply_bytes_max)?;
    }
    Ok(())
}

/// A command as `COMMAND DOCS` has it.
fn document(spec: &Spec, reply: &mut Reply<'_>) {
    reply.bulk(spec.name.as_bytes());
    let subcommands: Vec<&Spec> =
        SPECS.iter().filter(|other| other.container() == Some(spec.name)).collect();
    reply.map(3 + usize::from(!subcommands.is_empty()));
    for (field, value) in
        [("summary", spec.summary), ("since", spec.since), ("group", spec.group.name())]
    {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    if !subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(subcommands.len());
        subcommands.iter().for_each(|subcommand| document(subcommand, reply));
    }
}

pub(crate) fn list(local: &mut Local<'_, '_>) -> Outcome {
    let arguments = local.request.arguments;
    let names: Vec<&str> = match (arguments.get(3), arguments.get(4)) {
        (None, None) if arguments.len() == 2 => SPECS.iter().map(|spec| spec.name).collect(),
        (Some(kind), Some(value)) if is(arguments.at(2), "FILTERBY") && arguments.len() == 5 => {
            let value = value.to_ascii_lowercase();
            let is_included: &dyn Fn(&&Spec) -> bool = if is(kind, "ACLCAT") {
                &|spec| spec.is_in(&shown(&value))
            } else if is(kind, "PATTERN") {
                &|spec| pattern::matches(&value, spec.name.as_bytes())
            } else if is(kind, "MODULE") {
                &|_| false
            } else {
                return Err(Failure::SYNTAX);
            };
            SPECS.iter().filter(is_included).map(|spec| spec.name).collect()
        }
        _ => return Err(Failure::SYNTAX),
    };
    local.reply.array(names.len());
    names.iter().for_each(|name| local.reply.bulk(name.as_bytes()));
    Ok(())
}

pub(crate) fn getkeys(local: &mut Local<'_, '_>) -> Outcome {
    let command = local.request.arguments.tail(2);
    let spec = match table::find(command.at(0)) {
        Some(spec) if spec.is_container() && command.len() > 1 => {
            table::find_subcommand(spec.name, command.at(1))
        }
        found => found,
    };
    let spec = spec.ok_or(Failure::fixed("ERR Invalid command specified"))?;
    if spec.keys.first == 0 {
        return Err(Failure::fixed("ERR The command has no key arguments"));
    }
    if !spec.takes(command.len()) {
        return Err(Failure::fixed("ERR Invalid number of arguments specified for command"));
    }
    let places: Vec<usize> = spec.key_places(command.len()).collect();
    local.reply.array(places.len());
    places.iter().for_each(|place| local.reply.bulk(command.at(*place)));
    Ok(())
}
