//! The verdict on the intervals of a load: pass or fail, with reasons.
//!
//! A [`Tally`] folds intervals into a [`Run`] of slices; [`judge`] compares a run with [`Rules`].
//! Everything here is a pure function of its arguments.

mod judge;
mod rules;
mod run;
mod steady;
mod tally;
mod trend;

pub(crate) use judge::judge_stress;
pub use judge::{Judgement, Reason, Verdict, judge};
pub use rules::{Bound, Rules, RulesError, Slicing};
pub use run::{Figures, Latency, Run, Span};
pub use steady::{Round, Steadiness, SteadyRule};
pub(crate) use tally::AfterFailure;
pub use tally::{Plan, Tally};
pub use trend::Trend;
