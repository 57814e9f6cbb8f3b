//! `cargo x kill`: a real server under load, ended with SIGKILL round after round, and every key
//! compared with what the level of durability promises; then the same with ordered tables, which
//! no server has: a test of the crate `host` kills its own child.
//!
//! A *life* is one store that sees up to [`ROUNDS_OF_A_LIFE`] kills. All that is drawn for it comes
//! from its seed: the store's options, what is written, and after how many acknowledged writes the
//! server is killed. What the scheduler does is not drawn, so a replay repeats the load and not
//! every interleaving; the files as the kill left them are therefore kept where a check fails.

mod ledger;
mod life;
mod load;
mod service;

use std::path::PathBuf;

use entresol_random::SplitMix;

use crate::Verdict;
use crate::invocation::Invocation;
use crate::seeded::{Speed, Target};

/// A level of durability, as `entresol serve` takes it, and what a kill must leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) name: &'static str,
    pub(crate) promise: Promise,
}

/// What survives the end of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Every acknowledged write.
    Acknowledged,
    /// Every write acknowledged before a sync that was acknowledged.
    Saved,
}

const LEVELS: &[Level] = &[
    Level { name: "memory", promise: Promise::Saved },
    Level { name: "process", promise: Promise::Acknowledged },
    Level { name: "flushed", promise: Promise::Acknowledged },
    Level { name: "periodic:50ms", promise: Promise::Acknowledged },
    Level { name: "synced", promise: Promise::Acknowledged },
];

/// A hosted store with ordered tables, which takes the variables below.
const TABLES: Target = Target { package: "entresol-host", test: "killed" };
const TABLES_ROUNDS: &str = "ENTRESOL_KILLS";
const TABLES_LEVEL: &str = "ENTRESOL_LEVEL";

/// Kills at each level where nobody says otherwise.
pub(crate) const ROUNDS: u64 = 200;
const ROUNDS_OF_A_LIFE: u64 = 20;
const FIRST_SEED: u64 = 1;

/// What the arguments ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    rounds: u64,
    seed: u64,
    levels: Vec<Level>,
}

/// `cargo x kill [--rounds N] [--durability LEVEL] [--seed S]`.
pub(crate) fn perform(arguments: &[String]) -> Result<Verdict, String> {
    let wanted = Wanted::parse(arguments)?;
    Ok(if wanted.check()? { Verdict::Passed } else { Verdict::Failed })
}

/// So many rounds at every level; whether every promise was kept.
pub(crate) fn check(rounds: u64) -> Result<bool, String> {
    Wanted { rounds, seed: FIRST_SEED, levels: LEVELS.to_vec() }.check()
}

impl Wanted {
    fn parse(arguments: &[String]) -> Result<Wanted, String> {
        let mut wanted = Wanted { rounds: ROUNDS, seed: FIRST_SEED, levels: LEVELS.to_vec() };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or_else(|| format!("a value is missing after `{name}`"))?;
            let number = || {
                let refused = |_| format!("`{value}` after {name} is not a whole number");
                value.parse::<u64>().map_err(refused)
            };
            match name.as_str() {
                "--rounds" => wanted.rounds = number()?,
                "--seed" => wanted.seed = number()?,
                "--durability" => wanted.levels = vec![level_of(value)?],
                _ => {
                    return Err(format!(
                        "unexpected `{name}`; it takes --rounds N, --durability LEVEL, --seed S"
                    ));
                }
            }
        }
        Ok(wanted)
    }

    fn check(&self) -> Result<bool, String> {
        let program = build()?;
        let mut passed = true;
        for level in &self.levels {
            passed &= self.check_level(&program, *level)?;
        }
        Ok(passed && self.check_tables()?)
    }

    /// The same of ordered tables.
    fn check_tables(&self) -> Result<bool, String> {
        let built = TABLES.build(Speed::AsTests)?;
        for level in &self.levels {
            let rounds = (TABLES_ROUNDS, self.rounds.to_string());
            let variables = [rounds, (TABLES_LEVEL, level.name.to_string())];
            if !built.run_with(Some(self.seed), &variables)? {
                return Ok(false);
            }
        }
        let (levels, rounds) = (self.levels.len(), self.rounds);
        println!("passed  ordered tables: {rounds} kills at each of {levels} levels");
        Ok(true)
    }

    /// Lives with one seed after another, until so many rounds are over or one fails.
    fn check_level(&self, program: &std::path::Path, level: Level) -> Result<bool, String> {
        let mut figures = life::Figures::default();
        let mut left = self.rounds;
        for seed in self.seed.. {
            if left == 0 {
                break;
            }
            let rounds = left.min(ROUNDS_OF_A_LIFE);
            left -= rounds;
            let mut life = life::Life::begin(program, level, seed)?;
            if let Err(reason) = life.pass(rounds, &mut figures) {
                println!("FAILED  {:<13} {reason}", level.name);
                println!("{}", life.keep());
                let name = level.name;
                println!(
                    "replay with: cargo x kill --durability {name} --seed {seed} --rounds {rounds}"
                );
                return Ok(false);
            }
        }
        println!("passed  {:<13} {figures}", level.name);
        Ok(true)
    }
}

fn level_of(name: &str) -> Result<Level, String> {
    let is_it = |level: &&Level| {
        level.name == name || level.name.split(':').next().is_some_and(|short| short == name)
    };
    LEVELS.iter().find(is_it).copied().ok_or_else(|| {
        let known: Vec<&str> = LEVELS.iter().map(|level| level.name).collect();
        format!("there is no level `{name}` to kill at; known: {}", known.join(", "))
    })
}

/// Builds the program as the tests do and says where it is.
pub(crate) fn build() -> Result<PathBuf, String> {
    let build = Invocation::cargo("build --quiet --workspace --bin entresol");
    let messages = build.with_argument("--message-format=json").read()?;
    let executable = messages.lines().filter_map(crate::seeded::executable_in).next_back();
    executable.map(PathBuf::from).ok_or_else(|| "cargo built no program `entresol`".to_string())
}

/// The numbers of `seed` for one purpose.
fn stream(seed: u64, purpose: u64) -> SplitMix {
    let mut mixed = SplitMix::new(seed ^ purpose.wrapping_mul(0xD6E8_FEB8_6659_FD93));
    SplitMix::new(mixed.next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_choose_rounds_seed_and_level() {
        let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        let parsed = Wanted::parse(&words("--rounds 3 --durability periodic --seed 9")).unwrap();
        assert_eq!((parsed.rounds, parsed.seed), (3, 9));
        assert_eq!(parsed.levels, [level_of("periodic:50ms").unwrap()]);
        assert_eq!(Wanted::parse(&[]).unwrap().levels.len(), LEVELS.len());
        for wrong in ["--rounds", "--rounds x", "--durability never", "--speed 3"] {
            assert!(Wanted::parse(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
