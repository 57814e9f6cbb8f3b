//! redis-server with everything in memory, nothing saved: what memory alone gives, over a socket.
//! The memory cap does not apply to it. Four connections, pipelines of 16.

use std::process::Command;

use super::socket::{Protocol, Reply, Server, line, number};
use crate::contestant::{Contestant, Fault, Result, Settings};
use crate::plan::Phase;
use crate::turn::Turn;

struct Redis {
    server: Server,
}

struct Resp;

/// Starts redis-server in the directory.
pub fn open(settings: &Settings) -> Result<Box<dyn Contestant>> {
    let socket = settings.directory.join("redis.sock");
    let mut command = Command::new("redis-server");
    command.current_dir(&settings.directory).arg("--unixsocket").arg(&socket);
    command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
    Ok(Box::new(Redis { server: Server::start(&mut command, &socket)? }))
}

impl Contestant for Redis {
    fn workers(&self, phase: Phase) -> usize {
        if phase == Phase::Synced { 0 } else { 4 }
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        self.server.play(&Resp, 16, turns)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn server_pid(&self) -> Option<u32> {
        Some(self.server.pid())
    }
}

impl Protocol for Resp {
    fn get(&self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
        bulk(key, out);
    }

    fn put(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
        bulk(key, out);
        bulk(value, out);
    }

    fn reply<'a>(&self, bytes: &'a [u8]) -> Result<Option<(Reply<'a>, usize)>> {
        let Some((head, start)) = line(bytes) else { return Ok(None) };
        let reply = match head {
            b"+OK" => Reply::Done,
            b"$-1" => Reply::Nothing,
            [b'$', length @ ..] => {
                let end = start + number(length)?;
                if bytes.len() < end + 2 {
                    return Ok(None);
                }
                return Ok(Some((Reply::Value(&bytes[start..end]), end + 2)));
            }
            [b'-', ..] => Reply::Refused,
            other => {
                let text = String::from_utf8_lossy(other);
                return Err(Fault::from(format!("redis answered '{text}'")));
            }
        };
        Ok(Some((reply, start)))
    }
}

fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
