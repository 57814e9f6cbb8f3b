//! Collections against models, under transactions that commit, abort and roll back.
//! `ENTRESOL_SEED` replaces the seeds.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod append_log;
mod array;
mod bed;
mod beside;
mod damage;
mod deque;
mod full;
mod hash_map;
mod linked_list;
mod radix_map;
mod radix_tree;
