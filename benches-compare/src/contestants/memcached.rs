//! memcached with extstore: hash table and keys in memory, values on flash. Moving values to flash
//! is a background job that a fast load outruns, and what it outruns is dropped: values may move
//! after a second, the load is paced, and misses are a part of its figures. Eight connections,
//! pipelines of 8.

use std::process::Command;

use super::socket::{Protocol, Reply, Server, line, number};
use crate::contestant::{Contestant, Fault, Result, Settings};
use crate::plan::Phase;
use crate::turn::Turn;

struct Memcached {
    server: Server,
}

struct Text;

/// Starts memcached in the directory.
pub fn open(settings: &Settings) -> Result<Box<dyn Contestant>> {
    let plan = &settings.plan;
    let socket = settings.directory.join("memcached.sock");
    let file = settings.directory.join("extstore");
    let file_mib = (plan.data_bytes() * 2) >> 20;
    // Room for the hash table, the write buffers and the connections is left under the cap.
    let memory_mib = (plan.memory_bytes * 6 / 10) >> 20;
    let page_mib = if plan.data_bytes() > 1 << 30 { 32 } else { 8 };
    let extstore = format!(
        "ext_page_size={page_mib},ext_wbuf_size=4,ext_threads=4,ext_item_size=512,\
         ext_item_age=1,ext_path={}:{file_mib}m",
        file.display()
    );
    let mut command = Command::new("memcached");
    command.arg("-s").arg(&socket).args(["-u", "root", "-t", "2", "-c", "256", "-U", "0"]);
    command.args(["-m", &memory_mib.to_string(), "-o", &extstore]);
    Ok(Box::new(Memcached { server: Server::start(&mut command, &socket)? }))
}

impl Contestant for Memcached {
    fn workers(&self, phase: Phase) -> usize {
        if phase == Phase::Synced { 0 } else { 8 }
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        self.server.play(&Text, 8, turns)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn quiesce(&self) -> Result<()> {
        std::thread::sleep(std::time::Duration::from_secs(2));
        Ok(())
    }

    fn load_rate(&self) -> Option<f64> {
        Some(15_000.0)
    }

    fn server_pid(&self) -> Option<u32> {
        Some(self.server.pid())
    }

    fn notes(&self) -> Vec<String> {
        let wanted = ["evictions", "extstore_objects_evicted", "extstore_objects_used"];
        let statistics = self.server.ask(b"stats\r\n").unwrap_or_default();
        let lines = statistics.lines().filter_map(|line| line.strip_prefix("STAT "));
        lines
            .filter(|line| wanted.contains(&line.split(' ').next().unwrap_or_default()))
            .map(str::to_owned)
            .collect()
    }
}

impl Protocol for Text {
    fn get(&self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"get ");
        out.extend_from_slice(key);
        out.extend_from_slice(b"\r\n");
    }

    fn put(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"set ");
        out.extend_from_slice(key);
        out.extend_from_slice(format!(" 0 0 {}\r\n", value.len()).as_bytes());
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }

    fn reply<'a>(&self, bytes: &'a [u8]) -> Result<Option<(Reply<'a>, usize)>> {
        const END: &[u8] = b"\r\nEND\r\n";
        let Some((head, start)) = line(bytes) else { return Ok(None) };
        let reply = match head {
            b"STORED" => Reply::Done,
            b"END" => Reply::Nothing,
            _ if head.starts_with(b"VALUE ") => {
                let length = head.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
                let end = start + number(length)?;
                if bytes.len() < end + END.len() {
                    return Ok(None);
                }
                return Ok(Some((Reply::Value(&bytes[start..end]), end + END.len())));
            }
            _ if head.starts_with(b"SERVER_ERROR") || head == b"NOT_STORED" => Reply::Refused,
            other => {
                let text = String::from_utf8_lossy(other);
                return Err(Fault::from(format!("memcached answered '{text}'")));
            }
        };
        Ok(Some((reply, start)))
    }
}
