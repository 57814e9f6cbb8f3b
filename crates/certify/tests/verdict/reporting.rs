//! Reports of simulated certifications: complete, self-contained, with nothing taken for markup.

use std::fs;
use std::path::Path;

use entresol_certify::machine::{Machine, TargetHardware};
use entresol_certify::report::{
    Subject, certificate_json, certificate_line, certificate_page, search_json, search_line,
    search_page,
};
use entresol_certify::search::{Search, search};
use entresol_certify::verdict::Rules;
use entresol_certify::{Preparation, Procedure, Settling, Stress, Unobserved, certify};
use serde_json::Value;

use crate::simulated::{Fault, Simulated};

fn subject() -> Subject {
    Subject {
        name: "<script>alert(\"1\")</script> & co.conf".to_owned(),
        started_unix: 1_795_272_600,
        version: "0.0.0".to_owned(),
        machine: Machine::look(&["/dev/null", "/nowhere/<b>"]),
        configuration: Subject::items_of("A CONFIGURATION\nread-reqs-per-sec: 20\n\nDERIVED: x"),
        derived: Vec::new(),
        errors: vec!["reading /dev/a: 5 'Input/output error'".to_owned()],
    }
}

fn procedure() -> Procedure {
    Procedure {
        rules: Rules::default(),
        prepare: Some(Preparation::IfNeeded),
        settle: Some(Settling::default()),
        test_seconds: 6 * 3600,
        stress: Some(Stress { factor: 2.0, seconds: 3600 }),
        rest_seconds: 60,
    }
}

fn device() -> Simulated {
    let mut device = Simulated::new(20.0, 100.0);
    device.interval = 60;
    device
}

/// Leaves the page where a person can look at it.
fn keep(name: &str, page: &str) {
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), page).expect("a writable folder");
}

fn assert_self_contained(page: &str) {
    for word in ["<script", "http://", "src=", "href=", "url(", "@import", "<b>\"", "NaN"] {
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("&lt;script&gt;") && page.ends_with("</html>"));
}

#[test]
fn a_pass_is_told_in_one_line_and_in_a_page_of_its_own() {
    let certificate =
        certify(&mut device().with(Fault::Fresh(600.0)), &procedure(), &mut Unobserved).unwrap();
    let line = certificate_line(&certificate);
    assert!(
        line.starts_with("PASS: 20 reads/s and 0.25 large-block-writes/s for 6 h; in"),
        "{line}"
    );
    let page = certificate_page(&subject(), &certificate);
    keep("pass.html", &page);
    assert_self_contained(&page);
    for part in ["PASS", "Slices of 1 h", "Stress at 2x", "Steady state", "Machine"] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<svg").count() % 2, 0);
    let json = certificate_json(&subject(), &certificate);
    assert_eq!(json["verdict"], "pass");
    assert_eq!(json["reasons"], Value::Array(Vec::new()));
    assert_eq!(json["test"]["slices"].as_array().unwrap().len(), 6);
    assert_eq!(json["test"]["slices"][5]["series"]["reads"]["done"], 72_000);
    assert_eq!(json["configuration"]["read-reqs-per-sec"], "20");
    assert_eq!(json["test"]["judged_series"], "reads");
    let over = &json["test"]["total"]["series"]["reads"]["response"]["over"];
    assert_eq!(over[0]["threshold_ms"], 1.0);
    assert!(json["stress"]["verdict"] == "pass" && json["steady_state"]["steady"] == true);
}

#[test]
fn two_targets_on_one_device_count_once() {
    let certificate = certify(&mut device(), &procedure(), &mut Unobserved).unwrap();
    let mut subject = subject();
    subject.machine.targets = ["/dev/a", "/dev/b"]
        .map(|name| TargetHardware {
            name: name.to_owned(),
            device: Some("nvme7n1".to_owned()),
            ..TargetHardware::default()
        })
        .to_vec();
    let page = certificate_page(&subject, &certificate);
    let charts = page.split("<h3>").filter(|part| part.starts_with("How busy")).count();
    let legends = page.split("<li>").filter(|part| part.contains("</i>nvme7n1</li>")).count();
    assert_eq!((charts, legends), (1, 2), "busy and temperature have a line each");
}

