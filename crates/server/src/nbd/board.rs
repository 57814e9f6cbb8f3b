//! Figures where the HTTP interface finds them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::figures;
use crate::admin::{Answer, Site};

/// Figures for the HTTP interface, whose thread cannot ask the volumes.
#[derive(Debug, Default)]
pub(super) struct Board {
    text: Mutex<String>,
    stopping: AtomicBool,
}

impl Board {
    /// Shows `report`, JSON text, from now on.
    pub(super) fn show(&self, report: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    /// The server stops.
    pub(super) fn close(&self) {
        self.stopping.store(true, Ordering::Release);
    }
}

impl Site for Board {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn page(&self, path: &str) -> Option<Answer> {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match path {
            "/health" => Some(Answer::json("200 OK", "{\"status\":\"ok\"}\n".to_owned())),
            "/stats" => Some(Answer::json("200 OK", text + "\n")),
            "/metrics" => {
                let value = serde_json::from_str(&text).unwrap_or_default();
                Some(Answer::metrics(figures::metrics(&value)))
            }
            _ => None,
        }
    }
}
