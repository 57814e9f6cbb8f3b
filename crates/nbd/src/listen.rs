//! Where clients come in: options, sockets, and what an export says of a volume.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use entresol_net::{Address, Admin, AdminAccess, Listener, SettingError, Stream, Tls, TlsFiles};
use entresol_volume::VolumeInfo;
use entresol_wire::nbd::{BlockSizes, Export, ExportFlags, TlsRule};
use mio::net::{TcpStream, UnixStream};

use crate::error::NbdError;

/// How a server of volumes is reached.
#[derive(Debug, Clone)]
pub struct NbdOptions {
    /// Where clients come from.
    pub listen: Listen,
    /// Certificates, for TLS.
    pub tls: Option<TlsFiles>,
    /// What TLS is to clients, if there are certificates.
    pub tls_demand: TlsDemand,
    /// Who may reach it over the network.
    pub access: Access,
    /// The path of the socket for administrators.
    pub control: Option<PathBuf>,
    /// The port of the HTTP interface; 0 takes any free one.
    pub admin_port: Option<u16>,
    /// The address of this machine that the HTTP interface listens on.
    pub admin_bind: String,
    /// The file with what whoever asks for figures shows.
    pub admin_token: Option<PathBuf>,
    /// Certificates of the HTTP interface, for TLS.
    pub admin_tls: Option<TlsFiles>,
}

/// Where clients come from. Sockets that a service manager opened (`LISTEN_FDS`) come in place of
/// those named here.
#[derive(Debug, Clone)]
pub enum Listen {
    /// New sockets.
    Sockets {
        /// A port of each address of `bind`; 0 takes any free one.
        port: Option<u16>,
        /// Addresses of this machine.
        bind: Vec<String>,
        /// The path of a Unix socket.
        unix: Option<PathBuf>,
        /// Its mode.
        unix_mode: u32,
    },
    /// One client, whose socket is the standard input; when it leaves, the server stops.
    StandardInput,
}

/// What TLS is to clients of a server that has certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsDemand {
    /// Nothing is done for a client without it.
    #[default]
    Required,
    /// Clients that ask for it get it.
    Optional,
}

/// Who may reach the server over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// This machine, and whoever shows a certificate of the authority of [`TlsFiles`].
    #[default]
    Known,
    /// Everyone: something else keeps strangers out.
    Everyone,
}

/// Where clients reach a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NbdPorts {
    /// TCP addresses.
    pub tcp: Vec<SocketAddr>,
    /// The path of a Unix socket.
    pub unix: Option<PathBuf>,
    /// The path of the socket for administrators.
    pub control: Option<PathBuf>,
    /// The address of the HTTP interface.
    pub admin: Option<SocketAddr>,
}

/// Everything that was opened.
pub(crate) struct Listening {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) only_client: Option<Stream>,
    pub(crate) control: Option<Listener>,
    pub(crate) admin: Option<Admin>,
    pub(crate) admin_access: Arc<AdminAccess>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) tls_rule: TlsRule,
    pub(crate) ports: NbdPorts,
}

impl Listening {
    /// Opens what `options` name. Clients that connect wait.
    pub(crate) fn open(options: &NbdOptions) -> Result<Listening, NbdError> {
        let tls = options.tls.clone().map(Tls::open).transpose()?.map(Arc::new);
        let tls_rule = match (&tls, options.tls_demand) {
            (None, _) => TlsRule::Off,
            (Some(_), TlsDemand::Required) => TlsRule::Required,
            (Some(_), TlsDemand::Optional) => TlsRule::Offered,
        };
        let mut only_client = None;
        let listeners = match &options.listen {
            Listen::StandardInput => {
                let client = standard_input().map_err(|error| {
                    NbdError::System("expected a socket as the standard input", error)
                })?;
                only_client = Some(client);
                Vec::new()
            }
            Listen::Sockets { .. } => {
                let inherited = Listener::inherited()?;
                if inherited.is_empty() { open_sockets(options)? } else { inherited }
            }
        };
        let mut ports = NbdPorts::default();
        for listener in &listeners {
            match listener.address()? {
                Address::Tcp(address) => ports.tcp.push(address),
                Address::Unix(path) => ports.unix = Some(path.to_owned()),
            }
        }
        let control = match &options.control {
            Some(path) => Some(Listener::unix(path, 0o600)?),
            None => None,
        };
        ports.control.clone_from(&options.control);
        let admin_access =
            Arc::new(AdminAccess::open(options.admin_token.clone(), options.admin_tls.clone())?);
        let admin = match options.admin_port {
            Some(port) => Some(Admin::open(&options.admin_bind, port, Arc::clone(&admin_access))?),
            None => None,
        };
        ports.admin = admin.as_ref().map(Admin::address);
        Ok(Listening { listeners, only_client, control, admin, admin_access, tls, tls_rule, ports })
    }
}

