//! Exports volumes in memory over NBD, to try clients without a cache or a backing device:
//! `memory_export [--unix PATH | --port N | --stdin] [--size BYTES] [--read-only] [--two]
//! [--tls CERT KEY [CA]] [--control PATH] [--admin-port N]`.

#[path = "../tests/support/memory_volumes.rs"]
mod memory_volumes;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use entresol_nbd::{Access, Listen, NbdOptions, NbdServer, TlsDemand, TlsFiles, TlsPort};
use entresol_volume::Moment;
use memory_volumes::{Gate, MemoryVolumes, Volume};
use signal_hook::consts::{SIGINT, SIGTERM};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut listen = Listen::Sockets {
        port: None,
        bind: vec!["127.0.0.1".to_owned()],
        unix: None,
        unix_mode: 0o600,
    };
    let mut options = NbdOptions {
        listen: listen.clone(),
        tls: None,
        tls_demand: TlsDemand::Required,
        access: Access::Known,
        control: None,
        admin_port: None,
        admin_bind: "127.0.0.1".to_owned(),
        admin_token: None,
        admin_tls: None,
    };
    let mut volume = Volume::new("memory", 64 << 20);
    let mut volumes = Vec::new();
    let mut words = std::env::args().skip(1).peekable();
    while let Some(word) = words.next() {
        let mut next = || words.next().ok_or_else(|| format!("{word}: expected a value"));
        match word.as_str() {
            "--stdin" => listen = Listen::StandardInput,
            "--unix" | "--port" => {
                let value = next()?;
                if let Listen::Sockets { port, unix, .. } = &mut listen {
                    match word.as_str() {
                        "--unix" => *unix = Some(PathBuf::from(value)),
                        _ => *port = Some(value.parse()?),
                    }
                }
            }
            "--size" => volume = Volume::new("memory", next()?.parse()?),
            "--read-only" => volume.info.read_only = true,
            "--slow-zeroes" => volume.zeroes_fast = false,
            "--two" => volumes.push(Volume::new("second", 1 << 20)),
            "--tls-optional" => options.tls_demand = TlsDemand::Optional,
            "--tls" => {
                let (certificate, key) = (PathBuf::from(next()?), PathBuf::from(next()?));
                let authority = words.next_if(|word| !word.starts_with("--")).map(PathBuf::from);
                options.tls = TlsFiles::from_options(
                    TlsPort::Clients,
                    Some(certificate),
                    Some(key),
                    authority,
                )?;
            }
            "--control" => options.control = Some(PathBuf::from(next()?)),
            "--admin-port" => options.admin_port = Some(next()?.parse()?),
            other => return Err(format!("unexpected `{other}`").into()),
        }
    }
    options.listen = listen;
    volumes.insert(0, volume);
    let server = NbdServer::open(&options)?;
    let stopper = server.stopper();
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
    std::thread::spawn(move || signals.forever().for_each(|_| stopper.stop()));
    writeln!(std::io::stderr(), "listening {:?}", server.ports())?;
    let mut volumes = MemoryVolumes::new(volumes, Arc::new(Gate::default()), 1);
    let began = Instant::now();
    server.serve(&mut volumes, &|| Moment(began.elapsed().as_nanos() as u64), &|| ())?;
    Ok(())
}
