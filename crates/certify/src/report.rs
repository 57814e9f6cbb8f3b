//! The results of a certification or a search, for programs and for people.
//!
//! Reports are JSON with stable names ([`certificate_json`], [`search_json`]), and one
//! self-contained HTML file with charts ([`certificate_page`], [`search_page`]). Reports of other
//! loads use the parts of the page, too ([`sheet`], [`card`]).

mod certificate;
mod charts;
mod frame;
mod json;
mod parts;
mod searched;
pub mod words;

use crate::derive::Step;
use crate::machine::Machine;

pub use certificate::certificate_page;
pub use charts::{Axis, Chart, Line, Scale, Style, TimeUnit};
pub use frame::{machine_section, sheet, tile};
pub use json::{certificate_json, search_json};
pub use parts::card;
pub use searched::search_page;
pub use words::{certificate_line, search_line};

/// What was tested, where and when.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// Name of the configuration.
    pub name: String,
    /// When the test began, seconds since 1970.
    pub started_unix: u64,
    /// Version of the program.
    pub version: String,
    /// What it ran on.
    pub machine: Machine,
    /// The items of the configuration with their values.
    pub configuration: Vec<(String, String)>,
    /// How the rates come about.
    pub derived: Vec<Step>,
    /// What went wrong, as the system said it; the first ones.
    pub errors: Vec<String>,
}

impl Subject {
    /// Reads items and values from a configuration as it is echoed: `name: value` lines.
    pub fn items_of(echo: &str) -> Vec<(String, String)> {
        let block = echo.lines().take_while(|line| !line.starts_with("DERIVED"));
        let pairs = block.filter_map(|line| line.split_once(':'));
        pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
    }
}
