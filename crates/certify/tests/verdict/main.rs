//! Certification and search on simulated devices, in virtual time.

mod certifying;
mod real;
mod reporting;
mod searching;
mod simulated;
