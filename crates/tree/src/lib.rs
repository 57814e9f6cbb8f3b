//! Ordered tables: B-link trees whose pages are records of the flash engine.
//!
//! A change goes to the log and to memory first. Maintenance merges it into a page later, together
//! with the other changes of that page. This crate has the parts that need no device: the formats
//! of pages and of log records, the changes that wait in memory, and the merge of both.
//!
//! The crate starts no thread and reads no clock.
