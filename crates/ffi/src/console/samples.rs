//! The samples of all stores, by the names of these.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use entresol_page::Span;
use parking_lot::Mutex;
use serde_json::Value;

use super::history::{History, Sample, Totals, took};
use super::look::stores;

/// Stores that samples are kept of: some 200 KiB each.
const STORES_MAX: usize = 64;

/// The samples. Thread-safe; its lock is a leaf.
#[derive(Debug, Default)]
pub(super) struct Samples(Mutex<BTreeMap<String, Arc<History>>>);

impl Samples {
    /// Adds those of `figures`; those of stores that are not named any more go.
    pub(super) fn take(&self, figures: &Value, at: Duration) {
        let stores = stores(figures);
        let mut looks = Vec::new();
        let mut histories = self.0.lock();
        histories.retain(|name, _| stores.iter().any(|store| store["name"] == name.as_str()));
        for store in stores.iter().filter(|store| store["store"].is_object()) {
            let name = store["name"].as_str().unwrap_or_default();
            let totals = Totals::of(at, store);
            if let Some(history) = histories.get(name) {
                looks.push((Arc::clone(history), totals, store));
            } else if histories.len() < STORES_MAX {
                histories.insert(name.to_owned(), Arc::new(History::since(totals)));
            }
        }
        drop(histories);
        looks.into_iter().for_each(|(history, totals, store)| history.look(totals, &took(store)));
    }

    /// The latest second of a store.
    pub(super) fn latest(&self, store: &Value) -> Sample {
        self.of(store).map(|history| history.latest()).unwrap_or_default()
    }

    /// The samples of a store, the oldest first.
    pub(super) fn samples(&self, store: &Value, span: Span) -> Vec<Sample> {
        self.of(store).map(|history| history.samples(span)).unwrap_or_default()
    }

    fn of(&self, store: &Value) -> Option<Arc<History>> {
        self.0.lock().get(store["name"].as_str().unwrap_or_default()).cloned()
    }
}
