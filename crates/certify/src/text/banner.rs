//! The beginning of a log.

/// Which of ACT's two testers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tester {
    /// Data devices.
    Storage,
    /// Index devices.
    Index,
}

/// The version of ACT whose log format this is; its analyser looks for it.
const VERSION: &str = "6.6";

/// The first lines of a log, as ACT writes them.
pub fn banner(tester: Tester) -> String {
    let title = match tester {
        Tester::Storage => "Storage device IO test",
        Tester::Index => "Index device IO test",
    };
    format!(
        "\nACT version {VERSION}\n{title}\nCopyright 2020 by Aerospike. All rights reserved.\n\n"
    )
}

impl Tester {
    /// ACT's name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Tester::Storage => "act_storage",
            Tester::Index => "act_index",
        }
    }
}
