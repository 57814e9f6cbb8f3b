//! Configurations of index devices.

use entresol_certify::Index;

use super::{ConfigArgs, DAY_SECONDS, doing, note, note_new, read_bytes};
use crate::failure::{Failure, Outcome};

/// Makes or explains one.
pub(super) fn run(args: &ConfigArgs) -> Outcome<()> {
    let mut it = match &args.config {
        Some(path) => {
            let parsed = Index::parse(&read_bytes(path)?).map_err(|error| {
                Failure::doing(format_args!("configuration {}", path.display()), error)
            })?;
            note(path, &parsed.warnings);
            parsed.configuration
        }
        None => Index { test_duration_sec: DAY_SECONDS, ..Index::default() },
    };
    args.name_devices(&mut it.device_names, &mut it.test_duration_sec)?;
    let mut steps = Vec::new();
    let devices = it.device_names.len() as u32;
    if let Some((reads, writes)) = args.requests(devices, (args.reads, args.writes), &mut steps)? {
        (it.read_reqs_per_sec, it.write_reqs_per_sec) = (reads, writes);
    }
    args.check_load(it.read_reqs_per_sec == 0 && it.write_reqs_per_sec == 0)?;
    let before = it.to_text("");
    if let Some(text) = args.changed(|| before.clone())? {
        let known = Index::parse(before.as_bytes()).map_or(Vec::new(), |parsed| parsed.warnings);
        let parsed =
            Index::parse(text.as_bytes()).map_err(|error| doing("setting items", &error))?;
        note_new(&known, &parsed.warnings);
        it = parsed.configuration;
    }
    let rates = it
        .derive()
        .map_err(|error| Failure::doing("deriving the rates of the configuration", error))?;
    steps.extend(rates.steps);
    let text = it.to_text(&args.comment());
    // What cannot be read back is not handed out.
    Index::parse(text.as_bytes())
        .map_err(|error| doing("the configuration that results", &error))?;
    args.deliver(&text, &steps)
}
