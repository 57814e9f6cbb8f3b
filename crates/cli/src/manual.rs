//! What other programs read of the commands: completions for shells, and pages for `man`.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::{Failure, Outcome};

/// Options of `entresol completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that is to complete commands and options
    shell: Shell,
}

/// Options of `entresol man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Command whose page to print, such as `store info`; the program's own otherwise
    #[arg(conflicts_with = "dir")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints the completions of `program`.
pub(crate) fn completions(args: &CompletionsArgs, mut program: Command) -> Outcome<()> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    print(&script)
}

/// Prints a page of `program`, or writes all.
pub(crate) fn man(args: &ManArgs, mut program: Command) -> Outcome<()> {
    program.build();
    if let Some(directory) = &args.dir {
        let wrong =
            |error| Failure::doing(format!("cannot write to {}", directory.display()), error);
        std::fs::create_dir_all(directory).map_err(wrong)?;
        return clap_mangen::generate_to(program, directory).map_err(wrong);
    }
    let mut command = &program;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            let known = command.get_subcommands().filter(|known| !known.is_hide_set());
            let known = known.map(Command::get_name).collect::<Vec<_>>().join(", ");
            let whole = args.command.join(" ");
            Failure::CannotRun(format!(
                "there is no command `{whole}`; expected one of {known}, found `{name}`"
            ))
        })?;
    }
    let mut page = Vec::new();
    Man::new(command.clone())
        .render(&mut page)
        .map_err(|error| Failure::doing("cannot make the page", error))?;
    print(&page)
}

fn print(text: &[u8]) -> Outcome<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text).and_then(|()| output.flush()).map_err(Failure::not_written)
}
