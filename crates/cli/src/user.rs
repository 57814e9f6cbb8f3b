//! `entresol user add`: makes a line of the server's users file.

use std::io::{IsTerminal, Read};

use clap::{Args, Subcommand};

use crate::failure::{Failure, Outcome};

/// What is done about users.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Ask for a password, or read it from the standard input where that is no terminal, and print
    /// the user's line for the users file
    #[command(after_help = "Example:\n  entresol user add alice < password >> /etc/entresol/users")]
    Add(AddArgs),
}

/// Options of `entresol user add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Name of the user
    name: String,
    /// What the user may do: `+command`, `-command`, `+@group`, `~keys`, separated by spaces
    #[arg(long, default_value = "+@all ~*", allow_hyphen_values = true)]
    rules: String,
}

/// Prints the line of a new user.
pub(crate) fn run(command: &UserCommand) -> Outcome<()> {
    let UserCommand::Add(args) = command;
    let password = if std::io::stdin().is_terminal() { asked(&args.name)? } else { piped()? };
    let line = entresol_server::user_line(&args.name, &password, &args.rules)
        .map_err(|error| Failure::CannotRun(error.to_string()))?;
    println!("{line}");
    Ok(())
}

/// The password that somebody types twice, unseen.
fn asked(name: &str) -> Outcome<String> {
    let ask = |what: String| {
        rpassword::prompt_password(what).map_err(|e| Failure::doing("cannot read the password", e))
    };
    let password = ask(format!("Password of {name}: "))?;
    if password.is_empty() {
        return Err(Failure::CannotRun("expected a password, found nothing".to_owned()));
    }
    if ask("The same again: ".to_owned())? != password {
        return Err(Failure::CannotRun("the two passwords differ; nothing was made".to_owned()));
    }
    Ok(password)
}

/// The password on the standard input.
fn piped() -> Outcome<String> {
    let mut password = String::new();
    std::io::stdin()
        .read_to_string(&mut password)
        .map_err(|e| Failure::doing("cannot read the password from the standard input", e))?;
    let password = password.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        let text = "expected a password on the standard input, found nothing";
        return Err(Failure::CannotRun(text.to_owned()));
    }
    Ok(password.to_owned())
}
