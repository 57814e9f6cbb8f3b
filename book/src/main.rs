//! Renders the book in the directory that is named: the library of mdBook, and nothing else.
//!
//! It is a workspace of its own, since the checks of the product need none of what it is built
//! from.

use std::process::ExitCode;

use mdbook_driver::MDBook;

fn main() -> ExitCode {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("name the directory of a book: the one with book.toml");
        return ExitCode::from(2);
    };
    match MDBook::load(&directory).and_then(|book| book.build()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{directory}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
