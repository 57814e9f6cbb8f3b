//! The histograms of a log, in its order.

use crate::config::{Index, Storage};
use crate::derive::{IndexRates, StorageRates};
use crate::load::{Kind, Series};

/// Series of a storage test: one for each kind of transfer that is issued.
pub fn storage_series(it: &Storage, rates: &StorageRates) -> Vec<Series> {
    let mut series = Vec::new();
    if rates.internal_reads != 0 {
        small(&mut series, "reads", Kind::Read, &it.device_names);
    }
    if rates.large_reads > 0.0 {
        series.push(all("large-block-reads", Kind::LargeRead));
    }
    if rates.large_writes > 0.0 {
        series.push(all("large-block-writes", Kind::LargeWrite));
    }
    if rates.internal_writes != 0 {
        small(&mut series, "writes", Kind::Write, &it.device_names);
    }
    if it.tomb_raider {
        series.push(all("tomb-raider-reads", Kind::Raid));
    }
    series
}

/// Series that ACT lists. It decides by the requests configured, not by what is issued: it hides
/// the reads of updates where no reads are asked for, and lists large reads that never happen.
pub fn storage_series_compat(it: &Storage) -> Vec<Series> {
    let mut series = Vec::new();
    if it.read_reqs_per_sec != 0 {
        small(&mut series, "reads", Kind::Read, &it.device_names);
    }
    if it.write_reqs_per_sec != 0 {
        series.push(all("large-block-reads", Kind::LargeRead));
        series.push(all("large-block-writes", Kind::LargeWrite));
        if it.commit_to_device {
            small(&mut series, "writes", Kind::Write, &it.device_names);
        }
    }
    series
}

/// Series of an index test.
pub fn index_series(it: &Index, rates: &IndexRates) -> Vec<Series> {
    let mut series = Vec::new();
    small(&mut series, "reads", Kind::Read, &it.device_names);
    if rates.cache_reads_and_writes != 0 {
        small(&mut series, "writes", Kind::Write, &it.device_names);
    }
    series
}

/// The block of names, an empty line after it.
pub fn histogram_names(series: &[Series]) -> String {
    let mut text = "HISTOGRAM NAMES\n".to_owned();
    for one in series {
        text.push_str(&one.name);
        text.push('\n');
    }
    text.push('\n');
    text
}

fn all(name: &str, kind: Kind) -> Series {
    Series { name: name.to_owned(), kind, device: None }
}

fn small(series: &mut Vec<Series>, name: &str, kind: Kind, devices: &[String]) {
    series.push(all(name, kind));
    let each = devices.iter().enumerate();
    series.extend(each.map(|(device, path)| Series {
        name: format!("{path}-{name}"),
        kind,
        device: Some(device),
    }));
}
