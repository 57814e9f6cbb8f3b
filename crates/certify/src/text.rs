//! The text of a log: banner, configuration, derived rates, histogram names and reports, byte for
//! byte as ACT 6 writes them, so that its tools read ours.

mod banner;
mod echo;
mod report;
mod series;

pub use banner::{Tester, banner};
pub use echo::{echo_index, echo_storage};
pub use report::ReportText;
pub use series::{histogram_names, index_series, storage_series, storage_series_compat};
