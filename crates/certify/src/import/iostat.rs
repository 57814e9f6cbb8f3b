//! Captures of `iostat -x`, old and new columns, KiB or MiB.

use super::profile::{large_block_kbytes, records_behind};
use super::{FirstTable, ImportError, Profile, Selection, short, the_only};
use crate::config::Storage;

/// What one device did, per second; the mean, where several are selected.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DeviceLoad {
    /// Reads.
    pub reads: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes written.
    pub written_bytes: f64,
}

/// Columns that are looked for.
struct Columns {
    count: usize,
    reads: usize,
    writes: usize,
    read_bytes: (usize, f64),
    written_bytes: (usize, f64),
}

/// Is `line` the header of a table of devices?
pub(super) fn is_header(line: &str) -> bool {
    line.starts_with("Device") && line.contains("r/s") && line.contains("w/s")
}

pub(super) fn device_load(text: &str, selection: &Selection) -> Result<DeviceLoad, ImportError> {
    let mut samples = samples(text)?;
    let tables = samples.iter().map(|(_, table, _)| *table).max().unwrap_or(0);
    let from = match selection.first_table {
        FirstTable::SinceStart if tables > 1 => 2,
        FirstTable::SinceStart | FirstTable::Interval => 1,
    };
    samples.retain(|(_, table, _)| *table >= from);
    let mut names: Vec<&str> = samples.iter().map(|(name, _, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let chosen: Vec<&str> = if selection.devices.is_empty() {
        let busy = |name: &&str| {
            let mut own = samples.iter().filter(|(one, _, _)| one == name);
            own.any(|(_, _, load)| load.reads + load.writes > 0.0)
        };
        let busy: Vec<&str> = names.iter().copied().filter(busy).collect();
        vec![the_only("busy device", None, &busy)?]
    } else {
        let wanted = selection.devices.iter().map(|device| short(device));
        wanted.map(|device| the_only("device", Some(device), &names)).collect::<Result<_, _>>()?
    };
    let mut sum = DeviceLoad::default();
    for (_, _, load) in samples.iter().filter(|(name, _, _)| chosen.contains(name)) {
        sum.reads += load.reads;
        sum.read_bytes += load.read_bytes;
        sum.writes += load.writes;
        sum.written_bytes += load.written_bytes;
    }
    let count = ((tables + 1 - from) * chosen.len()) as f64;
    Ok(DeviceLoad {
        reads: sum.reads / count,
        read_bytes: sum.read_bytes / count,
        writes: sum.writes / count,
        written_bytes: sum.written_bytes / count,
    })
}

/// Reads and writes of records behind what a device did, if all its writes are large blocks and
/// as many large blocks are read; none are where what is read has no room for them.
pub(super) fn import(text: &str, selection: &Selection) -> Result<Profile, ImportError> {
    let load = device_load(text, selection)?;
    let mean = if load.writes > 0.0 { load.written_bytes / load.writes } else { 0.0 };
    let large_block_kbytes = large_block_kbytes(mean);
    let large = large_block_kbytes.map_or(0.0, |_| load.writes);
    let block = f64::from(large_block_kbytes.unwrap_or(128)) * 1024.0;
    let defragmented =
        if load.reads >= large && load.read_bytes > large * block { large } else { 0.0 };
    let reads = load.reads - defragmented;
    let read_bytes = load.read_bytes - defragmented * block;
    let record_bytes =
        (reads > 0.0).then(|| ((read_bytes / reads).round() as u32).clamp(1, 8 << 20));
    let record = record_bytes.unwrap_or(Storage::default().record_bytes);
    let written = records_behind(large, large_block_kbytes.unwrap_or(128), record);
    Ok(Profile {
        reads: Some(reads),
        writes: Some(written),
        record_bytes,
        large_block_kbytes,
        device_load: Some(load),
        ..Profile::default()
    })
}

/// Name, number of the table from 1, and figures, for each line of a device.
fn samples(text: &str) -> Result<Vec<(&str, usize, DeviceLoad)>, ImportError> {
    let mut columns = None;
    let mut table = 0;
    let mut samples = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if is_header(line.trim()) {
            columns = Some(columns_of(&words, index + 1)?);
            table += 1;
        } else if words.is_empty() {
            columns = None;
        } else if let Some(columns) = &columns {
            let figure = |column: usize| {
                let word = words.get(column)?.replace(',', ".");
                word.parse::<f64>().ok().filter(|figure| figure.is_finite())
            };
            let load = || {
                // In a line that is cut short the last figure may be, too.
                (words.len() == columns.count).then_some(())?;
                Some(DeviceLoad {
                    reads: figure(columns.reads)?,
                    read_bytes: figure(columns.read_bytes.0)? * columns.read_bytes.1,
                    writes: figure(columns.writes)?,
                    written_bytes: figure(columns.written_bytes.0)? * columns.written_bytes.1,
                })
            };
            let problem = "this is no line of a device; expected its name and as many figures as \
                           the table has columns";
            let load = load().ok_or_else(|| ImportError::at(index + 1, problem.to_owned()))?;
            samples.push((words[0].trim_end_matches(':'), table, load));
        }
    }
    if samples.is_empty() {
        let problem = "the text shows no device; expected a capture of `iostat -x`".to_owned();
        return Err(ImportError::of_text(problem));
    }
    Ok(samples)
}

fn columns_of(words: &[&str], line: usize) -> Result<Columns, ImportError> {
    let find = |names: [&str; 2]| {
        let units = [1024.0, 1024.0 * 1024.0];
        let found = names.iter().zip(units).find_map(|(name, unit)| {
            words.iter().position(|word| word == name).map(|at| (at, unit))
        });
        let [kilo, _] = names;
        found.ok_or_else(|| {
            ImportError::at(line, format!("the table has no column `{kilo}`; run `iostat -x -k`"))
        })
    };
    Ok(Columns {
        count: words.len(),
        reads: find(["r/s", "r/s"])?.0,
        writes: find(["w/s", "w/s"])?.0,
        read_bytes: find(["rkB/s", "rMB/s"])?,
        written_bytes: find(["wkB/s", "wMB/s"])?,
    })
}
