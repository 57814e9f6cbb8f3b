//! `entresol pblio`: an SPC-1-like OLTP workload on three units, in a virtual clock or on files and
//! block devices, with the options and the report of the benchmark of that name.

mod cached;
mod course;
mod fill;
mod lanes;
mod ledger;
mod live;
mod options;
mod page;
mod report;
mod search;
mod simulate;
mod source;
mod units;

use std::sync::atomic::Ordering;

pub(crate) use options::{PblioArgs, respelled};

use live::Setting;
use report::{Ended, Printer};
use source::Source;
use units::Units;

use crate::cleanup::stop_flag;
use crate::failure::{Failure, Outcome};

/// Runs the workload.
pub(crate) fn run(args: &PblioArgs) -> Outcome<()> {
    if args.version {
        println!("pblio (dev), entresol {}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    args.check()?;
    if args.cachemeta.is_some() {
        say!("entresol: -cachemeta has no effect: a cache keeps its map in itself");
    }
    for (option, given) in [("-data", args.data.is_some()), ("--percentiles", args.percentiles)] {
        if args.search && given {
            say!("entresol: {option} has no effect with --search: it is of a single run");
        }
    }
    if args.simulate {
        return simulate::run(args);
    }
    let units = Units::open(args)?;
    let interrupted = stop_flag()?;
    let setting = Setting { args, units: &units, interrupted: &interrupted };
    if args.fill {
        fill::run(setting)?;
    }
    if args.search { search::run(setting) } else { once(setting) }
}

fn once(setting: Setting<'_>) -> Outcome<()> {
    let args = setting.args;
    let configuration = args.configuration(setting.units.layout(), args.bsu)?;
    let source = Source::new(args, &configuration)?;
    source::export(args, &configuration)?;
    let mut printer = Printer::new(args)?;
    let lanes = live::lanes(setting, &configuration)?;
    let cache = lanes.cache_name().cloned();
    printer.begin(&configuration, cache.as_ref(), args.runlen);
    let finished = live::run(setting, &configuration, (lanes, source), Some(&mut printer))?;
    printer.end(args, &configuration, cache.as_ref(), &finished.ended)?;
    if setting.interrupted.load(Ordering::Relaxed) {
        say!("entresol: interrupted after {:.1} s", finished.ended.seconds);
    }
    if finished.fell_behind {
        say!("entresol: the units fell behind; requests of the end were not made");
    }
    if let Some(findings) = &finished.ended.findings {
        say!("entresol: verified: {findings}");
    }
    demand_sound(&finished.ended)
}

/// Fails a run that read what it should not have found.
fn demand_sound(ended: &Ended) -> Outcome<()> {
    let Some(findings) = ended.findings.as_ref().filter(|found| found.wrong > 0) else {
        return Ok(());
    };
    let examples = findings.sentences.join("\n  ");
    let sentence = format!("{} blocks were read wrong:\n  {examples}", findings.wrong);
    Err(Failure::Failed(sentence))
}
