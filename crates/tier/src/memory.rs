//! The cache of entries in memory.
