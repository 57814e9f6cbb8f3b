//! The sockets of RESP: which are opened, and who may reach them.

use std::net::SocketAddr;
use std::sync::Arc;

use entresol_net::{Address, Listener, SettingError};
use rustls::ServerConfig;

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
    tls: Option<&Arc<ServerConfig>>,
) -> Result<(Vec<Listener>, Ports), ConfigError> {
    let mut ports = Ports::default();
    let mut listeners = take_inherited(users, &mut ports)?;
    if let Some(port) = config.port().filter(|_| ports.resp.is_empty()) {
        let mut port = port;
        for address in config.bind() {
            let listener = Listener::tcp(&address, port, &|found| demand_passwords(found, users))?;
            if let Address::Tcp(local) = listener.address()? {
                // All addresses share the port that the first one got.
                port = local.port();
                ports.resp.push(local);
            }
            listeners.push(listener);
        }
    }
    if let Some(path) = config.unix().filter(|_| ports.unix.is_none()) {
        listeners.push(Listener::unix(&path, config.unix_mode())?);
        ports.unix = Some(path);
    }
    if listeners.is_empty() {
        let detail = "there is nothing to listen on; give `port` or `unix`".to_owned();
        return Err(ConfigError::new("configuration", "port", detail));
    }
    listeners.iter_mut().for_each(|listener| listener.secure(tls));
    Ok((listeners, ports))
}

/// Takes over the sockets that the service manager opened, if this process was given any.
fn take_inherited(users: &Users, ports: &mut Ports) -> Result<Vec<Listener>, SettingError> {
    let listeners = Listener::inherited()?;
    for listener in &listeners {
        match listener.address()? {
            Address::Tcp(address) => {
                demand_passwords(address, users)?;
                ports.resp.push(address);
            }
            Address::Unix(path) => ports.unix = Some(path.to_owned()),
        }
    }
    Ok(listeners)
}

/// Refuses an address that other machines reach while someone gets in without a password.
fn demand_passwords(address: SocketAddr, users: &Users) -> Result<(), SettingError> {
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
