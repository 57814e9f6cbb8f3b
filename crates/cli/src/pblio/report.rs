//! The output and the file of a run, letter by letter as in the original.

use std::io::Write;

use entresol_workload::oltp::{
    Asu, AsuTally, BLOCK_BYTES, CacheCounters, Configuration, Count, LogCounters, Period, Tally,
};
use entresol_workload::{Recorder, Summary};
use serde_json::{Map, Value, json};

use super::course::Course;
use super::ledger::Findings;
use super::options::PblioArgs;
use super::page::{Run, run_page};
use crate::failure::{Failure, Outcome};
use crate::report::latency_us;

/// Blanks that overwrite what a longer line left on a terminal.
const AFTER_PERIOD: usize = 35;
const AFTER_AVERAGE: usize = 24;

/// Prints the run's progress, or nothing if one JSON object is to be printed at its end.
#[derive(Debug)]
pub(super) struct Printer {
    is_json: bool,
    data: Option<std::fs::File>,
    data_path: String,
    course: Course,
    /// The counts when the last period ended.
    before: Count,
}

/// The cache as the report names it.
#[derive(Debug, Clone)]
pub(super) struct CacheName {
    pub(super) name: String,
    pub(super) capacity_bytes: u64,
    /// Whether it held blocks of these units when the run began.
    pub(super) is_loaded: bool,
}

/// What a run ended with.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) period: Period,
    pub(super) seconds: f64,
    /// Latencies from enqueueing and from the intended start, ns; none in a simulation.
    pub(super) latencies: Option<Latencies>,
    /// What reads found, if that was checked.
    pub(super) findings: Option<Findings>,
}

/// Latencies of a run, ns.
#[derive(Debug, Clone, Default)]
pub(super) struct Latencies {
    pub(super) from_enqueue: Recorder,
    pub(super) from_intended_start: Recorder,
}

impl Printer {
    /// Begins the report. The statistics file is made now, so that a bad path is found early.
    pub(super) fn new(args: &PblioArgs) -> Outcome<Printer> {
        let default = (!args.simulate).then(|| "pblio.data".to_owned());
        let path = args.data.clone().or(default);
        let data = path.as_ref().map(std::fs::File::create).transpose();
        let data_path = path.unwrap_or_default();
        let data =
            data.map_err(|e| Failure::doing(format!("cannot make --data {data_path}"), e))?;
        let course = Course::new(args.runlen);
        Ok(Printer { is_json: args.json, data, data_path, course, before: Count::default() })
    }

    /// Prints the banner.
    pub(super) fn begin(
        &self,
        configuration: &Configuration,
        cache: Option<&CacheName>,
        runlen: u64,
    ) {
        if self.is_json {
            return;
        }
        let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
        print!("pblio (dev)\n-----\npblio\n-----\n");
        match cache {
            None => println!("Cache   : None"),
            Some(cache) => {
                let state = if cache.is_loaded { "Loaded" } else { "New" };
                println!("Cache   : {} ({state})", cache.name);
                println!("C Size  : {:.2} GB", gib(cache.capacity_bytes));
            }
        }
        for asu in Asu::ALL {
            let bytes = configuration.layout.blocks(asu) * BLOCK_BYTES;
            println!("ASU{}    : {:.2} GB", asu.number(), gib(bytes));
        }
        println!("BSUs    : {}", configuration.bsus);
        println!("Contexts: {}", configuration.contexts);
        println!("Run time: {runlen} s\n-----");
        self.flush();
    }

    /// Ends a period of `seconds` with the counts so far; `time` is written down with them.
    pub(super) fn period(&mut self, period: &Period, seconds: f64, time: u64) -> Outcome<()> {
        let total = period.tally.total();
        let now = total.since(self.before);
        self.before = total;
        if !self.is_json {
            let rate = now.requests as f64 / seconds;
            let latency = now.mean_latency_ms();
            let blanks = " ".repeat(AFTER_PERIOD);
            print!("ios:{} IOPS:{rate:.2} Latency:{latency:.4} ms{blanks}\r", now.requests);
            self.flush();
        }
        let Some(data) = &mut self.data else { return Ok(()) };
        let written = writeln!(data, "{}", statistics(period, time));
        written.map_err(|e| Failure::doing(format!("cannot write --data {}", self.data_path), e))
    }