#[test]
fn a_fail_gives_its_reasons_first() {
    let faults = [Fault::SlowDown(0.0001), Fault::ErrorEvery(100), Fault::StallFrom(9000.0)];
    for (number, fault) in faults.into_iter().enumerate() {
        let certificate =
            certify(&mut device().with(fault), &procedure(), &mut Unobserved).unwrap();
        let line = certificate_line(&certificate);
        assert!(line.starts_with("FAIL: 20 reads/s"), "{line}");
        let page = certificate_page(&subject(), &certificate);
        keep(&format!("fail-{number}.html"), &page);
        assert_self_contained(&page);
        let json = certificate_json(&subject(), &certificate);
        let reasons = json["reasons"].as_array().unwrap();
        assert!(!reasons.is_empty());
        for reason in reasons {
            let text = reason["text"].as_str().unwrap();
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
            assert!(page.contains(&escaped) || reasons.len() == 1, "{text}");
        }
    }
}

#[test]
fn an_interruption_and_an_empty_run_still_make_a_report() {
    for at in [0.0, 700.0] {
        let mut rig = device().with(Fault::Interrupt(at));
        let mut procedure = procedure();
        procedure.settle = procedure.settle.filter(|_| at == 0.0);
        let certificate = certify(&mut rig, &procedure, &mut Unobserved).unwrap();
        assert!(certificate_line(&certificate).starts_with("UNDECIDED"));
        assert_self_contained(&certificate_page(&subject(), &certificate));
        assert_eq!(certificate_json(&subject(), &certificate)["verdict"], "undecided");
    }
}

#[test]
fn an_interruption_between_test_and_stress_is_told_in_the_line() {
    let mut rig = device().with(Fault::StopResting);
    let certificate = certify(&mut rig, &procedure(), &mut Unobserved).unwrap();
    let line = certificate_line(&certificate);
    assert!(line.starts_with("UNDECIDED: "), "{line}");
    assert!(line.ends_with("It was interrupted before the stress."), "{line}");
}

#[test]
fn a_search_draws_latency_against_load() {
    let how = Search {
        rules: Rules::default(),
        step: 1.0,
        first: 1,
        most: 100,
        seconds: 120,
        confirm_seconds: 240,
        rest_seconds: 30,
        tries_max: 64,
        seconds_max: 1 << 30,
    };
    let mut rig = Simulated::new(10.0, 200.0);
    let found = search(&mut rig, &how, Vec::new(), &mut Unobserved).unwrap();
    let line = search_line(&found);
    assert!(line.ends_with("x the configured load passes, 12x does not."), "{line}");
    let page = search_page(&subject(), &found, &how.rules);
    keep("search.html", &page);
    assert_self_contained(&page);
    assert!(page.contains("Response time against load") && page.contains("(confirmation)"));
    let json = search_json(&subject(), &found, &how.rules);
    assert_eq!((&json["largest"], &json["outcome"]), (&11.0.into(), &"found".into()));
    assert_eq!(json["tries"].as_array().unwrap().len(), found.tries.len());
    assert!(json["tries"][0]["total"]["series"]["reads"]["response"]["p99_us"].is_number());
}

#[test]
fn numbers_of_a_search_that_none_passes_are_none() {
    let mut rig = Simulated::new(10.0, 200.0).with(Fault::StallForEver);
    let how = Search {
        rules: Rules::default(),
        step: 1.0,
        first: 1,
        most: 100,
        seconds: 20,
        confirm_seconds: 0,
        rest_seconds: 0,
        tries_max: 9,
        seconds_max: 900,
    };
    let found = search(&mut rig, &how, Vec::new(), &mut Unobserved).unwrap();
    let json = search_json(&subject(), &found, &how.rules);
    assert_eq!((&json["largest"], &json["verdict"]), (&Value::Null, &"fail".into()));
    assert_self_contained(&search_page(&subject(), &found, &how.rules));
}
