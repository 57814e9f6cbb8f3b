//! Tests of the devices from outside, one module a subject.

mod conformance;
mod place;
