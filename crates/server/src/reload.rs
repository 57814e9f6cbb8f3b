//! What a running server reads again when it is asked to: its users, all certificates, the token of
//! the HTTP interface, and its configuration file. What cannot be used leaves everything as it was.
//!
//! A client that is there stays who it is, until it says that it is somebody else.

use entresol_net::Tls;
use tracing::{error, info, warn};

use crate::config::ConfigError;
use crate::listen::demand_passwords;
use crate::lock::lock;
use crate::server::limit_clients;
use crate::shared::{Ports, Shared};
use crate::users::Users;

/// Reads all of it again.
///
/// # Errors
/// A sentence for each part that stays as it was.
pub(crate) fn all(shared: &Shared) -> Result<(), Vec<String>> {
    let mut refused = Vec::new();
    match users(shared) {
        Ok(Some(number)) => info!("users are read again: {number}"),
        Ok(None) => {}
        Err(why) => refused.push(format!("{why}; users stay as they were")),
    }
    let admin = &shared.admin_access;
    let parts = [
        ("certificates", shared.tls.as_ref().map(|tls| tls.reload())),
        ("certificates of the HTTP interface", admin.tls().map(Tls::reload)),
        ("tokens of the HTTP interface", admin.reload_token()),
    ];
    for (what, read) in parts {
        match read.map(|read| read.map_err(ConfigError::from)) {
            None => {}
            Some(Ok(())) => info!("{what} are read again"),
            Some(Err(why)) => refused.push(format!("{why}; {what} stay as they were")),
        }
    }
    if let Err(why) = configuration(shared) {
        refused.push(format!("{why}; the configuration stays as it was"));
    }
    refused.iter().for_each(|why| error!("{why}"));
    if refused.is_empty() { Ok(()) } else { Err(refused) }
}

/// Reads the users again; how many there are, `None` without a file of users.
///
/// # Errors
/// The file cannot be used, or somebody gets in without a password where others reach the server.
pub(crate) fn users(shared: &Shared) -> Result<Option<usize>, String> {
    let Some(path) = lock(&shared.config).users() else { return Ok(None) };
    let users = Users::read(&path).map_err(|error| error.to_string())?;
    let reached = shared.ports.get().into_iter().flat_map(|Ports { resp, .. }| resp);
    for address in reached {
        demand_passwords(*address, &users).map_err(|error| ConfigError::from(error).to_string())?;
    }
    let number = users.iter().len();
    shared.set_users(users);
    Ok(Some(number))
}

/// Takes the live keys of the configuration file as they are now.
fn configuration(shared: &Shared) -> Result<(), String> {
    let mut config = lock(&shared.config);
    let (mut now, waits) = config.read_again().map_err(|error| error.to_string())?;
    limit_clients(&mut now).map_err(|error| error.to_string())?;
    if !waits.is_empty() {
        warn!("a restart will change {}", waits.join(", "));
    }
    if let Some(file) = now.file() {
        info!("{} is read again", file.display());
    }
    shared.change_config(&mut config, now);
    Ok(())
}
