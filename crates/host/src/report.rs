//! What a server says to the people who run it.

/// Says something to the people who run the server.
pub fn report(text: &str) {
    use std::io::Write;
    // There is nobody left to tell if the standard error stream is gone.
    let _ = writeln!(std::io::stderr(), "entresol: {text}");
}
