//! What pages of figures are made of, whoever shows them: the console of a server, that of volumes,
//! and reports.
//!
//! `words` writes numbers, `figures` shows those of an object of JSON, `chart` draws lines over
//! time, and `trends` makes charts of what `history` keeps. `store` has what every page says of a
//! store, `segments` the map of its device. `problems` says what is wrong. `sheet` is the page
//! around everything, [`STYLE`] its look, [`SCRIPT`] what makes its figures new.
//!
//! Nothing here knows a socket: whoever serves a page asks for its text. Nothing is fetched from
//! elsewhere, and no page has a script or a style within it.

mod chart;
mod figures;
mod history;
mod interval;
mod passed;
mod problems;
mod segments;
mod sheet;
pub mod store;
mod trends;
mod words;

pub use chart::{COLOURS, Chart, GRID, INK, decades};
pub use figures::{
    Answered, Figures, Row, bar, call_tiles, drawn, latency_tiles, mark, measured, percentiles,
    rows, tile,
};
pub use history::{History, Sampled, Span, StoreSampled, Totals};
pub use interval::{Interval, Kind};
pub use passed::{Calls, Passed, StoreCounts, StoreRates};
pub use problems::{CERTIFICATE_DAYS, Grade, Problem, ShownCertificate, state};
pub use segments::{CELLS, Cell, segments};
pub use sheet::{Sheet, addresses, sign_out, threshold};
pub use trends::{Charts, Line, Trend};
pub use words::{BLOCK_BYTES, Unit, amount, grouped, seconds, share, shown, text_of, typed};

/// The style of a console, which its pages ask for at `/console/style.css`.
pub const STYLE: &str = include_str!("style.css");
/// The script of a console, which its pages ask for at `/console/script.js`.
pub const SCRIPT: &str = include_str!("script.js");
