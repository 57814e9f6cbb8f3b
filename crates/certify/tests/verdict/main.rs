//! Certification and search on simulated devices, in virtual time.

mod certifying;
mod searching;
mod simulated;
