//! What is wrong, and what to do about it.

use maud::{Markup, html};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// It goes on, but somebody should look.
    Warning,
    /// Something is refused, or waits.
    Failure,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub grade: Grade,
    /// What it is.
    pub what: String,
    /// What to do.
    pub next: String,
}

/// The state in a word, and what is wrong, the worst first; `well` is said where nothing is.
pub fn state(problems: &[Problem], well: &str) -> Markup {
    let (class, word) = match problems.first().map(|problem| problem.grade) {
        None => ("good", "Healthy"),
        Some(Grade::Warning) => ("warning", "Look at this"),
        Some(Grade::Failure) => ("failure", "Failing"),
    };
    html! {
        section class={ "state " (class) } role="status" {
            strong { (word) }
            @if problems.is_empty() { p { (well) } } @else {
                ul { @for problem in problems {
                    li { (problem.what) " " span.next { "Next: " (problem.next) "." } }
                } }
            }
        }
    }
}
