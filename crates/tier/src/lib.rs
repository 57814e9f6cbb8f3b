//! tier
