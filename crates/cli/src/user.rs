//! `entresol user add`: makes a line of the server's users file.

use std::io::{BufRead, IsTerminal};

use clap::{Args, Subcommand};

use crate::failure::{Failure, Outcome};

/// Longest line with a password.
const LINE_BYTES_MAX: u64 = 4096;

/// What is done about users.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Ask for a password, or read a line of the standard input where that is no terminal, and
    /// print the user's line for the users file
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

/// The password in the first line of the standard input.
fn piped() -> Outcome<String> {
    first_line(std::io::stdin().lock())
}

fn first_line(input: impl BufRead) -> Outcome<String> {
    let mut line = String::new();
    input
        .take(LINE_BYTES_MAX)
        .read_line(&mut line)
        .map_err(|e| Failure::doing("cannot read the password from the standard input", e))?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        let text = "expected a password in the first line of the standard input, found nothing";
        return Err(Failure::CannotRun(text.to_owned()));
    }
    if line.len() as u64 == LINE_BYTES_MAX {
        return Err(Failure::CannotRun(format!(
            "expected a password of less than {LINE_BYTES_MAX} bytes in the first line of the \
             standard input, found more"
        )));
    }
    Ok(password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What followed the first line was a part of the password, which nobody could type.
    #[test]
    fn the_password_on_the_standard_input_is_its_first_line() {
        let read = |text: &[u8]| first_line(text).map_err(|error| error.to_string());
        assert_eq!(read(b"s3 cret\r\nmore\n").as_deref(), Ok("s3 cret"));
        assert_eq!(read(b"s3cret").as_deref(), Ok("s3cret"));
        for nothing in [&b""[..], b"\n", b"\r\nmore"] {
            assert!(read(nothing).unwrap_err().contains("found nothing"));
        }
        assert!(read(&[b'x'; 5000]).unwrap_err().contains("4096 bytes"));
    }
}
