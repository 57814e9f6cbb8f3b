//! Progress on work that may take longer than two seconds: a bar where standard error is a
//! terminal, nothing where it is not.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar towards `total` of `unit`.
pub(crate) fn bar(title: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), target());
    bar.set_style(
        ProgressStyle::with_template(
            "{msg} {wide_bar} {human_pos} of {human_len}, {per_sec}, {eta} to go",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.set_message(title.to_owned());
    bar
}

/// A bar towards `total` bytes.
pub(crate) fn bytes_bar(title: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), target());
    bar.set_style(
        ProgressStyle::with_template(
            "{msg} {wide_bar} {decimal_bytes} of {decimal_total_bytes}, \
             {decimal_bytes_per_sec}, {eta} to go",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.set_message(title.to_owned());
    bar
}

/// A bar over so many seconds, moved by whoever knows how many are over.
pub(crate) fn seconds(title: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), target());
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len} s, {eta} to go");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(title.to_owned());
    bar
}

/// A sign of life for work whose end is a moment in time.
pub(crate) fn spinner(title: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target());
    bar.set_message(title.to_owned());
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(4)
    } else {
        ProgressDrawTarget::hidden()
    }
}
