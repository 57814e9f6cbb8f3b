//! The page around a report: head, style, verdict, machine, configuration.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::machine::{Machine, TargetHardware};
use crate::report::Subject;
use crate::report::words;
use crate::verdict::Reason;

/// The whole page. `word` is `pass`, `fail` or `undecided`.
pub(crate) fn page(title: &str, subject: &Subject, word: &str, body: &Markup) -> String {
    let title = format!("{title} of {}: {word}", subject.name);
    let body = html! {
        (body)
        (machine_section(&subject.machine))
        (configuration_section(subject))
    };
    sheet(&title, &body, &subject.version)
}

/// A page of its own that asks for nothing from elsewhere: `body` in the style of all reports.
pub fn sheet(title: &str, body: &Markup, version: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body { main { (body) p.soft.small { "Entresol " (version) "." } } }
        }
    };
    page.into_string()
}

/// Heading, verdict and what led to it.
pub(crate) fn top(
    (title, word, line): (&str, &str, &str),
    subject: &Subject,
    reasons: &[&Reason],
    notes: &[String],
) -> Markup {
    let sentence = line.split_once(": ").map_or(line, |(first, rest)| {
        if first.chars().all(char::is_uppercase) { rest } else { line }
    });
    let devices: Vec<&str> =
        subject.machine.targets.iter().map(|target| target.name.as_str()).collect();
    html! {
        header {
            h1 { (title) " of " (devices.join(", ")) }
            p.soft { (subject.name) " · " (words::date(subject.started_unix)) }
        }
        section class={ "verdict " (word) } {
            strong { (word.to_uppercase()) }
            @if reasons.len() < 2 {
                p { (sentence) }
            } @else {
                ul.reasons { @for reason in reasons { li { (reason) } } }
            }
        }
        @for note in notes { p.soft { "Note: " (note) } }
    }
}

/// A figure with its name.
pub fn tile(name: &str, value: &str) -> Markup {
    html! { div.tile { b { (value) } span { (name) } } }
}

/// What a run ran on.
pub fn machine_section(machine: &Machine) -> Markup {
    let memory = machine.memory_bytes.map(|bytes| words::bytes(bytes as f64));
    let processor =
        machine.processor.as_ref().map(|model| format!("{} × {model}", machine.processors));
    html! {
        h2 { "Machine" }
        div.card { table.words { tbody {
            (row("Host", machine.host.as_deref()))
            (row("Kernel", machine.kernel.as_deref()))
            (row("Processors", processor.as_deref()))
            (row("Memory", memory.as_deref()))
        } } }
        @for target in &machine.targets { (target_card(target)) }
    }
}

fn target_card(target: &TargetHardware) -> Markup {
    let bytes = target.bytes.map(|bytes| words::bytes(bytes as f64));
    let sectors = target
        .sector_bytes
        .map(|(logical, physical)| format!("{logical} B logical, {physical} B physical"));
    let queue = target.queue_requests.map(|requests| format!("{requests} requests"));
    html! {
        div.card {
            h3 { (target.name) " (" (target.kind) ")" }
            table.words { tbody {
                (row("File system", target.file_system.as_deref()))
                (row("Backing file", target.backing_file.as_deref()))
                (row("Device", target.device.as_deref()))
                (row("Model", target.model.as_deref()))
                (row("Firmware", target.firmware.as_deref()))
                (row("Serial number", target.serial.as_deref()))
                (row("Driver", target.driver.as_deref()))
                (row("Size of the device", bytes.as_deref()))
                (row("Sectors", sectors.as_deref()))
                (row("Scheduler", target.scheduler.as_deref()))
                (row("Queue", queue.as_deref()))
                (row("Write cache", target.write_cache.as_deref()))
                (row("Rotational", target.rotational.as_deref()))
            } }
        }
    }
}

fn row(name: &str, value: Option<&str>) -> Markup {
    html! { @if let Some(value) = value { tr { td { (name) } td { (value) } } } }
}

fn configuration_section(subject: &Subject) -> Markup {
    html! {
        @if !subject.derived.is_empty() {
            h2 { "Derived rates" }
            div.card { table.words { tbody {
                @for step in &subject.derived {
                    tr {
                        td { (step.name) }
                        td {
                            b { (words::amount(step.value)) " " (step.unit) }
                            br;
                            code { (step.formula) }
                        }
                    }
                }
            } } }
        }
        @if !subject.configuration.is_empty() {
            h2 { "Configuration" }
            div.card { details {
                summary { (subject.configuration.len()) " items" }
                table.words { tbody {
                    @for (name, value) in &subject.configuration { (row(name, Some(value))) }
                } }
            } }
        }
        @if !subject.errors.is_empty() {
            h2 { "Errors" }
            div.card { ul.reasons { @for error in &subject.errors { li { (error) } } } }
        }
    }
}
