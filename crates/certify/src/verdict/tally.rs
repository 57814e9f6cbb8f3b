//! Intervals, folded into slices and a timeline as they arrive.
//!
//! Only the whole run and the spans that are still open have histograms, so a run of days needs no
//! more memory than a run of minutes.

use std::ops::ControlFlow;

use entresol_workload::Recorder;

use crate::load::{Ending, Interval, Series, SeriesInterval, Telemetry};
use crate::verdict::judge::breaks_rules;
use crate::verdict::{Bound, Figures, Latency, Rules, Run, Slicing, Span};

/// What a load is to be.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How often the configured rates.
    pub factor: f64,
    /// How long.
    pub seconds: u32,
    /// How often it reports.
    pub interval_seconds: u32,
}

/// Folds the intervals of one load.
#[derive(Debug)]
pub struct Tally {
    plan: Plan,
    rules: Rules,
    slicing: Slicing,
    timeline_seconds: f64,
    series: Vec<Series>,
    total: OpenSpan,
    slice: OpenSpan,
    point: OpenSpan,
    slices: Vec<Span>,
    timeline: Vec<Span>,
    cut_short: bool,
}

/// What to do once a rule is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    GoOn,
    Stop,
}

/// A span that intervals are still added to.
#[derive(Debug, Default)]
struct OpenSpan {
    span: Span,
    intervals: u64,
    recorders: Vec<(Recorder, Recorder)>,
}

const TIMELINE_SPANS: f64 = 300.0;
/// How far past its planned end a load may report, as a share of the plan and in seconds.
const OVERRUN: (f64, f64) = (0.05, 30.0);

impl Tally {
    /// Of a load as planned, with these series in each interval.
    pub fn new(plan: Plan, rules: &Rules, series: Vec<Series>) -> Tally {
        let slicing = rules.slicing(plan.seconds, plan.interval_seconds);
        let wanted = f64::from(plan.seconds) / TIMELINE_SPANS;
        let interval = f64::from(plan.interval_seconds.max(1));
        let timeline_seconds = (wanted / interval).ceil().max(1.0) * interval;
        Tally {
            slicing,
            timeline_seconds,
            rules: rules.clone(),
            total: OpenSpan::new(1, series.len()),
            slice: OpenSpan::new(1, series.len()),
            point: OpenSpan::new(1, series.len()),
            slices: Vec::new(),
            timeline: Vec::new(),
            cut_short: false,
            plan,
            series,
        }
    }

    /// Adds the next interval. `Break`: the load is far past its end and is to be stopped.
    pub fn add(&mut self, interval: &Interval) -> ControlFlow<()> {
        self.add_then(interval, AfterFailure::GoOn)
    }

