//! Tests of the devices from outside, one module a subject.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod conformance;
mod foreign;
mod opening;
mod place;
mod refusal;
mod stripe;
