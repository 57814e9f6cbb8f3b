//! `cargo x library`: the C library installed under an empty root, and a C program that pkg-config
//! finds it for, once with the shared library and once with the static one.

use std::path::PathBuf;

use crate::Verdict;
use crate::invocation::Invocation;
use crate::report::{self, Report};
use crate::scratch::{Scratch, shown};

const SOURCE: &str = "crates/ffi/examples/quick_start.c";
const FLAGS: &str = "-std=c11 -Wall -Wextra -Werror";
const PREFIX: &str = "/usr";
/// What the program prints.
const PRINTED: &str = "hello from flash\nUlm\n";

/// `cargo x library`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    report::alone(arguments, check)
}

/// Installs the library, then builds and runs the program.
pub(crate) fn check(report: &mut Report) -> Result<(), String> {
    let scratch = Scratch::of("library");
    let place = scratch.path().to_path_buf();
    let installed = Installed { root: place.join("root"), place };
    let install = Invocation::new("scripts/install-library")
        .with_variable("PREFIX", PREFIX)
        .with_variable("DESTDIR", shown(&installed.root));
    if report.run("C library", &install)? {
        let repeat = "cargo x library";
        report.perform("C shared", repeat, &mut || installed.runs("shared", ""))?;
        report.perform("C static", repeat, &mut || installed.runs("static", "--static"))?;
    }
    Ok(())
}

/// A library under a root of its own.
struct Installed {
    place: PathBuf,
    root: PathBuf,
}

impl Installed {
    /// Whether the program prints what it should, linked in one of two ways.
    fn runs(&self, way: &str, asked: &str) -> Result<bool, String> {
        let libraries = self.root.join("usr/lib");
        let flags = Invocation::new(&format!("pkg-config --cflags --libs {asked} entresol"))
            .with_variable("PKG_CONFIG_SYSROOT_DIR", shown(&self.root))
            .with_variable("PKG_CONFIG_LIBDIR", shown(&libraries.join("pkgconfig")))
            .with_variable("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1")
            .with_variable("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1")
            .read()?;
        let flags = match asked {
            "" => flags,
            // The linker takes the shared one where both are there.
            _ => flags.replace("-lentresol_ffi", "-l:libentresol_ffi.a"),
        };
        let program = self.place.join(way);
        let mut compile = Invocation::new(&format!("cc {FLAGS} {SOURCE}"));
        for flag in flags.split_whitespace() {
            compile = compile.with_argument(flag);
        }
        let compiled = compile.with_argument("-o").with_argument(shown(&program)).run_quietly()?;
        if !compiled.passed {
            println!("{}", compiled.output);
            return Ok(false);
        }
        let data = self.place.join(format!("{way}.data"));
        let ran = Invocation::new(&shown(&program))
            .with_argument(shown(&data))
            .with_variable("LD_LIBRARY_PATH", shown(&libraries))
            .run_quietly()?;
        print!("{}", ran.output);
        Ok(ran.passed && ran.output == PRINTED)
    }
}
