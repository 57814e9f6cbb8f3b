//! The configuration and the derived rates as a log shows them.

use std::fmt::{self, Display, Write};

use crate::config::{Index, Storage};
use crate::derive::{IndexRates, StorageRates};

/// Both blocks, an empty line after each.
pub fn echo_storage(it: &Storage, rates: &StorageRates) -> String {
    let mut echo = Echo::new("ACT-STORAGE CONFIGURATION");
    echo.devices(&it.device_names, it.file_size_mbytes);
    echo.item("service-threads", it.service_threads);
    echo.item("test-duration-sec", it.test_duration_sec);
    echo.item("report-interval-sec", it.report_interval_sec);
    echo.flag("microsecond-histograms", YesNo(it.microsecond_histograms));
    echo.item("read-reqs-per-sec", it.read_reqs_per_sec);
    echo.item("write-reqs-per-sec", it.write_reqs_per_sec);
    echo.item("record-bytes", it.record_bytes);
    echo.item("record-bytes-range-max", it.record_bytes_range_max);
    // ACT keeps bytes, so that what wrapped around shows.
    echo.item("large-block-op-kbytes", it.large_block_bytes() / 1024);
    echo.item("replication-factor", it.replication_factor);
    echo.item("update-pct", it.update_pct);
    echo.item("defrag-lwm-pct", it.defrag_lwm_pct);
    echo.flag("no-defrag-reads", YesNo(it.no_defrag_reads));
    echo.item("compress-pct", it.compress_pct);
    echo.flag("disable-odsync", YesNo(it.disable_odsync));
    echo.flag("commit-to-device", YesNo(it.commit_to_device));
    echo.flag("tomb-raider", YesNo(it.tomb_raider));
    echo.item("tomb-raider-sleep-usec", it.tomb_raider_sleep_usec);
    echo.item("max-lag-sec", it.max_lag_sec);
    echo.line("\nDERIVED CONFIGURATION");
    echo.item(
        "record-stored-bytes",
        format_args!("{} ... {}", rates.stored_bytes_min, rates.stored_bytes_max),
    );
    echo.item("internal-read-reqs-per-sec", rates.internal_reads);
    echo.item("internal-write-reqs-per-sec", rates.internal_writes);
    echo.item("large-block-reads-per-sec", Rate(rates.large_reads));
    echo.item("large-block-writes-per-sec", Rate(rates.large_writes));
    echo.line("");
    echo.text
}

/// Both blocks, an empty line after each.
pub fn echo_index(it: &Index, rates: &IndexRates) -> String {
    let mut echo = Echo::new("ACT-INDEX CONFIGURATION");
    echo.devices(&it.device_names, it.file_size_mbytes);
    echo.item("service-threads", it.service_threads);
    echo.item("cache-threads", it.cache_threads);
    echo.item("test-duration-sec", it.test_duration_sec);
    echo.item("report-interval-sec", it.report_interval_sec);
    echo.flag("microsecond-histograms", YesNo(it.microsecond_histograms));
    echo.item("read-reqs-per-sec", it.read_reqs_per_sec);
    echo.item("write-reqs-per-sec", it.write_reqs_per_sec);
    echo.item("replication-factor", it.replication_factor);
    echo.item("defrag-lwm-pct", it.defrag_lwm_pct);
    echo.flag("disable-odsync", YesNo(it.disable_odsync));
    echo.item("max-lag-sec", it.max_lag_sec);
    echo.line("\nDERIVED CONFIGURATION");
    echo.item("service-thread-reads-per-sec", rates.service_reads);
    echo.item("cache-thread-reads-and-writes-per-sec", rates.cache_reads_and_writes);
    echo.line("");
    echo.text
}

struct Echo {
    text: String,
}

impl Echo {
    fn new(title: &str) -> Echo {
        Echo { text: format!("{title}\n") }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn item(&mut self, name: &str, value: impl Display) {
        writeln!(self.text, "{name}: {value}").expect("writing to a string cannot fail");
    }

    fn flag(&mut self, name: &str, value: YesNo) {
        self.item(name, value);
    }

    fn devices(&mut self, names: &[String], file_size_mbytes: u32) {
        self.text.push_str("device-names:");
        for name in names {
            self.text.push(' ');
            self.text.push_str(name);
        }
        self.text.push('\n');
        self.item("num-devices", names.len());
        if file_size_mbytes != 0 {
            self.item("file-size-mbytes", file_size_mbytes);
        }
    }
}

struct YesNo(bool);

impl Display for YesNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "yes" } else { "no" })
    }
}

/// A rate as C's printf writes it: what is not a number comes out of 0 / 0, whose sign is set on
/// the processors that ACT runs on.
struct Rate(f64);

impl Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() { f.write_str("-nan") } else { write!(f, "{:.2}", self.0) }
    }
}