    /// The counts so far over the run's course, for the page's charts.
    pub(super) fn course(&mut self) -> &mut Course {
        &mut self.course
    }

    /// Prints the end of the run, and writes its page if one was asked for.
    pub(super) fn end(
        &mut self,
        args: &PblioArgs,
        configuration: &Configuration,
        cache: Option<&CacheName>,
        ended: &Ended,
    ) -> Outcome<()> {
        self.course.end(ended.seconds, &ended.period);
        if let Some(path) = &args.html {
            let course = &self.course;
            write_page(path, &run_page(&Run { args, configuration, cache, ended, course }))?;
        }
        if self.is_json {
            println!("{}", summary(args, configuration, ended));
            return Ok(());
        }
        let total = ended.period.tally.total();
        let rate = total.requests as f64 / ended.seconds.max(f64::MIN_POSITIVE);
        let latency = total.mean_latency_ms();
        let blanks = " ".repeat(AFTER_AVERAGE);
        println!("Avg IOPS:{rate:.2}  Avg Latency:{latency:.4} ms{blanks}\n");
        if let Some((cache, log)) = &ended.period.cache {
            print!("{}", cache_text(cache, log));
        }
        if let Some(latencies) = ended.latencies.as_ref().filter(|_| args.percentiles) {
            print!("{}", percentile_text(latencies));
        }
        self.flush();
        Ok(())
    }

    fn flush(&self) {
        // A closed pipe is found by the next print.
        drop(std::io::stdout().flush());
    }
}

/// Writes `page` to the file `path` of `--html`.
pub(super) fn write_page(path: &str, page: &str) -> Outcome<()> {
    std::fs::write(path, page).map_err(|e| Failure::doing(format!("cannot write --html {path}"), e))
}

fn cache_text(cache: &CacheCounters, log: &LogCounters) -> String {
    let hits = log.memory_hits + log.device_hits;
    let memory_rate = if hits == 0 { 0.0 } else { log.memory_hits as f64 / hits as f64 };
    let lines = [
        format!("Read Hit Rate: {:.4}", cache.read_hit_rate()),
        format!("Invalidate Hit Rate: {:.4}", cache.invalidate_hit_rate()),
        format!("Read hits: {}", cache.read_hits),
        format!("Invalidate hits: {}", cache.invalidate_hits),
        format!("Reads: {}", cache.reads),
        format!("Insertions: {}", cache.insertions),
        format!("Evictions: {}", cache.evictions),
        format!("Invalidations: {}", cache.invalidations),
        "== Log Information ==".to_owned(),
        format!("Ram Hit Rate: {memory_rate:.4}"),
        format!("Ram Hits: {}", log.memory_hits),
        "Buffer Hit Rate: 0.0000".to_owned(),
        "Buffer Hits: 0".to_owned(),
        format!("Storage Hits: {}", log.device_hits),
        format!("Wraps: {}", log.wraps),
        format!("Segments Skipped: {}", log.segments_skipped),
        "Mean Read Latency: 0.00 usec".to_owned(),
        "Mean Segment Read Latency: 0.00 usec".to_owned(),
        "Mean Write Latency: 0.00 usec".to_owned(),
    ];
    lines.map(|line| line + "\n").concat()
}

fn percentile_text(latencies: &Latencies) -> String {
    let line = |name: &str, summary: Summary| {
        let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
        format!(
            "{name}: mean {:.3} ms, p50 {}, p90 {}, p99 {}, p99.9 {}, p99.99 {}, max {}\n",
            summary.mean / 1e6,
            ms(summary.p50),
            ms(summary.p90),
            ms(summary.p99),
            ms(summary.p999),
            ms(summary.p9999),
            ms(summary.max)
        )
    };
    let enqueue = line("Latency from enqueueing", latencies.from_enqueue.summary());
    let intended = line("Latency from intended start", latencies.from_intended_start.summary());
    format!("== Percentiles ==\n{enqueue}{intended}")
}

