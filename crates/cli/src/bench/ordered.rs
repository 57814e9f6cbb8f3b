//! `ordered-get`, `ordered-scan`, `ordered-put`, `ordered-overwrite`, `ordered-load` and
//! `ordered-recovery`: what an ordered table costs, with the device's own limit beside.
//!
//! The rows' keys are hashes, so that neighbours have nothing to do with each other, unless a part
//! of a report says that they came in order. The data are ten times what the memory cap has for
//! rows; 5 % of them may wait for a merge.

mod counted;
mod reads;
mod recovery;
mod session;
mod store;
mod writes;

use serde_json::{Map, Value, json};

pub(crate) use reads::{get, scan};
pub(crate) use recovery::{fill, recovery};
pub(crate) use writes::{load, overwrite, put};

use super::rounds::head;
use super::setup::Setup;
use crate::meter::resident_bytes;
use crate::report::{Report, rounded};
use store::{OrderedStore, Sizing};

/// Figures of one part of a bench, by name.
type Figures = Map<String, Value>;

/// The top of a report.
fn begin(bench: &str, setup: &Setup) -> Report {
    let mut report = head(bench, setup);
    let sizing = Sizing::of(setup);
    report.set("rows", setup.keys);
    report.set("data_bytes", sizing.data);
    report.set("memory_cap_bytes", sizing.memory);
    report.set("waiting_bytes_max", sizing.waiting);
    report.set("filter_bits", setup.absent_filter_bits);
    report
}

/// Sets a figure of a part, rounded to what a reader can use.
fn figure(figures: &mut Figures, name: &str, value: f64) {
    figures.insert(name.to_owned(), json!(rounded(value)));
}

/// Makes the figures of a part those of the whole bench.
fn lift(report: &mut Report, figures: Figures) {
    figures.into_iter().for_each(|(name, value)| report.set(&name, value));
}

/// Private memory of the process before there was a store.
#[derive(Debug, Clone, Copy)]
struct Baseline(u64);

impl Baseline {
    fn take() -> Baseline {
        Baseline(resident_bytes("self").1)
    }

    /// Writes what a row takes in memory and how full the flash is into `report`.
    fn describe(self, report: &mut Report, store: &OrderedStore, setup: &Setup) {
        let (tree, flash) = (store.tree_statistics(), store.statistics());
        let per_row = |bytes: u64| bytes as f64 / setup.keys as f64;
        report.figure("ram_bytes_per_row", per_row(tree.directory_bytes + flash.index_bytes));
        report.figure("inner_node_bytes_per_row", per_row(tree.directory_bytes));
        report.figure("index_bytes_per_row", per_row(flash.index_bytes));
        report.set("waiting_bytes", tree.waiting_bytes);
        let resident = resident_bytes("self").1.saturating_sub(self.0);
        let engine = flash.index_bytes + flash.buffer_bytes + flash.cache_bytes + flash.other_bytes;
        let accounted = engine + tree.directory_bytes + tree.arena_bytes + tree.recovered_bytes;
        report.set("resident_bytes", resident);
        report.set("accounted_bytes", accounted);
        super::rounds::describe_store(report, &flash);
    }
}
