//! entresol
fn main() {}
