//! `--simulate`: the run in a virtual clock.

use entresol_workload::oltp::{
    BLOCK_BYTES, CacheModel, Layout, SEGMENT_BYTES, Simulation, TICKS_PER_SECOND,
};

use super::options::{CacheModelName, PblioArgs, size_of};
use super::report::{CacheName, Ended, Printer};
use super::source::{self, Source};
use crate::failure::{Failure, Outcome};

/// Counts what a run would count, at once.
pub(super) fn run(args: &PblioArgs) -> Outcome<()> {
    let layout = sizes(args)?;
    let configuration = args.configuration(layout, args.bsu)?;
    let (cache, name) = match &args.cache {
        None => (None, None),
        Some(text) => {
            let cache = cache_of(args, text)?;
            let capacity_bytes = cache.capacity_bytes();
            (Some(cache), Some(CacheName { name: text.clone(), capacity_bytes, is_loaded: false }))
        }
    };
    let source = Source::new(args, &configuration)?;
    source::export(args, &configuration)?;
    let mut printer = Printer::new(args)?;
    printer.begin(&configuration, name.as_ref(), args.runlen);
    let ended = serve(args, cache, source, &mut printer)?;
    printer.end(args, &configuration, name.as_ref(), &ended)
}

fn serve(
    args: &PblioArgs,
    cache: Option<CacheModel>,
    mut source: Source,
    printer: &mut Printer,
) -> Outcome<Ended> {
    let mut simulation = Simulation::new(cache, args.ramp, args.runlen);
    let mut period_end = args.dataperiod;
    let mut next = source.next();
    // A trace may end before the run does.
    let mut last_due = 0;
    loop {
        let due = next.map_or(u64::MAX, |request| request.due);
        while period_end < args.runlen && (args.ramp + period_end) * TICKS_PER_SECOND <= due {
            printer.period(&simulation.period(), args.dataperiod as f64, period_end)?;
            period_end += args.dataperiod;
        }
        loop {
            let moment = printer.course().next_seconds();
            let ticks = (moment * TICKS_PER_SECOND as f64) as u64;
            if moment >= args.runlen as f64 || args.ramp * TICKS_PER_SECOND + ticks > due {
                break;
            }
            printer.course().note(moment, &simulation.period());
        }
        match next {
            Some(request) if simulation.serve(&request) => {
                last_due = request.due;
                next = source.next();
            }
            _ => break,
        }
    }
    let seconds = match next {
        Some(_) => args.runlen as f64,
        None => (last_due as f64 / TICKS_PER_SECOND as f64 - args.ramp as f64).max(0.0),
    };
    let period = simulation.end();
    Ok(Ended { period, seconds, latencies: None, findings: None })
}

fn sizes(args: &PblioArgs) -> Outcome<Layout> {
    let mut blocks = [0; 3];
    for (index, text) in args.units().into_iter().enumerate() {
        let option = format!("asu{}", index + 1);
        let sizes = text.split(',').map(|size| size_of(&option, size));
        let sizes = sizes.collect::<Outcome<Vec<u64>>>()?;
        let piece = sizes.iter().min().copied().unwrap_or(0) / BLOCK_BYTES;
        blocks[index] = piece * sizes.len() as u64;
    }
    Layout::new(blocks).map_err(|error| Failure::CannotRun(error.to_string()))
}

fn cache_of(args: &PblioArgs, text: &str) -> Outcome<CacheModel> {
    let bytes = size_of("cache", text)?;
    let made = match args.cache_model {
        CacheModelName::Original => CacheModel::new(bytes),
    };
    made.ok_or_else(|| {
        Failure::CannotRun(format!(
            "--cache is {bytes} bytes; expected at least one segment of {SEGMENT_BYTES} bytes"
        ))
    })
}
