//! The source of requests, a stream or a file, and the file that records them.

use std::io::{BufRead, BufReader, BufWriter, Write};

use entresol_workload::oltp::{Configuration, Layout, Request, RequestStream, TICKS_PER_SECOND};

use super::options::PblioArgs;
use crate::failure::{Failure, Outcome};

/// Requests in the order of their times.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Stream(Box<RequestStream>),
    Trace(std::vec::IntoIter<Request>),
}

impl Source {
    /// The requests that `args` ask for.
    pub(super) fn new(args: &PblioArgs, configuration: &Configuration) -> Outcome<Source> {
        match &args.trace_in {
            None => Ok(Source::Stream(Box::new(RequestStream::new(configuration)))),
            Some(path) => Ok(Source::Trace(read(path, &configuration.layout)?.into_iter())),
        }
    }

    /// The next request; `None` once a file has no more.
    pub(super) fn next(&mut self) -> Option<Request> {
        match self {
            Source::Stream(stream) => Some(stream.next()),
            Source::Trace(requests) => requests.next(),
        }
    }
}

/// Writes the requests of the run, or as many as were asked for, to `--trace-out`.
pub(super) fn export(args: &PblioArgs, configuration: &Configuration) -> Outcome<()> {
    let Some(path) = &args.trace_out else { return Ok(()) };
    let failed = |e| Failure::doing(format!("cannot write --trace-out {path}"), e);
    let mut file = BufWriter::new(std::fs::File::create(path).map_err(failed)?);
    let mut stream = RequestStream::new(configuration);
    let end = (args.ramp + args.runlen) * TICKS_PER_SECOND;
    let mut left = args.trace_limit;
    loop {
        let request = match args.context {
            None => stream.next(),
            Some(context) => stream.next_of(context as usize),
        };
        match &mut left {
            None if request.due >= end => break,
            None => {}
            Some(0) => break,
            Some(left) => *left -= 1,
        }
        writeln!(file, "{request}").map_err(failed)?;
    }
    file.flush().map_err(failed)
}

fn read(path: &str, layout: &Layout) -> Outcome<Vec<Request>> {
    let failed = |e| Failure::doing(format!("cannot read --trace-in {path}"), e);
    let file = BufReader::new(std::fs::File::open(path).map_err(failed)?);
    let mut requests: Vec<Request> = Vec::new();
    for (index, line) in file.lines().enumerate() {
        let line = line.map_err(failed)?;
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let at = format!("--trace-in {path} line {}", index + 1);
        let request: Request = line.parse().map_err(|e| Failure::doing(&at, e))?;
        let blocks = layout.blocks(request.asu);
        if request.range().end > blocks {
            let sentence = format!(
                "{at}: the request ends at block {} of ASU{}, which has {blocks}; give larger \
                 units",
                request.range().end,
                request.asu.number()
            );
            return Err(Failure::CannotRun(sentence));
        }
        if requests.last().is_some_and(|last| last.due > request.due) {
            let sentence = format!(
                "{at}: the request is due at {}, before the one above; expected times that never \
                 fall: sort the file by its last column",
                request.due
            );
            return Err(Failure::CannotRun(sentence));
        }
        requests.push(request);
    }
    Ok(requests)
}