/// One line of the statistics file.
fn statistics(period: &Period, time: u64) -> Value {
    let mut line = Map::new();
    line.insert("time".to_owned(), json!(time));
    line.insert("spc".to_owned(), tally_json(&period.tally));
    if let Some((cache, log)) = &period.cache {
        line.insert("cache".to_owned(), cache_json(cache));
        line.insert("log".to_owned(), log_json(log));
    }
    Value::Object(line)
}

/// The whole run as one object.
fn summary(args: &PblioArgs, configuration: &Configuration, ended: &Ended) -> Value {
    let name = |value: &str| value.to_lowercase();
    let total = ended.period.tally.total();
    let mut object = json!({
        "workload": "SPC-1-like OLTP",
        "clock": if args.simulate { "virtual" } else { "real" },
        "style": name(&format!("{:?}", args.style)),
        "mix": name(&format!("{:?}", args.mix)),
        "seed": args.seed,
        "bsu": configuration.bsus,
        "contexts": configuration.contexts,
        "runlen": args.runlen,
        "ramp": args.ramp,
        "asu_blocks": Asu::ALL.map(|asu| configuration.layout.blocks(asu)),
        "seconds": ended.seconds,
        "ios": total.requests,
        "iops": total.requests as f64 / ended.seconds.max(f64::MIN_POSITIVE),
        "latency_ms": total.mean_latency_ms(),
        "spc": tally_json(&ended.period.tally),
    });
    let Value::Object(fields) = &mut object else { return object };
    if let Some((cache, log)) = &ended.period.cache {
        let mut counters = cache_json(cache);
        counters["readhitrate"] = json!(cache.read_hit_rate());
        counters["invalidatehitrate"] = json!(cache.invalidate_hit_rate());
        fields.insert("cache".to_owned(), counters);
        fields.insert("log".to_owned(), log_json(log));
    }
    if let Some(latencies) = &ended.latencies {
        let from_enqueue = latency_us(&latencies.from_enqueue.summary());
        let from_start = latency_us(&latencies.from_intended_start.summary());
        fields.insert("latency_from_enqueue_us".to_owned(), from_enqueue);
        fields.insert("latency_from_intended_start_us".to_owned(), from_start);
    }
    if let Some(findings) = &ended.findings {
        let Findings { sound, unknown, unjudged, wrong, .. } = findings;
        let verified = json!({
            "sound": sound, "wrong": wrong, "never_written": unknown, "written_meanwhile": unjudged,
        });
        fields.insert("verified_blocks".to_owned(), verified);
    }
    object
}

fn tally_json(tally: &Tally) -> Value {
    let asu = |tally: &AsuTally| {
        json!({
            "total": count_json(tally.total()),
            "read": count_json(tally.read),
            "write": count_json(tally.write),
        })
    };
    json!({
        "total": count_json(tally.total()),
        "read": count_json(tally.reads()),
        "write": count_json(tally.writes()),
        "asu": Asu::ALL.map(|unit| asu(tally.asu(unit))),
    })
}

fn count_json(count: Count) -> Value {
    json!({
        "latency": {"duration": count.latency_ns, "count": count.requests},
        "ios": count.requests,
        "blocks": count.blocks,
    })
}

fn cache_json(cache: &CacheCounters) -> Value {
    json!({
        "readhits": cache.read_hits,
        "invalidatehits": cache.invalidate_hits,
        "reads": cache.reads,
        "evictions": cache.evictions,
        "invalidations": cache.invalidations,
        "insertions": cache.insertions,
    })
}

fn log_json(log: &LogCounters) -> Value {
    let times = |count: u64| json!({"duration": 0, "count": count});
    json!({
        "ramhits": log.memory_hits,
        "storagehits": log.device_hits,
        "wraps": log.wraps,
        "segments_skipped": log.segments_skipped,
        "buffercachehits": 0,
        "totalhits": log.memory_hits + log.device_hits,
        "mean_read_usecs": times(log.device_hits),
        "mean_segmentread_usecs": times(log.segment_reads),
        "mean_segmentwrite_usecs": times(log.segment_writes),
    })
}
