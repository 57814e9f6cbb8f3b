//! The figures as JSON. Names are stable: scripts rely on them, and `docs/reference/act-json.md`
//! explains each.

use serde_json::{Map, Value, json};

use crate::certification::{Certificate, Judged};
use crate::load::{Ending, Telemetry};
use crate::machine::{Machine, TargetHardware};
use crate::report::Subject;
use crate::report::words;
use crate::search::{Found, Purpose, Try};
use crate::verdict::{Bound, Figures, Judgement, Latency, Reason, Rules, Run, Span, Steadiness};

/// A certificate.
pub fn certificate_json(subject: &Subject, certificate: &Certificate) -> Value {
    let mut fields = frame("certify", certificate.verdict.word(), subject);
    let reasons: Vec<Value> = certificate.reasons().into_iter().map(reason).collect();
    fields.insert("line".into(), json!(words::certificate_line(certificate)));
    fields.insert("reasons".into(), json!(reasons));
    fields.insert("notes".into(), json!(certificate.notes));
    fields.insert("rules".into(), rules(&certificate.rules));
    let prepared = certificate.prepared.map(|prepared| {
        json!({
            "bytes": prepared.bytes,
            "seconds": prepared.seconds,
            "targets_left": prepared.left,
            "stopped": prepared.stopped,
        })
    });
    fields.insert("prepared".into(), json!(prepared));
    fields.insert("steady_state".into(), json!(certificate.steadiness.as_ref().map(steadiness)));
    fields.insert("test".into(), json!(certificate.test.as_ref().map(judged)));
    fields.insert("stress".into(), json!(certificate.stress.as_ref().map(judged)));
    Value::Object(fields)
}

/// What a search found.
pub fn search_json(subject: &Subject, found: &Found, rules_used: &Rules) -> Value {
    let mut fields = frame("search", found.verdict().word(), subject);
    fields.insert("line".into(), json!(words::search_line(found)));
    fields.insert("outcome".into(), json!(found.outcome.word()));
    fields.insert("largest".into(), json!(found.largest_factor().map(short)));
    let failed = found.smallest_failed.map(|steps| short(f64::from(steps) * found.step));
    fields.insert("smallest_failed".into(), json!(failed));
    fields.insert("step".into(), json!(found.step));
    fields.insert("rules".into(), rules(rules_used));
    let tries: Vec<Value> = found.tries.iter().map(|tried| one_try(found, tried)).collect();
    fields.insert("tries".into(), json!(tries));
    Value::Object(fields)
}

fn frame(what: &str, verdict: &str, subject: &Subject) -> Map<String, Value> {
    let mut fields = Map::new();
    let items: Map<String, Value> =
        subject.configuration.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let derived = subject.derived.iter().map(|step| {
        json!({
            "name": step.name,
            "formula": step.formula,
            "value": number(step.value),
            "unit": step.unit,
        })
    });
    fields.insert("act".into(), json!(what));
    fields.insert("verdict".into(), json!(verdict));
    fields.insert("version".into(), json!(subject.version));
    fields.insert("name".into(), json!(subject.name));
    fields.insert("started_unix".into(), json!(subject.started_unix));
    fields.insert("machine".into(), machine(&subject.machine));
    fields.insert("configuration".into(), Value::Object(items));
    fields.insert("derived".into(), json!(derived.collect::<Vec<_>>()));
    fields.insert("errors".into(), json!(subject.errors));
    fields
}

fn judged(judged: &Judged) -> Value {
    let Judged { run, judgement } = judged;
    let mut fields = verdict_fields(judgement);
    fields.extend(run_fields(run));
    let spans = |spans: &[Span]| spans.iter().map(|one| span(run, one)).collect::<Vec<_>>();
    fields.insert("slices".into(), json!(spans(&run.slices)));
    fields.insert("timeline".into(), json!(spans(&run.timeline)));
    Value::Object(fields)
}

