//! The holder of the cache: a running server, or this command.

use entresol_device::Force;
use entresol_volume::{Cache, Request, VolumeId, Volumes};
use serde_json::{Value, json};

use super::cache::{CacheArgs, now};
use super::control::Control;
use crate::failure::{Failure, Outcome};

/// A cache that is asked for something.
pub(crate) enum Reached {
    /// By the server that has it.
    Server(Control),
    /// By this command.
    Stopped(Box<Cache>),
}

impl Reached {
    /// The server on the cache that `args` name, or else the cache itself.
    pub(crate) fn new(args: &CacheArgs) -> Outcome<Reached> {
        match Control::connect(&args.control_path()) {
            Some(server) => Ok(Reached::Server(server)),
            None => Ok(Reached::Stopped(Box::new(args.open(None, Force::No)?))),
        }
    }

    /// Figures of cache and volumes.
    pub(crate) fn statistics(&mut self) -> Outcome<Value> {
        match self {
            Reached::Server(server) => {
                let mut figures = server.ask(&json!({"command": "stat"}))?;
                if let Some(fields) = figures.as_object_mut() {
                    fields.remove("ok");
                }
                Ok(figures)
            }
            Reached::Stopped(cache) => serde_json::from_str(&cache.statistics())
                .map_err(|error| Failure::doing("figures of the cache", error)),
        }
    }

    /// Names of the volumes that there are.
    pub(crate) fn names(&mut self) -> Outcome<Vec<String>> {
        match self {
            Reached::Server(server) => {
                let answer = server.ask(&json!({"command": "list"}))?;
                let volumes = answer["volumes"].as_array().cloned().unwrap_or_default();
                Ok(volumes
                    .iter()
                    .filter_map(|one| Some(one["name"].as_str()?.to_owned()))
                    .collect())
            }
            Reached::Stopped(cache) => {
                Ok(cache.list().into_iter().map(|volume| volume.name).collect())
            }
        }
    }

    /// Refuses to have written back all there is if the logs of absent volumes hold something.
    pub(crate) fn demand_none_left_out(&mut self) -> Outcome<()> {
        let figures = self.statistics()?;
        let absent = figures["absent"].as_array().cloned().unwrap_or_default();
        let holds = |one: &&Value| one["log_entries"].as_u64() > Some(0);
        let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
        let left_out: Vec<String> = absent
            .iter()
            .filter(holds)
            .map(|one| format!("{} ({})", text(one, "name"), text(one, "error")))
            .collect();
        if left_out.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!(
            "volumes that are absent may have dirty blocks, which were not written back: {}",
            left_out.join("; ")
        )))
    }

    /// Asks the volume `name` for `request`, whose line for a server is `line`.
    pub(crate) fn ask(&mut self, name: &str, request: Request, line: &Value) -> Outcome<()> {
        match self {
            Reached::Server(server) => server.ask(line).map(drop),
            Reached::Stopped(cache) => {
                let id = find(cache, name)?;
                perform(cache, id, request).map(drop)
            }
        }
    }

    /// Leaves it as it was found.
    pub(crate) fn leave(self) -> Outcome<()> {
        match self {
            Reached::Server(_) => Ok(()),
            Reached::Stopped(cache) => cache.close(now()).map_err(Failure::from),
        }
    }
}

/// Refuses what only a cache that nobody has open can be asked for.
pub(crate) fn refuse_served(args: &CacheArgs) -> Outcome<()> {
    if Control::connect(&args.control_path()).is_none() {
        return Ok(());
    }
    Err(Failure::CannotRun(format!(
        "a server has {} open; stop it, then try again",
        args.cache.display()
    )))
}

/// The volume called `name`.
pub(crate) fn find(cache: &Cache, name: &str) -> Outcome<VolumeId> {
    if let Some(id) = cache.find(name) {
        return Ok(id);
    }
    if let Some((_, error)) = cache.absent().iter().find(|(absent, _)| absent == name) {
        return Err(Failure::CannotRun(format!("volume {name} cannot be used: {error}")));
    }
    let names: Vec<String> = cache.list().into_iter().map(|volume| volume.name).collect();
    Err(unknown(name, &names))
}

/// There is no volume called `name`.
pub(crate) fn unknown(name: &str, names: &[String]) -> Failure {
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Failure::CannotRun(format!("there is no volume {name} on this cache; there are: {there}"))
}

/// Performs a request on a cache that nobody serves, and waits for its end.
pub(crate) fn perform(cache: &mut Cache, volume: VolumeId, request: Request) -> Outcome<Vec<u8>> {
    cache.submit(volume, 0, request, now());
    let mut completions = Vec::new();
    while completions.is_empty() {
        cache.wait(now(), &mut completions);
    }
    let bytes = completions.remove(0).result?;
    Ok(bytes.to_vec())
}
