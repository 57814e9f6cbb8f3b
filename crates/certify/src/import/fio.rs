//! Logs of fio: those of `write_lat_log` and similar options (time in ms, value, direction, size,
//! …), and I/O logs of version 2 and 3 (file, action, offset, size; in version 3 the time in µs in
//! front).
//!
//! A line of a log of averages, as `log_avg_msec` makes them, is no transfer, and has the size 0.

use super::profile::{large_block_kbytes, records_behind};
use super::{ImportError, Profile, Selection};
use crate::config::SizeHistogram;

/// One transfer.
struct Transfer {
    milliseconds: Option<f64>,
    is_write: bool,
    bytes: u64,
}

/// Sizes beyond this are no transfers.
const POWER_MAX: usize = 40;

/// Could `line` be of such a log?
pub(super) fn is_line(line: &str) -> bool {
    line.starts_with("fio version ") && line.ends_with("iolog") || of_latency_log(line).is_some()
}

pub(super) fn import(text: &str, selection: &Selection) -> Result<Profile, ImportError> {
    let version = text.lines().next().and_then(|line| line.trim().strip_prefix("fio version "));
    let timed = version.is_some_and(|version| version.starts_with('3'));
    let mut counts = [vec![0u64; POWER_MAX], vec![0u64; POWER_MAX]];
    let mut large = [0u64; 2];
    let mut large_bytes = 0u64;
    let (mut first, mut last) = (None, None);
    for (index, line) in text.lines().enumerate().skip(usize::from(version.is_some())) {
        if line.trim().is_empty() {
            continue;
        }
        let transfer = match version {
            Some(_) => of_io_log(line, timed),
            None => of_latency_log(line),
        };
        let Some(transfer) = transfer else {
            let problem = "this is no line of a log of fio; expected time, value, direction and \
                           size, or file, action, offset and size";
            return Err(ImportError::at(index + 1, problem.to_owned()));
        };
        let Some(transfer) = transfer else { continue };
        if transfer.bytes == 0 {
            let problem = "the size of the transfer is 0, as in a log of averages; log each \
                           transfer: `write_lat_log` without `log_avg_msec`, or `write_iolog`";
            return Err(ImportError::at(index + 1, problem.to_owned()));
        }
        if let Some(time) = transfer.milliseconds {
            first = Some(first.map_or(time, |first: f64| first.min(time)));
            last = Some(last.map_or(time, |last: f64| last.max(time)));
        }
        let direction = usize::from(transfer.is_write);
        if transfer.bytes >= selection.large_block_bytes {
            large[direction] += 1;
            large_bytes = large_bytes.saturating_add(transfer.bytes);
        } else {
            let power = transfer.bytes.next_power_of_two().trailing_zeros() as usize;
            counts[direction][power.min(POWER_MAX - 1)] += 1;
        }
    }
    let seconds = first.zip(last).map(|(first, last)| (last - first) / 1000.0);
    let seconds = seconds.filter(|seconds| *seconds > 0.0);
    let rate = |count: u64| seconds.map(|seconds| count as f64 / seconds);
    let some = |count: u64| (count > 0).then(|| rate(count)).flatten();
    let [reads, writes] = &counts;
    let read_sizes = SizeHistogram::of_counts(reads);
    let large_count: u64 = large.iter().sum();
    let kbytes = large_block_kbytes(large_bytes as f64 / large_count.max(1) as f64);
    // Where only large blocks are written, they hold the records.
    let behind = || {
        let record_bytes = read_sizes.as_ref().map_or(1536.0, |sizes| sizes.mean_bytes(100));
        let blocks = some(large[1])?;
        Some(records_behind(blocks, kbytes.unwrap_or(128), record_bytes as u32))
    };
    Ok(Profile {
        reads: some(reads.iter().sum()),
        writes: some(writes.iter().sum()).or_else(behind),
        read_sizes: read_sizes.clone(),
        write_sizes: SizeHistogram::of_counts(writes),
        large_block_kbytes: kbytes,
        large_writes: some(large[1]),
        defrag_reads: some(large[0]),
        ..Profile::default()
    })
}

/// `12, 345, 0, 4096, 8192`: direction 0 reads, 1 writes. `Some(None)` trims, which moves no data.
fn of_latency_log(line: &str) -> Option<Option<Transfer>> {
    let mut words = line.split(',').map(str::trim);
    let milliseconds = words.next()?.parse().ok()?;
    words.next()?.parse::<f64>().ok()?;
    let is_write = match words.next()? {
        "0" => Some(false),
        "1" => Some(true),
        "2" => None,
        _ => return None,
    };
    let bytes = words.next()?.parse().ok()?;
    let transfer = |is_write| Transfer { milliseconds: Some(milliseconds), is_write, bytes };
    Some(is_write.map(transfer))
}

/// `/dev/sdb read 8192 4096`, in version 3 with the time in front. `Some(None)` moves no data.
fn of_io_log(line: &str, timed: bool) -> Option<Option<Transfer>> {
    let mut words = line.split_whitespace();
    let microseconds: Option<f64> = if timed { Some(words.next()?.parse().ok()?) } else { None };
    let milliseconds = microseconds.map(|time| time / 1000.0);
    words.next()?;
    let is_write = match words.next()? {
        "read" => false,
        "write" => true,
        _ => return Some(None),
    };
    words.next()?.parse::<u64>().ok()?;
    let bytes = words.next()?.parse().ok()?;
    Some(Some(Transfer { milliseconds, is_write, bytes }))
}
