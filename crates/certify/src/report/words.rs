//! Figures in the form that people read, and the line that sums up a result.

use entresol_page::grouped;

use crate::certification::Certificate;
use crate::search::{Found, Outcome};
use crate::verdict::{Run, Verdict};

/// A certificate in one line.
pub fn certificate_line(certificate: &Certificate) -> String {
    let Some(test) = &certificate.test else {
        let why = certificate.notes.last().map_or("there was no test.", String::as_str);
        return format!("UNDECIDED: {why}");
    };
    let run = &test.run;
    let load = load_words(run);
    let reasons = certificate.reasons();
    match certificate.verdict {
        Verdict::Pass => {
            let stress = certificate.stress.as_ref().map_or_else(String::new, |stress| {
                let run = &stress.run;
                format!("; lived through {}x for {}", run.factor, seconds(run.planned_seconds))
            });
            format!("PASS: {load} for {}; {}{stress}.", seconds(run.planned_seconds), shares(run))
        }
        verdict => {
            let reason = reasons.first().map(ToString::to_string);
            // What was stopped between two loads has a note alone.
            let first = reason.or_else(|| certificate.notes.last().cloned()).unwrap_or_default();
            let more = match reasons.len() {
                0 | 1 => String::new(),
                n => format!(" ({} more)", n - 1),
            };
            format!("{}: {load}. {first}{more}", verdict.word().to_uppercase())
        }
    }
}

/// What a search found, in one line.
pub fn search_line(found: &Found) -> String {
    let limit = match (found.largest_factor(), found.smallest_failed) {
        (Some(largest), Some(failed)) => format!(
            "{}x the configured load passes, {}x does not",
            tidy(largest),
            tidy(f64::from(failed) * found.step)
        ),
        (Some(largest), None) => format!("{}x the configured load passes", tidy(largest)),
        (None, Some(failed)) => {
            format!(
                "no load passed; the smallest tried was {}x",
                tidy(f64::from(failed) * found.step)
            )
        }
        (None, None) => "no load was tried to its end".to_owned(),
    };
    let why = match found.outcome {
        Outcome::Found | Outcome::NonePasses => "",
        Outcome::AllPass => "; it is the largest that was allowed",
        Outcome::TriesUsed => "; as many loads as allowed were tried",
        Outcome::TimeUsed => "; the time was over",
        Outcome::Interrupted => "; it was interrupted",
        Outcome::Broken => "; the search ended there, because the load could not go on",
    };
    let faults = match found.faulty_tries() {
        0 => "",
        _ => "; transfers failed or brought wrong blocks, which is a fault and no limit",
    };
    format!("{}{why}{faults}.", capitalised(&limit))
}

/// The load of a run: `2,000 reads/s and 23.5 large-block writes/s`.
fn load_words(run: &Run) -> String {
    let words: Vec<String> = run
        .counting_series()
        .into_iter()
        .filter(|index| run.total.series[*index].due > 0)
        .map(|index| {
            let rate = amount(run.total.due_per_second(index));
            format!("{rate} {}/s", run.series[index].name)
        })
        .collect();
    match words.split_last() {
        None => "no load".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
    }
}

/// The largest share over each threshold in any slice.
fn shares(run: &Run) -> String {
    let Some(judged) = run.judged_series() else { return "nothing judged".to_owned() };
    let worst = |index| {
        let percent =
            |slice: &crate::verdict::Span| slice.series[judged].response.percent_over(index);
        run.slices.iter().map(percent).fold(0.0, f64::max)
    };
    let words: Vec<String> = run
        .bounds
        .iter()
        .enumerate()
        .map(|(index, bound)| format!("{:.2} % reached {} ms", worst(index), bound.threshold_ms()))
        .collect();
    format!("in the worst slice {}", words.join(", "))
}

/// A number with thousands apart and few decimals.
pub fn amount(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || (size - size.round()).abs() < 0.005 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    grouped(&format!("{value:.decimals$}"))
}

/// A whole number with thousands apart.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A factor without needless decimals.
pub(crate) fn tidy(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A time of a test: `24 h`, `90 min`, `45 s`.
pub(crate) fn seconds(value: u32) -> String {
    match value {
        0..=119 => format!("{value} s"),
        _ if value.is_multiple_of(3600) => format!("{} h", value / 3600),
        120..=7199 if value.is_multiple_of(60) => format!("{} min", value / 60),
        120..=7199 => format!("{} min {} s", value / 60, value % 60),
        _ => format!("{} h {} min", value / 3600, value % 3600 / 60),
    }
}

/// Bytes in powers of ten.
pub(crate) fn bytes(value: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let found = units.iter().find(|(size, _)| value >= *size);
    found.map_or_else(
        || format!("{value:.0} B"),
        |(size, unit)| format!("{} {unit}", amount((value / size * 10.0).round() / 10.0)),
    )
}

/// A latency with three digits.
pub fn latency(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let decimals = match value {
        value if value >= 99.95 || (value - value.round()).abs() < 0.005 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// Seconds since 1970 as a date and time.
pub fn date(unix: u64) -> String {
    let known = i64::try_from(unix).ok();
    let moment = known.and_then(|unix| time::OffsetDateTime::from_unix_timestamp(unix).ok());
    let Some(moment) = moment else { return format!("second {unix}") };
    let (year, month, day) = moment.to_calendar_date();
    let (hour, minute) = (moment.hour(), moment.minute());
    format!("{year:04}-{:02}-{day:02} {hour:02}:{minute:02} UTC", u8::from(month))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(amount(2000.0), "2,000");
        assert_eq!(amount(1_234_567.8), "1,234,568");
        assert_eq!(amount(23.5294), "23.5");
        assert_eq!(amount(2.3529), "2.35");
        assert_eq!(amount(-1234.0), "-1,234");
        assert_eq!(count(999), "999");
        assert_eq!(latency(950.0), "950 ns");
        assert_eq!(latency(1e6), "1 ms");
        assert_eq!(latency(123_456.0), "123 µs");
        assert_eq!(latency(64e6), "64 ms");
        assert_eq!(bytes(1.5e9), "1.50 GB");
        assert_eq!(tidy(0.35), "0.35");
        assert_eq!(tidy(30.0), "30");
        assert_eq!(seconds(86_400), "24 h");
        assert_eq!(seconds(5400), "90 min");
        assert_eq!(seconds(45), "45 s");
        assert_eq!(seconds(9000), "2 h 30 min");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_272_600), "2026-11-21 14:50 UTC");
        assert_eq!(date(u64::MAX), format!("second {}", u64::MAX));
    }
}
