//! `entresol volume serve`: the volumes of a cache, exported over NBD.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use entresol_device::Force;
use entresol_host::{LogFormat, Systemd, allow_open_files, set_log_level, start_log};
use entresol_nbd::{
    Access, AdminAccess, DeviceWatch, Listen, NbdOptions, NbdPorts, NbdServer, SettingError, Tls,
    TlsDemand, TlsFiles, TlsPort,
};
use entresol_volume::Volumes;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{error, info, warn};

use super::cache::{CacheArgs, now};
use super::log_level::LevelArgs;
use crate::failure::{Failure, Outcome};

/// Options of `entresol volume serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Sockets that a service manager opened (LISTEN_FDS) come in place of --unix and --port.

Examples:
  entresol volume serve --cache /ssd/cache --unix /run/entresol-nbd
  entresol volume serve --cache /dev/nvme0n1p4 --port 10809 --bind 0.0.0.0 \\
      --tls-cert server.pem --tls-key server.key --tls-client-ca ca.pem
  nbdinfo [ entresol volume serve --cache /ssd/cache ]")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    cache: CacheArgs,
    /// Listen on this Unix socket
    #[arg(long, value_name = "SOCK")]
    unix: Option<PathBuf>,
    /// Mode of the Unix socket
    #[arg(long, value_name = "OCTAL", value_parser = parse_mode, default_value = "660")]
    unix_mode: u32,
    /// Listen on this TCP port; 0 takes a free one, which the first line of the output names
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Addresses to listen on, separated by commas
    #[arg(long, value_name = "ADDR", value_delimiter = ',', default_value = "127.0.0.1")]
    bind: Vec<String>,
    /// Serve the one client whose socket is the standard input, and end with it
    #[arg(long, conflicts_with_all = ["unix", "port"])]
    stdin: bool,
    /// Certificate for TLS (PEM); with it, clients without TLS are refused
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Authority of clients' certificates (PEM); with it, clients without one are refused
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// Serve clients without TLS too
    #[arg(long, requires = "tls_cert")]
    tls_optional: bool,
    /// Listen on addresses that other machines reach although clients show no certificate
    #[arg(long)]
    allow_everyone: bool,
    /// HTTP on this port: a page, /health, /stats, /metrics; 0 takes a free one
    #[arg(long, value_name = "N")]
    admin_port: Option<u16>,
    /// Address of this machine that HTTP is on; whoever reaches it sees all figures
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    admin_bind: String,
    /// File with a token that requests for figures show as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE")]
    admin_token: Option<PathBuf>,
    /// Certificate of HTTP (PEM); with it HTTP is by TLS alone
    #[arg(long, value_name = "FILE")]
    admin_tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE")]
    admin_tls_key: Option<PathBuf>,
    /// Authority of certificates (PEM) that requests for figures show, beside the token
    #[arg(long, value_name = "FILE")]
    admin_tls_client_ca: Option<PathBuf>,
    /// Open backings although they are in use elsewhere
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    level: LevelArgs,
    /// How a line of the log looks: for people, or an object of JSON for programs
    #[arg(long, value_enum, default_value_t = LogForm::Text)]
    log_format: LogForm,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogForm {
    Text,
    Json,
}

/// Serves until it is told to stop.
pub(crate) fn run(args: &ServeArgs) -> Outcome<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::doing("cannot watch for signals", error))?;
    let options = args.options()?;
    args.start_log()?;
    // Where the system does not tell, what it allows already has to do.
    let _ = allow_open_files();
    // A server that has the cache says so better than the lock on it.
    if UnixStream::connect(args.cache.control_path()).is_ok() {
        return Err(Failure::CannotRun(format!(
            "a server runs on {} already, as its socket {} answers; stop it first",
            args.cache.cache.display(),
            args.cache.control_path().display()
        )));
    }
    let server =
        NbdServer::open(&options).map_err(|error| Failure::CannotRun(error.to_string()))?;
    let force = if args.force { Force::Yes } else { Force::No };
    let mut cache = args.cache.open(None, force)?;
    for (name, error) in cache.absent() {
        warn!("volume {name} is not exported: {error}");
    }
    if cache.list().is_empty() {
        warn!("the cache has no volumes that can be exported");
    }
    let open = server.ports().admin.filter(|address| !address.ip().is_loopback());
    if let Some(open) = open.filter(|_| !server.admin_access().is_closed()) {
        warn!(
            "the HTTP interface at {open} can be reached from other machines: whoever reaches it \
             sees all figures; `--admin-token` names a file with a word to ask for"
        );
    }
    let stopper = server.stopper();
    let handle = signals.handle();
    let files =
        Files { tls: server.tls(), admin: server.admin_access(), level: args.level.clone() };
    announce(args, server.ports())?;
    let systemd = Arc::new(Systemd::ready());
    let told = Arc::clone(&systemd);
    let watcher = std::thread::spawn(move || {
        signals.forever().for_each(|signal| match signal {
            SIGHUP => told.reload(|| files.read_again()),
            _ => stopper.stop(),
        });
    });
    let served = server.serve(&mut cache, &now, &|| systemd.alive());
    let served = served.map_err(|e| Failure::CannotRun(e.to_string()));
    systemd.stopping();
    info!("stopping: bringing the cache to rest");
    // How long a stop may take is the unit's `TimeoutStopSec`, and no matter of its watchdog.
    let ending = Arc::clone(&systemd);
    let watch = DeviceWatch::begin(cache.devices(), move || ending.alive());
    let closed = cache.close(now()).map_err(Failure::from);
    drop(watch);
    handle.close();
    // It has nothing left to watch for.
    drop(watcher.join());
    served.and(closed)?;
    info!("stopped");
    Ok(())
}

