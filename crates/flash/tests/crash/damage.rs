//! Silent damage: found, and confined to what it hit.
