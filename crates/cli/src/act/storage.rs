//! `entresol act storage`.

use entresol_certify::Storage;
use entresol_certify::config::TestOptions;
use entresol_certify::load::{self, Manner, Plan, Target};
use entresol_certify::text::{self, Tester};

use super::tester::{self, Subject, TesterArgs};
use crate::failure::{Failure, Outcome};

/// Options of `entresol act storage`.
pub(crate) type StorageArgs = TesterArgs;

/// Load data devices as a configuration says.
pub(crate) fn run(args: &StorageArgs) -> Outcome<()> {
    tester::run::<Storage>(args)
}

impl Subject for Storage {
    const TESTER: Tester = Tester::Storage;

    fn read(file: &[u8]) -> Outcome<(Storage, Plan)> {
        let parsed = Storage::parse(file).map_err(|error| Failure::CannotRun(error.to_string()))?;
        tester::warn(&parsed.warnings);
        let it = parsed.configuration;
        let rates = it.derive().map_err(|error| Failure::CannotRun(error.to_string()))?;
        let plan = Plan::storage(&it, &rates, Manner::Strict)
            .map_err(|error| Failure::CannotRun(error.to_string()))?;
        Ok((it, plan))
    }

    fn read_compat(file: &[u8]) -> (Vec<u8>, Option<(Self, load::Result<Plan>)>) {
        let reading = Storage::parse_compat(file, tester::processors);
        let outcome = reading.outcome.map(|(it, rates)| {
            let plan = Plan::storage(&it, &rates, Manner::Compatible);
            (it, plan)
        });
        (reading.printed, outcome)
    }

    fn echo(&self) -> Outcome<String> {
        let rates = self.derive().map_err(|error| Failure::CannotRun(error.to_string()))?;
        Ok(text::echo_storage(self, &rates))
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
        let block_bytes = self.large_block_op_kbytes.checked_mul(1024)?;
        (target.blocks(block_bytes) > 0).then(|| target.describe_blocks(block_bytes))
    }
}