    pub(crate) fn add_then(
        &mut self,
        interval: &Interval,
        after_failure: AfterFailure,
    ) -> ControlFlow<()> {
        let middle = f64::midpoint(interval.start_seconds, interval.end_seconds);
        let slice = (middle / f64::from(self.slicing.seconds)) as u32 + 1;
        let closed =
            self.open(slice.min(self.slicing.count), (middle / self.timeline_seconds) as u32);
        for span in [&mut self.total, &mut self.slice, &mut self.point] {
            span.add(interval);
        }
        self.point.add_latencies(interval);
        let planned = f64::from(self.plan.seconds);
        if interval.end_seconds > planned + (planned * OVERRUN.0).max(OVERRUN.1) {
            return ControlFlow::Break(());
        }
        if closed && after_failure == AfterFailure::Stop && self.has_broken_slice() {
            self.cut_short = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Slices that are complete.
    pub fn closed_slices(&self) -> &[Span] {
        &self.slices
    }

    /// The run, once the load ended.
    pub fn finish(mut self, ending: Ending) -> Run {
        self.close_slice();
        let mut total = Vec::new();
        self.total.close_into(&mut total, &self.rules.bounds);
        Run {
            factor: self.plan.factor,
            planned_seconds: self.plan.seconds,
            slicing: self.slicing,
            bounds: self.rules.bounds,
            total: total.pop().unwrap_or_else(|| Span::empty(self.series.len(), 0)),
            series: self.series,
            slices: self.slices,
            timeline: self.timeline,
            ending,
            processor_wait_seconds: None,
            cut_short: self.cut_short,
        }
    }

    /// Closes the spans that are over; says whether a slice was among them.
    fn open(&mut self, slice: u32, point: u32) -> bool {
        let count = self.series.len();
        let is_next = slice != self.slice.span.number;
        if is_next {
            self.close_slice();
            self.slice = OpenSpan::new(slice, count);
        } else if point + 1 != self.point.span.number {
            self.close_point();
        } else {
            return false;
        }
        self.point = OpenSpan::new(point + 1, count);
        is_next
    }

    /// Latencies go from interval to point, from point to slice and to the whole: each histogram is
    /// added as seldom as can be.
    fn close_point(&mut self) {
        self.slice.take_latencies(&self.point);
        self.total.take_latencies(&self.point);
        self.point.close_into(&mut self.timeline, &self.rules.bounds);
    }

    fn close_slice(&mut self) {
        self.close_point();
        self.slice.close_into(&mut self.slices, &self.rules.bounds);
    }

    fn has_broken_slice(&self) -> bool {
        self.slices.last().is_some_and(|slice| breaks_rules(&self.rules, &self.series, slice))
    }
}

impl OpenSpan {
    fn new(number: u32, series: usize) -> OpenSpan {
        OpenSpan {
            span: Span::empty(series, number),
            intervals: 0,
            recorders: (0..series).map(|_| (Recorder::new(), Recorder::new())).collect(),
        }
    }

    fn add(&mut self, interval: &Interval) {
        let span = &mut self.span;
        if self.intervals == 0 {
            span.start_seconds = interval.start_seconds;
        }
        span.end_seconds = interval.end_seconds;
        span.covered_seconds += interval.end_seconds - interval.start_seconds;
        span.lag_ns = span.lag_ns.max(interval.lag_ns);
        for (index, seen) in interval.series.iter().enumerate().take(span.series.len()) {
            span.series[index].add(seen);
        }
        add_telemetry(span, interval, self.intervals);
        self.intervals += 1;
    }

    fn add_latencies(&mut self, interval: &Interval) {
        for ((response, service), seen) in self.recorders.iter_mut().zip(&interval.series) {
            response.merge(&seen.response);
            service.merge(&seen.service);
        }
    }

    fn take_latencies(&mut self, other: &OpenSpan) {
        for (mine, theirs) in self.recorders.iter_mut().zip(&other.recorders) {
            mine.0.merge(&theirs.0);
            mine.1.merge(&theirs.1);
        }
    }

    /// Puts the span on `list` unless it has no interval.
    fn close_into(&mut self, list: &mut Vec<Span>, bounds: &[Bound]) {
        if self.intervals == 0 {
            return;
        }
        let mut span = std::mem::take(&mut self.span);
        for (figures, (response, service)) in span.series.iter_mut().zip(&self.recorders) {
            figures.done = service.count().max(response.count());
            figures.response = Latency::of(response, bounds);
            figures.service = Latency::of(service, bounds);
        }
        list.push(span);
    }
}

impl Span {
    pub(crate) fn empty(series: usize, number: u32) -> Span {
        Span { number, series: vec![Figures::default(); series], ..Span::default() }
    }
}

impl Figures {
    fn add(&mut self, seen: &SeriesInterval) {
        self.due += seen.due;
        self.errors += seen.errors;
        self.wrong += seen.wrong;
        self.bytes += seen.bytes;
    }
}

impl Latency {
    fn of(recorder: &Recorder, bounds: &[Bound]) -> Latency {
        let over = |bound: &Bound| recorder.count_at_least(bound.threshold_ns);
        Latency { summary: recorder.summary(), over: bounds.iter().map(over).collect() }
    }
}

fn added(known: Option<u64>, seen: Option<u64>) -> Option<u64> {
    [known, seen].into_iter().flatten().reduce(|sum, more| sum.saturating_add(more))
}

/// Sums counts, averages loads, keeps the hottest temperature, the latest wear and every warning.
fn add_telemetry(span: &mut Span, interval: &Interval, intervals_before: u64) {
    for seen in &interval.telemetry {
        let position = span.telemetry.iter().position(|known| known.device == seen.device);
        let index = position.unwrap_or_else(|| {
            span.telemetry.push(Telemetry { device: seen.device.clone(), ..Telemetry::default() });
            span.telemetry.len() - 1
        });
        let known = &mut span.telemetry[index];
        known.reads += seen.reads;
        known.read_bytes += seen.read_bytes;
        known.writes += seen.writes;
        known.written_bytes += seen.written_bytes;
        let before = intervals_before as f64;
        known.busy = (known.busy * before + seen.busy) / (before + 1.0);
        known.queue_depth = (known.queue_depth * before + seen.queue_depth) / (before + 1.0);
        known.temperature =
            [known.temperature, seen.temperature].into_iter().flatten().reduce(f64::max);
        known.wear_percent = seen.wear_percent.or(known.wear_percent);
        known.spare_percent = seen.spare_percent.or(known.spare_percent);
        known.media_errors = added(known.media_errors, seen.media_errors);
        known.throttled_seconds = added(known.throttled_seconds, seen.throttled_seconds);
        let warnings = [known.warnings, seen.warnings].into_iter().flatten();
        known.warnings = warnings.reduce(|all, some| all | some);
    }
}
