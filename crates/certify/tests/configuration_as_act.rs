//! Configurations read as ACT reads them, against recordings of ACT 6.6.

use entresol_certify::text::{self, Tester};
use entresol_certify::{Index, Storage};

/// One recorded run.
struct Case<'a> {
    title: &'a str,
    tester: Tester,
    file: &'a str,
    output: &'a str,
}

const RECORDED: &str = include_str!("vectors/config_edge_cases.txt");
/// Drawn at random, good and bad and odd: three for each way in which ACT ends.
const DRAWN: &str = include_str!("vectors/config_random_cases.txt");

fn cases(recorded: &'static str) -> Vec<Case<'static>> {
    let pieces = recorded.split("##### ").skip(1);
    pieces
        .map(|piece| {
            let (title, rest) = split(piece, "\n");
            let (_, rest) = split(rest, "--- config:\n");
            let (file, rest) = split(rest, "\n--- output:\n");
            let (output, _) = split(rest, "--- exit status: 255");
            let tester = match title.starts_with("[act_index]") {
                true => Tester::Index,
                false => Tester::Storage,
            };
            Case { title, tester, file, output }
        })
        .collect()
}

fn split(text: &'static str, separator: &str) -> (&'static str, &'static str) {
    text.split_once(separator).expect("a recording has all its parts")
}

/// What ACT prints until it opens the first device, which fails in every recorded run.
fn printed(tester: Tester, file: &[u8]) -> String {
    let (printed, device) = match tester {
        Tester::Storage => {
            let reading = Storage::parse_compat(file, || 2);
            (reading.printed, reading.outcome.map(|(it, _)| it.device_names[0].clone()))
        }
        Tester::Index => {
            let reading = Index::parse_compat(file, || 2);
            (reading.printed, reading.outcome.map(|(it, _)| it.device_names[0].clone()))
        }
    };
    let failure = match device {
        Some(device) => {
            format!("ERROR: open device {device} errno 2 'No such file or directory'\n")
        }
        None => String::new(),
    };
    text::banner(tester)
        + &String::from_utf8(printed).expect("recordings are plain text")
        + &failure
}

#[test]
fn every_recorded_configuration_prints_the_same_bytes() {
    assert_eq!(cases(RECORDED).len(), 25);
    for case in cases(RECORDED).into_iter().chain(cases(DRAWN)) {
        let printed = printed(case.tester, case.file.as_bytes());
        assert_eq!(printed, case.output, "{}", case.title);
    }
}

#[test]
fn recorded_logs_begin_with_the_same_bytes() {
    let logs = [
        (
            "storage_basic.conf",
            include_str!("vectors/storage_basic.conf"),
            include_str!("vectors/storage_basic.out"),
        ),
        (
            "storage_us.conf",
            include_str!("vectors/storage_us.conf"),
            include_str!("vectors/storage_us.out"),
        ),
        ("rates.conf", include_str!("vectors/rates.conf"), include_str!("vectors/rates.out")),
        ("bigrec.conf", include_str!("vectors/bigrec.conf"), include_str!("vectors/bigrec.out")),
        ("updonly.conf", include_str!("vectors/updonly.conf"), include_str!("vectors/updonly.out")),
    ];
    for (name, file, log) in logs {
        let reading = Storage::parse_compat(file.as_bytes(), || 2);
        let (it, _) = reading.outcome.unwrap();
        let begin = text::banner(Tester::Storage) + &String::from_utf8(reading.printed).unwrap();
        assert!(log.starts_with(&begin), "{name}: {begin}");
        let names = text::histogram_names(&text::storage_series_compat(&it));
        assert!(log.contains(&names), "{name}: {names}");
    }
}
