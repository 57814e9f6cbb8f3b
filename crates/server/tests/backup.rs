//! `BACKUP`: what a client copies while others write is the store of one moment.

#![expect(clippy::unwrap_used, reason = "what a test cannot do ends it")]

mod support;

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use entresol_device::{Device, IoBuffer, MemoryDevice};
use entresol_tier::{Admission, Durability, StoreOptions, Tiered, TieredOptions, Timestamp};
use serde_json::Value;
use support::{Client, TestServer};

const KEYS: usize = 500;

/// The bytes of a bulk string.
fn bulk(reply: &[u8]) -> &[u8] {
    assert_eq!(reply[0], b'$', "{}", String::from_utf8_lossy(reply));
    let start = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    &reply[start..reply.len() - 2]
}

fn begin(client: &mut Client<UnixStream>) -> Value {
    begin_by(client, &["BACKUP", "BEGIN"])
}

fn begin_by(client: &mut Client<UnixStream>, words: &[&str]) -> Value {
    client.send(words);
    serde_json::from_slice(bulk(&client.reply())).unwrap()
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap()
}

/// Sets every key to the number of the round.
fn fill(client: &mut Client<UnixStream>, round: usize) {
    for key in 0..KEYS {
        assert_eq!(client.call(&format!("SET key:{key} {round}:{}", "x".repeat(2_000))), "+OK\r\n");
    }
}

/// Copies the snapshot, `between` its segments something else.
fn copy(client: &mut Client<UnixStream>, backup: &Value, mut between: impl FnMut()) -> IoBuffer {
    let mut image = IoBuffer::aligned(number(backup, "device_bytes") as usize);
    let hex = backup["superblock"].as_str().unwrap();
    let superblock: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect();
    assert_eq!(superblock.len() as u64, number(backup, "superblock_bytes"));
    image[..superblock.len()].copy_from_slice(&superblock);
    image[superblock.len()..][..superblock.len()].copy_from_slice(&superblock);
    let snapshot = number(backup, "snapshot");
    for segment in backup["segments"].as_array().unwrap() {
        let (at, bytes) = (number(segment, "at"), number(segment, "bytes"));
        for offset in (0..bytes).step_by(700_000) {
            let length = (bytes - offset).min(700_000);
            client.send(
                &format!("BACKUP READ {snapshot} {at} {offset} {length}")
                    .split(' ')
                    .collect::<Vec<_>>(),
            );
            let reply = client.reply();
            image[(at + offset) as usize..][..length as usize].copy_from_slice(bulk(&reply));
        }
        assert_eq!(client.call(&format!("BACKUP DONE {snapshot} {at}")), "+OK\r\n");
        between();
    }
    assert_eq!(client.call(&format!("BACKUP END {snapshot}")), "+OK\r\n");
    image
}

#[test]
fn a_backup_has_all_keys_as_they_were_when_it_began() {
    has_all_keys(&["BACKUP", "BEGIN"]);
}

#[test]
fn a_backup_of_idle_time_has_all_keys_as_they_were_when_it_began() {
    has_all_keys(&["BACKUP", "BEGIN", "IDLE"]);
}

fn has_all_keys(words: &[&str]) {
    let server = TestServer::start(&[]);
    let (mut writer, mut copier) = (server.client(), server.client());
    fill(&mut writer, 1);
    let backup = begin_by(&mut copier, words);
    let mut round = 1;
    let image = copy(&mut copier, &backup, || {
        round += 1;
        fill(&mut writer, round);
    });
    let device = MemoryDevice::new(image.len() as u64).unwrap();
    device.write_at(0, &image).unwrap();
    let store = StoreOptions { durability: Durability::Memory, ..StoreOptions::default() };
    let (memory_bytes, cache_bytes) = (64 << 20, None);
    let options = TieredOptions { store, memory_bytes, cache_bytes, admission: Admission::Always };
    let tier = Tiered::open(Arc::new(device), options, Timestamp(1)).unwrap();
    let restored = TestServer::start_on(tier, &[]);
    let mut client = restored.client();
    assert_eq!(client.call("DBSIZE"), format!(":{KEYS}\r\n"));
    for key in 0..KEYS {
        let value = client.call(&format!("GET key:{key}"));
        assert!(value.contains("\r\n1:xxx"), "{key}: {}", &value[..20]);
    }
    assert!(round > 1, "{round} rounds");
}

#[test]
fn a_snapshot_belongs_to_its_connection_and_ends_with_it() {
    let server = TestServer::start(&[]);
    let (mut first, mut second) = (server.client(), server.client());
    fill(&mut first, 1);
    let unknown = first.call("BACKUP BEGIN NOW");
    assert!(unknown.starts_with("-ERR syntax error"), "{unknown}");
    let snapshot = number(&begin(&mut first), "snapshot");
    let busy = second.call("BACKUP BEGIN");
    assert!(busy.starts_with("-BUSY another snapshot"), "{busy}");
    let foreign = second.call(&format!("BACKUP READ {snapshot} 0 0 1"));
    assert!(foreign.starts_with("-ERR this connection has no snapshot"), "{foreign}");
    let unknown = first.call(&format!("BACKUP READ {snapshot} 7 0 1"));
    assert!(unknown.contains("no segment at byte"), "{unknown}");
    let long = first.call(&format!("BACKUP READ {snapshot} 0 0 1048577"));
    assert!(long.starts_with("-ERR"), "{long}");
    // The server ends the connection before it answers the next command.
    first.send(&["QUIT"]);
    while !first.reply().is_empty() {}
    let mut again = second.call("BACKUP BEGIN");
    while again.starts_with("-BUSY another") {
        again = second.call("BACKUP BEGIN");
    }
    assert!(again.starts_with('$'), "{again}");
}

#[test]
fn the_command_is_for_administrators() {
    let server = TestServer::start(&[]);
    let mut client = server.client();
    let described = client.call("COMMAND INFO backup|begin");
    assert!(described.contains("admin"), "{described}");
    assert!(client.call("BACKUP HELP").contains("BEGIN"));
    assert!(client.call("BACKUP").starts_with("-ERR"));
}