fn open_sockets(options: &NbdOptions) -> Result<Vec<Listener>, SettingError> {
    let Listen::Sockets { port, bind, unix, unix_mode } = &options.listen else {
        return Ok(Vec::new());
    };
    let demand = |found| demand_known(found, options);
    let mut listeners = match *port {
        Some(port) => Listener::tcp(bind, port, &demand)?,
        None => Vec::new(),
    };
    if let Some(path) = unix {
        listeners.push(Listener::unix(path, *unix_mode)?);
    }
    if listeners.is_empty() {
        let detail = "there is nothing to listen on; give --unix PATH or --port N".to_owned();
        return Err(SettingError::new("port", detail));
    }
    Ok(listeners)
}

/// Refuses an address that other machines reach while anyone may write to the volumes.
fn demand_known(address: SocketAddr, options: &NbdOptions) -> Result<(), SettingError> {
    let shows_certificate = options.tls_demand == TlsDemand::Required
        && options.tls.as_ref().is_some_and(|files| files.client_authority.is_some());
    if address.ip().is_loopback() || shows_certificate || options.access == Access::Everyone {
        return Ok(());
    }
    let detail = format!(
        "{address} can be reached from other machines, and whoever reaches it may write to the \
         volumes; give --tls-cert, --tls-key and --tls-client-ca, or bind 127.0.0.1, or say \
         --allow-everyone if a firewall keeps strangers out"
    );
    Err(SettingError::new("bind", detail))
}

/// The client whose socket is the standard input.
fn standard_input() -> io::Result<Stream> {
    let copy = || -> io::Result<OwnedFd> { io::stdin().as_fd().try_clone_to_owned() };
    let tcp = std::net::TcpStream::from(copy()?);
    // The address of a socket of another family is no address of TCP's.
    if tcp.peer_addr().is_ok() {
        tcp.set_nonblocking(true)?;
        return Stream::tcp(TcpStream::from_std(tcp), None);
    }
    let unix = std::os::unix::net::UnixStream::from(copy()?);
    unix.local_addr()?;
    unix.set_nonblocking(true)?;
    Ok(Stream::unix(UnixStream::from_std(unix), "stdin"))
}

/// What a client is told of a volume.
pub(crate) fn export_of(volume: &VolumeInfo) -> Export {
    let mut flags = ExportFlags::HAS_FLAGS
        .with(ExportFlags::FLUSH)
        .with(ExportFlags::FUA)
        .with(ExportFlags::MULTI_CONN)
        .with(ExportFlags::CACHE);
    if volume.read_only {
        flags = flags.with(ExportFlags::READ_ONLY);
    } else {
        flags = flags.with(ExportFlags::WRITE_ZEROES).with(ExportFlags::FAST_ZERO);
        if volume.can_trim {
            flags = flags.with(ExportFlags::TRIM);
        }
    }
    let preferred = volume.preferred_bytes.max(512).next_power_of_two();
    let description = match volume.description.is_empty() {
        true => format!("cached volume, mode {}", volume.mode),
        false => volume.description.clone(),
    };
    Export {
        name: volume.name.clone(),
        description,
        bytes: volume.bytes,
        flags,
        sizes: BlockSizes { preferred: preferred.min(32 << 20), ..BlockSizes::default() },
    }
}
