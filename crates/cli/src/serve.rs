//! `entresol serve`: hands its options to the server's own table of configuration keys.

use std::ffi::OsString;

use clap::Args;
use entresol_server::Config;

use crate::failure::{Failure, Outcome};

/// What overwrites what is there.
const FORCED_BY: &str = "`--force yes` does";

/// Options of `entresol serve`, whatever the server's configuration knows.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_long_help = Config::help())]
pub(crate) struct ServeArgs {
    /// Options; `entresol serve --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    options: Vec<OsString>,
}

/// Serves until it is told to stop.
pub(crate) fn run(args: &ServeArgs) -> Outcome<()> {
    let mut options = Vec::new();
    for option in &args.options {
        let text = option.to_str().ok_or_else(|| {
            Failure::CannotRun(format!("option '{}' is not UTF-8", option.display()))
        })?;
        options.push(text.to_owned());
    }
    if options.iter().any(|option| option == "--help" || option == "-h") {
        println!("{}", Config::help());
        return Ok(());
    }
    if options.iter().any(|option| option == "--version" || option == "-V") {
        println!("entresol {}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    let config = Config::from_arguments(options).map_err(|error| {
        Failure::CannotRun(format!("{error}; `entresol serve --help` lists all options"))
    })?;
    entresol_server::serve(config).map_err(|error| Failure::from(error).forced_by(FORCED_BY))
}
