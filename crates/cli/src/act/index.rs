//! `entresol act index`.

use entresol_certify::Index;
use entresol_certify::config::TestOptions;
use entresol_certify::load::{self, Manner, Plan, Target};
use entresol_certify::text::{self, Tester};

use super::tester::{self, Subject, TesterArgs};
use crate::failure::{Failure, Outcome};

/// Options of `entresol act index`.
pub(crate) type IndexArgs = TesterArgs;

/// Bytes of a page of the index.
const PAGE_BYTES: u32 = 4096;

/// Load index devices as a configuration says.
pub(crate) fn run(args: &IndexArgs) -> Outcome<()> {
    tester::run::<Index>(args)
}

impl Subject for Index {
    const TESTER: Tester = Tester::Index;

    fn read(file: &[u8]) -> Outcome<(Index, Plan)> {
        let parsed = Index::parse(file).map_err(|error| Failure::CannotRun(error.to_string()))?;
        tester::warn(&parsed.warnings);
        let it = parsed.configuration;
        let rates = it.derive().map_err(|error| Failure::CannotRun(error.to_string()))?;
        let plan = Plan::index(&it, &rates, Manner::Strict)
            .map_err(|error| Failure::CannotRun(error.to_string()))?;
        Ok((it, plan))
    }

    fn read_compat(file: &[u8]) -> (Vec<u8>, Option<(Self, load::Result<Plan>)>) {
        let reading = Index::parse_compat(file, tester::processors);
        let outcome = reading.outcome.map(|(it, rates)| {
            let plan = Plan::index(&it, &rates, Manner::Compatible);
            (it, plan)
        });
        (reading.printed, outcome)
    }

    fn echo(&self) -> Outcome<String> {
        let rates = self.derive().map_err(|error| Failure::CannotRun(error.to_string()))?;
        Ok(text::echo_index(self, &rates))
    }

    fn devices(&self) -> &[String] {
        &self.device_names
    }

    fn file_mbytes(&self) -> u32 {
        self.file_size_mbytes
    }

    fn disables_odsync(&self) -> bool {
        self.disable_odsync
    }

    fn reports(&self) -> (bool, u32) {
        (self.microsecond_histograms, self.report_interval_sec)
    }

    fn test(&self) -> &TestOptions {
        &self.test
    }

    fn describe(&self, target: &Target) -> Option<String> {
        (target.blocks(PAGE_BYTES) > 0).then(|| target.describe())
    }
}
