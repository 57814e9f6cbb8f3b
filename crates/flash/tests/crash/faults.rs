//! Device errors: the failed write or sync is never acknowledged, reads go on, reopening works.
