//! `entresol serve`: options and environment variables made of the server's table of keys.
//!
//! Invariant: the command line wins over the environment, both win over the file.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, StyledStr};
use clap::builder::{Str, TypedValueParser, ValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use entresol_server::{Config, KeySpec};

use crate::failure::{Failure, Outcome};

/// What overwrites what is there.
const FORCED_BY: &str = "`--force yes` does";
/// The option that names a file, which no key of the file can be.
const FILE: &str = "config";

/// What the command line and the environment say of a server.
#[derive(Debug)]
pub(crate) struct ServeArgs {
    files: Vec<PathBuf>,
    given: Vec<Given>,
}

/// A key that is given, and where.
#[derive(Debug)]
struct Given {
    key: &'static str,
    place: String,
    value: String,
}

impl Args for ServeArgs {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new(FILE)
            .long(FILE)
            .value_name("FILE")
            .action(ArgAction::Append)
            .value_parser(PathBufValueParser::new())
            .value_hint(ValueHint::FilePath)
            .help("File with keys, in TOML; a key given here or in the environment wins over it");
        let command = command.arg(in_environment(file, FILE)).args_override_self(true);
        Config::keys().iter().fold(command, |command, key| command.arg(option(key)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ServeArgs::augment_args(command)
    }
}

impl FromArgMatches for ServeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ServeArgs, clap::Error> {
        let files = matches.get_many::<PathBuf>(FILE).into_iter().flatten().cloned().collect();
        let given = Config::keys().iter().filter_map(|key| {
            let place = match matches.value_source(key.name())? {
                ValueSource::CommandLine => "command line".to_owned(),
                ValueSource::EnvVariable => format!("environment {}", variable(key.name())),
                _ => return None,
            };
            let value = matches.get_one::<String>(key.name())?.clone();
            Some(Given { key: key.name(), place, value })
        });
        Ok(ServeArgs { files, given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ServeArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Serves until it is told to stop.
pub(crate) fn run(args: &ServeArgs) -> Outcome<()> {
    let config = configuration(args).map_err(|error| {
        Failure::CannotRun(format!("{error}; `entresol serve --help` lists all options"))
    })?;
    entresol_server::serve(config).map_err(|error| Failure::from(error).forced_by(FORCED_BY))
}

/// The environment variables that `entresol serve` reads.
pub(crate) fn variables() -> impl Iterator<Item = String> {
    Config::keys().iter().map(KeySpec::name).chain([FILE]).map(variable)
}

/// `error` of the options of `serve` with what helps: the option that serves for one of
/// redis-server, or the environment variable that has a wrong value.
pub(crate) fn with_advice(mut error: clap::Error, arguments: &[impl AsRef<OsStr>]) -> clap::Error {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let name = option.trim_start_matches('-').split([' ', '=', '[']).next().unwrap_or_default();
    let is_given = arguments.iter().filter_map(|given| given.as_ref().to_str()).any(|given| {
        given.strip_prefix("--").is_some_and(|given| {
            given.split('=').next().unwrap_or_default().replace('_', "-") == name
        })
    });
    let advice = match Config::instead_of(name) {
        Some(instead) => instead.to_owned(),
        None if is_given || Config::keys().iter().all(|key| key.name() != name) => return error,
        None => format!("the value comes from the environment variable {}", variable(name)),
    };
    let advice = ContextValue::StyledStrs(vec![StyledStr::from(advice)]);
    error.insert(ContextKind::Suggested, advice);
    error
}

fn configuration(args: &ServeArgs) -> Result<Config, entresol_server::ConfigError> {
    let mut config = Config::default();
    for Given { key, place, value } in &args.given {
        config.give(place, key, value)?;
    }
    args.files.iter().try_for_each(|file| config.read_file(file.clone()))?;
    Ok(config)
}

fn option(key: &'static KeySpec) -> Arg {
    let name = key.name();
    // Its layout takes an `n` in braces for a new line.
    let summary = key.summary().replace("`{n}`", "`n` in braces");
    let first = summary.split_inclusive(". ").next().unwrap_or_default().trim_end();
    let takes = match key.choices() {
        [] if !matches!(key.value_name(), "PATH" | "TEXT") => {
            format!("\n\nTakes {}.", key.expected())
        }
        _ => String::new(),
    };
    let mut arg = Arg::new(name)
        .long(name)
        .value_name(key.value_name())
        .value_parser(parser(key))
        .allow_negative_numbers(true)
        .help(first.trim_end_matches('.').to_owned())
        .long_help(format!("{summary}{takes}"));
    if name.contains('-') {
        arg = arg.alias(Str::from(name.replace('-', "_")));
    }
    if !key.default_value().is_empty() {
        arg = arg.default_value(key.default_value());
    }
    if key.value_name() == "PATH" {
        arg = arg.value_hint(ValueHint::AnyPath);
    }
    if key.is_switch() {
        arg = arg.num_args(0..=1).default_missing_value("yes");
    }
    in_environment(arg, name)
}

fn parser(key: &'static KeySpec) -> ValueParser {
    if key.choices().is_empty() {
        return ValueParser::from(move |text: &str| key.check(text));
    }
    let words = key.choices().iter().map(|word| match (key.is_switch(), *word) {
        (true, "yes") => PossibleValue::new("yes").alias("true"),
        (true, "no") => PossibleValue::new("no").alias("false"),
        (_, word) => PossibleValue::new(word),
    });
    let parser = PossibleValuesParser::new(words.collect::<Vec<_>>());
    if !key.is_switch() {
        return parser.into();
    }
    let word = |text: String| match text.as_str() {
        "true" => "yes".to_owned(),
        "false" => "no".to_owned(),
        _ => text,
    };
    parser.map(word).into()
}

fn in_environment(arg: Arg, name: &str) -> Arg {
    let variable = variable(name);
    let is_link = std::env::var(&variable).is_ok_and(|value| is_service_link(&value));
    match is_link {
        true => arg,
        false => arg.env(Str::from(variable)).hide_env_values(true),
    }
}

/// Kubernetes tells every pod where the service `entresol` is by a variable that is called as that
/// of the key `port`.
fn is_service_link(value: &str) -> bool {
    value.starts_with("tcp://")
}

fn variable(name: &str) -> String {
    format!("ENTRESOL_{}", name.replace('-', "_").to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(arguments: &[&str]) -> Result<Config, String> {
        let command = ServeArgs::augment_args(Command::new("serve"));
        let words = ["serve"].iter().chain(arguments);
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        let args = ServeArgs::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        configuration(&args).map_err(|error| error.to_string())
    }

    #[test]
    fn every_key_is_an_option_and_the_last_one_given_holds() {
        let config = configured(&[
            "--port",
            "1",
            "--port=2",
            "--slowlog_max_len",
            "7",
            "--slowlog-log-slower-than",
            "-1",
            "--unix",
            "",
        ])
        .unwrap();
        for (key, value) in
            [("port", "2"), ("slowlog-max-len", "7"), ("slowlog-log-slower-than", "-1")]
        {
            assert_eq!(config.get(key), Some(value), "{key}");
        }
        let command = ServeArgs::augment_args(Command::new("serve"));
        command.clone().debug_assert();
        for key in Config::keys() {
            assert!(command.get_arguments().any(|arg| arg.get_long() == Some(key.name())));
            if !key.default_value().is_empty() {
                assert_eq!(key.check(key.default_value()).as_deref(), Ok(key.default_value()));
            }
        }
    }

    #[test]
    fn switches_stand_alone_and_take_yes_no_true_and_false() {
        for (words, value) in [
            (&["--force"][..], "yes"),
            (&["--force", "--port", "1"], "yes"),
            (&["--force", "yes"], "yes"),
            (&["--force=true"], "yes"),
            (&["--force", "no"], "no"),
            (&["--force", "false"], "no"),
        ] {
            assert_eq!(configured(words).unwrap().get("force"), Some(value), "{words:?}");
        }
        let told = configured(&["--force", "maybe"]).unwrap_err();
        assert!(told.contains("'maybe'") && told.contains("[possible values: no, yes]"), "{told}");
    }

    #[test]
    fn values_that_a_key_does_not_take_are_told_with_what_it_takes() {
        let told = configured(&["--segment", "3MiB"]).unwrap_err();
        assert!(told.contains("'--segment <SIZE>'"), "{told}");
        assert!(
            told.contains("expected a power of two from 64KiB to 8MiB, found `3MiB`"),
            "{told}"
        );
    }

    #[test]
    fn the_link_to_a_service_of_kubernetes_is_no_port() {
        assert!(is_service_link("tcp://10.0.0.1:6379"));
        assert!(!is_service_link("6379"));
        assert_eq!(variable("admin-port"), "ENTRESOL_ADMIN_PORT");
    }
}