/// What the server reads again when it is asked to.
struct Files {
    tls: Option<Arc<Tls>>,
    admin: Arc<AdminAccess>,
    level: LevelArgs,
}

impl Files {
    /// Reads all of it again; clients that are there go on. What cannot be used leaves things as
    /// they were.
    fn read_again(&self) {
        match self.level.read() {
            // First, so that the other lines are of the new level.
            Ok(level) => set_log_level(level),
            Err(why) => error!("{why}; the level of the log stays as it was"),
        }
        let parts = [
            ("certificates are", self.tls.as_ref().map(|tls| tls.reload())),
            ("certificates of the HTTP interface are", self.admin.tls().map(Tls::reload)),
            ("the token of the HTTP interface is", self.admin.reload_token()),
        ];
        for (what, read) in parts {
            match read {
                None => {}
                Some(Ok(())) => info!("{what} read again"),
                Some(Err(why)) => error!("{what} as before: {why}"),
            }
        }
    }
}

impl ServeArgs {
    fn start_log(&self) -> Outcome<()> {
        let level = self.level.read().map_err(Failure::CannotRun)?;
        start_log(
            level,
            match self.log_format {
                LogForm::Text => LogFormat::Text,
                LogForm::Json => LogFormat::Json,
            },
        );
        info!("entresol {}, process {}", env!("CARGO_PKG_VERSION"), std::process::id());
        Ok(())
    }

    fn options(&self) -> Outcome<NbdOptions> {
        let wrong = |error: SettingError| Failure::CannotRun(error.to_string());
        let files = TlsFiles::from_options(
            TlsPort::Clients,
            self.tls_cert.clone(),
            self.tls_key.clone(),
            self.tls_client_ca.clone(),
        );
        let admin_files = TlsFiles::from_options(
            TlsPort::Admin,
            self.admin_tls_cert.clone(),
            self.admin_tls_key.clone(),
            self.admin_tls_client_ca.clone(),
        );
        let listen = match self.stdin {
            true => Listen::StandardInput,
            false => Listen::Sockets {
                port: self.port,
                bind: self.bind.clone(),
                unix: self.unix.clone(),
                unix_mode: self.unix_mode,
            },
        };
        Ok(NbdOptions {
            listen,
            tls: files.map_err(wrong)?,
            tls_demand: match self.tls_optional {
                true => TlsDemand::Optional,
                false => TlsDemand::Required,
            },
            access: if self.allow_everyone { Access::Everyone } else { Access::Known },
            control: self.cache.control_to_open(),
            admin_port: self.admin_port,
            admin_bind: self.admin_bind.clone(),
            admin_token: self.admin_token.clone(),
            admin_tls: admin_files.map_err(wrong)?,
        })
    }
}

/// Writes the line that names the ports. Where the standard output belongs to whoever started the
/// server, because the sockets do, it says nothing.
fn announce(args: &ServeArgs, ports: &NbdPorts) -> Outcome<()> {
    let mut line = String::from("listening");
    if let Some(address) = ports.tcp.first() {
        line.push_str(&format!(" port={}", address.port()));
    }
    if let Some(path) = &ports.unix {
        line.push_str(&format!(" unix={}", path.display()));
    }
    if let Some(path) = &ports.control {
        line.push_str(&format!(" control={}", path.display()));
    }
    if let Some(address) = ports.admin {
        line.push_str(&format!(" admin={}", address.port()));
    }
    let is_ours = args.unix.is_some() || args.port.is_some();
    if !is_ours {
        say!("{line}");
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| Failure::doing("the ports cannot be written", error))
}

fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("expected an octal number such as 660, found '{text}'"))
}