fn one_try(found: &Found, tried: &Try) -> Value {
    let mut fields = Map::new();
    fields.insert("factor".into(), json!(short(f64::from(tried.steps) * found.step)));
    let purpose = match tried.purpose {
        Purpose::Probe => "probe",
        Purpose::Confirm => "confirm",
    };
    fields.insert("purpose".into(), json!(purpose));
    fields.insert("seconds".into(), number(tried.seconds));
    fields.extend(verdict_fields(&tried.judgement));
    let point = tried.point.as_ref().map(|point| {
        let percents: Vec<Value> = point.worst_percents.iter().map(|one| number(*one)).collect();
        json!({
            "done_per_second": number(point.done_per_second),
            "worst_percents": percents,
            "p50_us": us(point.p50_ns as f64),
            "p99_us": us(point.p99_ns as f64),
            "p999_us": us(point.p999_ns as f64),
            "longest_us": us(point.longest_ns as f64),
        })
    });
    fields.insert("point".into(), json!(point));
    if let Some(run) = &tried.run {
        fields.insert("total".into(), span(run, &run.total));
        fields.insert("ending".into(), ending(&run.ending));
        fields.insert("cut_short".into(), json!(run.cut_short));
    }
    Value::Object(fields)
}

fn verdict_fields(judgement: &Judgement) -> Map<String, Value> {
    let mut fields = Map::new();
    let reasons: Vec<Value> = judgement.reasons.iter().map(reason).collect();
    fields.insert("verdict".into(), json!(judgement.verdict.word()));
    fields.insert("reasons".into(), json!(reasons));
    fields.insert("notes".into(), json!(judgement.notes));
    fields
}

fn run_fields(run: &Run) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("factor".into(), json!(short(run.factor)));
    fields.insert("planned_seconds".into(), json!(run.planned_seconds));
    fields.insert("slice_seconds".into(), json!(run.slicing.seconds));
    fields.insert("slices_planned".into(), json!(run.slicing.count));
    fields.insert("slices_scaled".into(), json!(run.slicing.scaled));
    fields.insert("ending".into(), ending(&run.ending));
    let wait = run.processor_wait_seconds.map(number);
    fields.insert("processor_wait_seconds".into(), json!(wait));
    let judged = run.judged_series().map(|index| &run.series[index].name);
    fields.insert("judged_series".into(), json!(judged));
    let trend = run.trend().map(|trend| {
        json!({
            "p99_us_first": us(trend.first),
            "p99_us_last": us(trend.last),
            "score": number(trend.score),
            "degrades": trend.is_degradation(),
        })
    });
    fields.insert("trend".into(), json!(trend));
    fields.insert("total".into(), span(run, &run.total));
    fields
}

fn span(run: &Run, span: &Span) -> Value {
    let names = run.series.iter().map(|series| series.name.clone());
    let figures = span.series.iter().enumerate().map(|(index, one)| series(run, span, index, one));
    let series: Map<String, Value> = names.zip(figures).collect();
    json!({
        "number": span.number,
        "start_seconds": number(span.start_seconds),
        "end_seconds": number(span.end_seconds),
        "covered_seconds": number(span.covered_seconds),
        "lag_ms": number(span.lag_ns as f64 / 1e6),
        "series": series,
        "telemetry": span.telemetry.iter().map(telemetry).collect::<Vec<_>>(),
    })
}

fn series(run: &Run, span: &Span, index: usize, figures: &Figures) -> Value {
    json!({
        "due": figures.due,
        "done": figures.done,
        "done_per_second": number(span.done_per_second(index)),
        "errors": figures.errors,
        "wrong": figures.wrong,
        "bytes": figures.bytes,
        "response": latency(&run.bounds, &figures.response),
        "service": latency(&run.bounds, &figures.service),
    })
}

fn latency(bounds: &[Bound], latency: &Latency) -> Value {
    let over = bounds.iter().enumerate().map(|(index, bound)| {
        json!({
            "threshold_ms": bound.threshold_ms(),
            "count": latency.over.get(index),
            "percent": number(latency.percent_over(index)),
        })
    });
    let summary = &latency.summary;
    json!({
        "mean_us": us(summary.mean),
        "p50_us": us(summary.p50 as f64),
        "p90_us": us(summary.p90 as f64),
        "p99_us": us(summary.p99 as f64),
        "p999_us": us(summary.p999 as f64),
        "p9999_us": us(summary.p9999 as f64),
        "max_us": us(summary.max as f64),
        "over": over.collect::<Vec<_>>(),
    })
}

