//! Certification and search on simulated devices, in virtual time.

mod certifying;
mod reporting;
mod searching;
mod simulated;
