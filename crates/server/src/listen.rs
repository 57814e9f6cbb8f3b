//! The sockets of RESP: which are opened, and who may reach them.

use std::net::SocketAddr;
use std::sync::Arc;

use entresol_net::{Address, Listener, SettingError, Tls};

use crate::config::{Config, ConfigError};
use crate::shared::Ports;
use crate::users::Users;

/// Opens all sockets that the configuration names. A TCP socket from the service manager
/// (`LISTEN_FDS`) comes in place of `bind` and `port`, a Unix socket in place of `unix`.
///
/// # Errors
/// An address cannot be listened on, or is reachable from other machines while someone gets in
/// without a password.
pub(crate) fn open(
    config: &Config,
    users: &Users,
    tls: Option<&Arc<Tls>>,
) -> Result<(Vec<Listener>, Ports), ConfigError> {
    let demand = |found| demand_passwords(found, users);
    let mut listeners = Listener::inherited()?;
    let inherited = reached(&listeners)?;
    inherited.resp.iter().try_for_each(|address| demand(*address))?;
    if let Some(port) = config.port().filter(|_| inherited.resp.is_empty()) {
        listeners.extend(Listener::tcp(&config.bind(), port, &demand)?);
    }
    if let Some(path) = config.unix().filter(|_| inherited.unix.is_none()) {
        listeners.push(Listener::unix(&path, config.unix_mode())?);
    }
    if listeners.is_empty() {
        let detail = "there is nothing to listen on; give `port` or `unix`".to_owned();
        return Err(ConfigError::new("configuration", "port", detail));
    }
    listeners.iter_mut().for_each(|listener| listener.secure(tls));
    let ports = reached(&listeners)?;
    Ok((listeners, ports))
}

/// Where clients reach `listeners`.
fn reached(listeners: &[Listener]) -> Result<Ports, SettingError> {
    let mut ports = Ports::default();
    for listener in listeners {
        match listener.address()? {
            Address::Tcp(address) => ports.resp.push(address),
            Address::Unix(path) => ports.unix = Some(path.to_owned()),
        }
    }
    Ok(ports)
}

/// Refuses an address that other machines reach while someone gets in without a password.
pub(crate) fn demand_passwords(address: SocketAddr, users: &Users) -> Result<(), SettingError> {
    if address.ip().is_loopback() || users.all_have_passwords() {
        return Ok(());
    }
    let detail = format!(
        "{address} can be reached from other machines, but user `default` or another one gets in \
         without a password; give `users` a file in which all have one (`entresol user add` \
         writes its lines), or bind 127.0.0.1"
    );
    Err(SettingError::new("bind", detail))
}