fn reason(reason: &Reason) -> Value {
    let mut fields = Map::new();
    fields.insert("kind".into(), json!(reason.word()));
    fields.insert("text".into(), json!(reason.to_string()));
    let figures = match reason {
        Reason::TooSlow { series, bound, slices, worst_slice, percent, service_percent } => json!({
            "series": series,
            "threshold_ms": bound.threshold_ms(),
            "allowed_percent": bound.percent,
            "slices": slices,
            "worst_slice": worst_slice,
            "percent": number(*percent),
            "service_percent": number(*service_percent),
        }),
        Reason::Errors { series, count, of } => {
            json!({ "series": series, "count": count, "of": of })
        }
        Reason::Wrong { series, count } => json!({ "series": series, "count": count }),
        Reason::Shortfall { series, slices, worst_slice, due, done } => json!({
            "series": series,
            "slices": slices,
            "worst_slice": worst_slice,
            "due": due,
            "done": done,
        }),
        Reason::Lagged { lag_ns, at_seconds, .. } => {
            json!({ "lag_ms": number(*lag_ns as f64 / 1e6), "at_seconds": number(*at_seconds) })
        }
        Reason::MissingSlices { missing, of } => json!({ "missing": missing, "of": of }),
        Reason::PartialSlice { slice, covered_seconds, planned_seconds } => json!({
            "slice": slice,
            "covered_seconds": number(*covered_seconds),
            "planned_seconds": number(*planned_seconds),
        }),
        Reason::Overran { at_seconds } | Reason::Interrupted { at_seconds } => {
            json!({ "at_seconds": number(*at_seconds) })
        }
        Reason::Broken { .. } | Reason::NothingJudged => json!({}),
    };
    if let Value::Object(figures) = figures {
        fields.extend(figures);
    }
    Value::Object(fields)
}

fn rules(rules: &Rules) -> Value {
    let bounds = rules
        .bounds
        .iter()
        .map(|bound| json!({ "percent": bound.percent, "threshold_ms": bound.threshold_ms() }));
    json!({
        "bounds": bounds.collect::<Vec<_>>(),
        "slice_seconds": rules.slice_seconds,
        "shortfall_percent": rules.shortfall_percent,
    })
}

fn steadiness(steadiness: &Steadiness) -> Value {
    let rounds = steadiness.rounds.iter().map(|round| {
        json!({
            "done_per_second": number(round.done_per_second),
            "service_mean_us": us(round.service_ns),
        })
    });
    json!({
        "steady": steadiness.steady,
        "range_percent": number(steadiness.range_percent),
        "slope_percent": number(steadiness.slope_percent),
        "rounds": rounds.collect::<Vec<_>>(),
    })
}

fn ending(ending: &Ending) -> Value {
    match ending {
        Ending::Completed => json!("completed"),
        Ending::Lagged { .. } => json!("lagged"),
        Ending::Interrupted => json!("interrupted"),
        Ending::Broken(_) => json!("broken"),
    }
}

fn telemetry(one: &Telemetry) -> Value {
    json!({
        "device": one.device,
        "reads": one.reads,
        "read_bytes": one.read_bytes,
        "writes": one.writes,
        "written_bytes": one.written_bytes,
        "busy": number(one.busy),
        "queue_depth": number(one.queue_depth),
        "temperature_c": one.temperature,
        "wear_percent": one.wear_percent,
        "spare_percent": one.spare_percent,
        "media_errors": one.media_errors,
        "throttled_seconds": one.throttled_seconds,
        "warnings": one.warnings,
    })
}

fn machine(machine: &Machine) -> Value {
    json!({
        "host": machine.host,
        "kernel": machine.kernel,
        "processor": machine.processor,
        "processors": machine.processors,
        "memory_bytes": machine.memory_bytes,
        "targets": machine.targets.iter().map(target).collect::<Vec<_>>(),
    })
}

fn target(target: &TargetHardware) -> Value {
    json!({
        "name": target.name,
        "kind": target.kind,
        "device": target.device,
        "model": target.model,
        "firmware": target.firmware,
        "serial": target.serial,
        "driver": target.driver,
        "bytes": target.bytes,
        "scheduler": target.scheduler,
        "queue_requests": target.queue_requests,
        "rotational": target.rotational,
        "write_cache": target.write_cache,
        "logical_sector_bytes": target.sector_bytes.map(|(logical, _)| logical),
        "physical_sector_bytes": target.sector_bytes.map(|(_, physical)| physical),
        "file_system": target.file_system,
        "backing_file": target.backing_file,
    })
}

/// A number without digits that nobody can use; no number stays none.
fn number(value: f64) -> Value {
    if value.is_finite() { json!(short(value)) } else { Value::Null }
}

fn us(ns: f64) -> Value {
    number(ns / 1e3)
}

/// To four decimals.
fn short(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
