//! What is wrong, and what to do about it.

use maud::{Markup, html};

use crate::figures::Figures;
use crate::words::seconds;

/// From so many days before its end on, people are told that a certificate ends.
pub const CERTIFICATE_DAYS: u64 = 30;

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

/// A certificate that a server shows.
#[derive(Debug, Clone, Copy)]
pub struct ShownCertificate {
    /// Who shows it, or is shown it, as the end of a sentence.
    pub which: &'static str,
    /// Where the figure is that says when it ends, in seconds since 1970.
    pub end: &'static str,
    /// The options that name its files.
    pub files: &'static str,
}

impl ShownCertificate {
    /// What is wrong with it at `now_seconds`: that it ends soon, or has ended.
    pub fn problem(&self, figures: Figures<'_>, now_seconds: u64) -> Option<Problem> {
        let end = figures.0.pointer(self.end)?.as_u64()?;
        let left = end.saturating_sub(now_seconds);
        let which = self.which;
        let (grade, what) = match left {
            0 => {
                let ago = seconds(now_seconds - end);
                let what = format!("The certificate that {which} ended {ago} ago: it is refused.");
                (Grade::Failure, what)
            }
            left if left < CERTIFICATE_DAYS * 86_400 => {
                let what = format!("The certificate that {which} ends in {}.", seconds(left));
                (Grade::Warning, what)
            }
            _ => return None,
        };
        let next = format!("put a new one in the place of {}, and send SIGHUP", self.files);
        Some(Problem { grade, what, next })
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_certificate_is_told_of_from_a_month_before_its_end_on() {
        let shown = ShownCertificate { which: "clients are shown", end: "/end", files: "`cert`" };
        let now = 2_000_000_000;
        let at = |end: serde_json::Value| shown.problem(Figures(&json!({"end": end})), now);
        assert_eq!(at(json!(null)), None, "none is shown");
        assert_eq!(at(json!(now + 30 * 86_400)), None);
        let soon = at(json!(now + 30 * 86_400 - 3600)).unwrap();
        assert_eq!(soon.what, "The certificate that clients are shown ends in 29 d 23 h.");
        assert_eq!(soon.grade, Grade::Warning);
        assert!(soon.next.contains("`cert`"), "{}", soon.next);
        let ended = at(json!(now - 61)).unwrap();
        assert!(ended.what.contains("ended 1 min 1 s ago"), "{}", ended.what);
        assert_eq!(ended.grade, Grade::Failure);
    }
}
