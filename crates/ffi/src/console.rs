//! The console of stores: a page of what the stores of one process do, for a program in another
//! language that serves it. Whoever has the stores gives their figures once a second, and says what
//! else the page is made of when somebody looks; `include/entresol.h` lists both.
//!
//! It knows no store and no socket. It keeps samples of a limited number of stores for its charts.
//! All names and sentences are text, whatever they hold.

mod history;
mod look;
mod nodes;
mod problems;
mod samples;
mod sheet;
mod stores;
mod trends;

use std::time::Duration;

use entresol_page::{SCRIPT, STYLE};
use serde_json::Value;

use crate::text;
use crate::text::Failure;
use samples::Samples;
use sheet::{Now, Part};

/// What is shown of a console by its number.
const PAGE: i64 = 1;
const NOW: i64 = 2;
const STYLE_SHEET: i64 = 3;
const SCRIPT_TEXT: i64 = 4;

/// What is kept between two looks.
#[derive(Debug)]
struct Console {
    title: String,
    samples: Samples,
}

export! {
    /// A console of that title; its address.
    entresol_console_open, Java_io_entresol_heap_engine_Jni_consoleOpen(title, length) {
        // SAFETY: the caller's promise.
        let title = String::from_utf8_lossy(unsafe { text::bytes(title, length) }).into_owned();
        let console = Console { title, samples: Samples::default() };
        Ok(Box::into_raw(Box::new(console)) as i64)
    }
}

export! {
    /// Takes the figures of stores at `now`, milliseconds since any moment that stays the same.
    entresol_console_take,
    Java_io_entresol_heap_engine_Jni_consoleTake(console, figures, length, now) {
        // SAFETY: the caller's promise.
        let (console, figures) = unsafe { (console_at(console), text::bytes(figures, length)) };
        console.samples.take(&parsed(figures)?, since_start(now));
        Ok(0)
    }
}

export! {
    /// Text: what the console shows at `now`, made of `look`: 1 the page, 2 what becomes new of it,
    /// 3 its style, 4 its script.
    entresol_console_show,
    Java_io_entresol_heap_engine_Jni_consoleShow(console, part, look, length, now) {
        // SAFETY: the caller's promise.
        let (console, look) = unsafe { (console_at(console), text::bytes(look, length)) };
        let part = match part {
            PAGE => Part::Page,
            NOW => Part::Now,
            STYLE_SHEET => return Ok(text::leak(0, STYLE)),
            SCRIPT_TEXT => return Ok(text::leak(0, SCRIPT)),
            other => {
                let sentence = format!("a console has no part {other}; expected 1 to 4");
                return Err(Failure { kind: 2, sentence });
            }
        };
        let now = Now { look: parsed(look)?, at: since_start(now), samples: &console.samples };
        Ok(text::leak(0, &now.shown(&console.title, part)))
    }
}

export! {
    /// Releases the address of a console.
    entresol_console_release, Java_io_entresol_heap_engine_Jni_consoleRelease(console) {
        // SAFETY: given out by `entresol_console_open`, and used for the last time.
        drop(unsafe { Box::from_raw(console as *mut Console) });
        Ok(0)
    }
}

fn parsed(json: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(json).map_err(|error| {
        let sentence = format!("a console takes figures as a JSON object: {error}");
        Failure { kind: 2, sentence }
    })
}

fn since_start(milliseconds: i64) -> Duration {
    Duration::from_millis(milliseconds.max(0) as u64)
}

/// # Safety
/// `address` is that of a console that was not released.
unsafe fn console_at<'a>(address: i64) -> &'a Console {
    // SAFETY: the caller's promise.
    unsafe { &*(address as *const Console) }
}
