//! Users out of a file: passwords, commands and keys.
//!
//! One user a line: `name password-hash commands… keys…`, for example
//! `reader $argon2id$… +@read -keys ~app:*`. The password hash is a PHC string of Argon2id, or
//! `nopass`. Commands are `+name`, `-name`, `+@group`, `-@group`, applied from left to right; keys
//! are `~pattern`. Passwords are compared on a thread of their own, for that takes milliseconds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{self, PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};

use crate::command::pattern;
use crate::command::spec::Spec;
use crate::command::table::{self};
use crate::config::ConfigError;
use crate::operations::PasswordMatch;

/// Longest password that is compared, bytes.
pub(crate) const PASSWORD_BYTES_MAX: usize = 512;

/// Someone who may use the server.
#[derive(Debug, Clone)]
pub(crate) struct User {
    /// The name.
    pub(crate) name: String,
    password: Option<String>,
    commands: Vec<bool>,
    patterns: Option<Vec<Vec<u8>>>,
    rules: String,
}

impl User {
    /// A user who may do everything, without a password.
    fn everything(name: &str) -> User {
        User {
            name: name.to_owned(),
            password: None,
            commands: vec![true; table::SPECS.len()],
            patterns: None,
            rules: "+@all ~*".to_owned(),
        }
    }

    /// The hash of the password; `None` if none is needed.
    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Whether the user may give `command`.
    pub(crate) fn may(&self, command: &Spec) -> bool {
        self.commands.get(command.id()).copied().unwrap_or(false)
    }

    /// Whether there are keys the user may not touch.
    pub(crate) fn is_restricted(&self) -> bool {
        self.patterns.is_some()
    }

    /// Whether the user may touch `key`.
    pub(crate) fn may_touch(&self, key: &[u8]) -> bool {
        let Some(patterns) = &self.patterns else {
            return true;
        };
        patterns.iter().any(|allowed| pattern::matches(allowed, key))
    }

    /// The user in a line as `ACL LIST` has it; the password hash stays here.
    pub(crate) fn described(&self) -> String {
        let password = if self.password.is_some() { "#hidden" } else { "nopass" };
        format!("user {} on {password} {}", self.name, self.rules)
    }

    fn parse(line: &str) -> Result<User, String> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let password = match words.next() {
            Some("nopass") => None,
            Some(hash) => {
                check_hash(hash)
                    .map_err(|error| format!("expected `nopass` or an Argon2 hash: {error}"))?;
                Some(hash.to_owned())
            }
            None => return Err("expected a password hash or `nopass` after the name".to_owned()),
        };
        let mut user = User { password, ..User::everything(&name) };
        user.commands.fill(false);
        let mut patterns = Vec::new();
        for rule in words.clone() {
            if let Some(keys) = rule.strip_prefix('~') {
                patterns.push(keys.as_bytes().to_vec());
            } else {
                user.apply(rule)?;
            }
        }
        user.patterns = (!patterns.iter().any(|keys| keys == b"*")).then_some(patterns);
        user.rules = words.collect::<Vec<_>>().join(" ");
        Ok(user)
    }

    /// Applies one rule on commands.
    fn apply(&mut self, rule: &str) -> Result<(), String> {
        let (allowed, what) = match (rule.strip_prefix('+'), rule.strip_prefix('-')) {
            (Some(what), _) => (true, what),
            (_, Some(what)) => (false, what),
            _ => return Err(format!("expected +command, -command or ~pattern, found `{rule}`")),
        };
        let matches: Vec<&Spec> = match what.strip_prefix('@') {
            Some("all") => table::SPECS.iter().collect(),
            Some(group) => table::SPECS.iter().filter(|spec| spec.is_in(group)).collect(),
            None => {
                let container = format!("{what}|");
                let named =
                    |spec: &&Spec| spec.name == what || spec.name.starts_with(container.as_str());
                table::SPECS.iter().filter(named).collect()
            }
        };
        if matches.is_empty() {
            return Err(format!("`{rule}` names no command and no group"));
        }
        matches.iter().for_each(|spec| self.commands[spec.id()] = allowed);
        Ok(())
    }
}

/// All users.
#[derive(Debug, Clone)]
pub(crate) struct Users {
    all: BTreeMap<String, Arc<User>>,
}

impl Users {
    /// One user, `default`, who may do everything without a password.
    pub(crate) fn open() -> Users {
        let default = Arc::new(User::everything("default"));
        Users { all: BTreeMap::from([("default".to_owned(), default)]) }
    }

    /// The users in the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Users, ConfigError> {
        let place = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let detail = format!(
                "{place} cannot be read: {error}; `entresol user add NAME` writes lines of such a \
                 file"
            );
            ConfigError::new("configuration", "users", detail)
        })?;
        Users::parse(&place, &text)
    }

    /// The users in the text of a file.
    pub(crate) fn parse(place: &str, text: &str) -> Result<Users, ConfigError> {
        let mut all = BTreeMap::new();
        // The mark that some programs begin a text with is no part of the first name.
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong =
                |detail| ConfigError::new(format!("{place} line {}", number + 1), "users", detail);
            let user = User::parse(line).map_err(wrong)?;
            let name = user.name.clone();
            if all.insert(name.clone(), Arc::new(user)).is_some() {
                return Err(wrong(format!("user `{name}` is there twice")));
            }
        }
        Ok(Users { all })
    }

    /// The user called `name`.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Arc<User>> {
        self.all.get(std::str::from_utf8(name).ok()?).cloned()
    }

    /// Who a client is before it says so: the default user, if that one needs no password.
    pub(crate) fn initial(&self) -> Option<Arc<User>> {
        self.all.get("default").filter(|user| user.password.is_none()).cloned()
    }

    /// All users by name.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.all.values()
    }

    /// Whether nobody gets in without a password.
    pub(crate) fn all_have_passwords(&self) -> bool {
        self.all.values().all(|user| user.password.is_some())
    }
}

/// The line of a users file for a new user who may do what `rules` say (`+@all ~*` for everything).
/// The password is hashed with Argon2id and a random salt.
///
/// # Errors
/// The rules or the name cannot be, or the password is longer than 512 bytes.
pub fn user_line(name: &str, password: &str, rules: &str) -> Result<String, ConfigError> {
    let wrong = |detail: String| ConfigError::new("user", name, detail);
    if name.is_empty() || name.contains(char::is_whitespace) || name.starts_with('#') {
        return Err(wrong("expected a name without spaces".to_owned()));
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(wrong(format!("a password has at most {PASSWORD_BYTES_MAX} bytes")));
    }
    let hash = argon2().hash_password(password.as_bytes());
    let hash = hash.map_err(|error| wrong(format!("cannot be hashed: {error}")))?;
    let line = format!("{name} {hash} {rules}");
    User::parse(&line).map_err(wrong)?;
    Ok(line)
}

/// Whether a password can be compared with `hash` at all.
fn check_hash(hash: &str) -> password_hash::Result<()> {
    let hash = PasswordHash::new(hash)?;
    Algorithm::new(hash.algorithm)?;
    Params::try_from(&hash)?;
    match (hash.salt, hash.hash) {
        (Some(_), Some(_)) => Ok(()),
        _ => Err(password_hash::Error::EncodingInvalid),
    }
}

/// Compares a password with its hash. Takes some ten milliseconds and 7 MiB.
pub(crate) fn verify(password: &[u8], hash: &str) -> PasswordMatch {
    let right =
        PasswordHash::new(hash).is_ok_and(|hash| argon2().verify_password(password, &hash).is_ok());
    if right { PasswordMatch::Right } else { PasswordMatch::Wrong }
}

/// The least of the settings that OWASP's password storage sheet recommends for Argon2id.
fn argon2() -> Argon2<'static> {
    let params = Params::new(7 << 10, 5, 1, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_line_lets_its_user_in_with_that_password_only() {
        let line = user_line("alice", "secret", "+@all ~*").unwrap();
        let users = Users::parse("test", &line).unwrap();
        let alice = users.find(b"alice").unwrap();
        assert_eq!(verify(b"secret", alice.password().unwrap()), PasswordMatch::Right);
        assert_eq!(verify(b"Secret", alice.password().unwrap()), PasswordMatch::Wrong);
        assert!(users.initial().is_none() && users.all_have_passwords());
    }

    /// Files of users outlive the library that hashes.
    #[test]
    fn a_line_written_by_an_earlier_build_lets_its_user_in() {
        let line = "ann $argon2id$v=19$m=7168,t=5,p=1$GPKqc9e9QQai9WMwJDz9uQ$\
                    AJh0QI6omShBUg9a5hoGVi3cAJ1R7VtdKzNxPULG6GE +@all ~*";
        let users = Users::parse("test", line).unwrap();
        let ann = users.find(b"ann").unwrap();
        assert_eq!(verify(b"an old password", ann.password().unwrap()), PasswordMatch::Right);
        assert_eq!(verify(b"an old passwore", ann.password().unwrap()), PasswordMatch::Wrong);
    }

    /// The first user had the mark in the name, and no password was right.
    #[test]
    fn a_mark_before_the_text_is_no_part_of_the_first_name() {
        let users = Users::parse("test", "\u{FEFF}bob nopass +@all ~*\n").unwrap();
        assert!(users.find(b"bob").is_some());
    }

    #[test]
    fn rules_are_applied_from_left_to_right() {
        let users = Users::parse("test", "bob nopass +@read -keys +set ~app:* ~b").unwrap();
        let bob = users.find(b"bob").unwrap();
        let may = |name: &str| bob.may(table::find(name.as_bytes()).unwrap());
        assert!(may("get") && may("set") && !may("keys") && !may("del"));
        assert!(bob.may_touch(b"app:1") && bob.may_touch(b"b") && !bob.may_touch(b"other"));
    }

    /// Who was to read some keys could close all clients' connections, and have everybody wait.
    #[test]
    fn who_reads_some_keys_by_the_rules_of_the_guide_disturbs_nobody() {
        let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/operating.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        let rules = guide.split('`').find(|code| code.starts_with("+@read ")).unwrap();
        let users = Users::parse("test", &format!("reader nopass {rules}")).unwrap();
        let reader = users.find(b"reader").unwrap();
        let may = |name: &str| reader.may(table::find(name.as_bytes()).unwrap());
        assert!(may("get") && may("hgetall") && may("ping") && may("client|setname"), "{rules}");
        for name in ["client|kill", "client|pause", "client|list", "set", "flushall", "config|set"]
        {
            assert!(!may(name), "{rules}: {name}");
        }
    }

    #[test]
    fn errors_name_file_and_line() {
        for (text, expected) in [
            ("\n# x\nbob", "f line 3: key `users`: expected a password hash or `nopass`"),
            ("bob plain +@all", "f line 1: key `users`: expected `nopass` or an Argon2 hash"),
            // With these the server started, and no password was ever right.
            (
                "bob $scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$\
                 nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E +@all",
                "f line 1: key `users`: expected `nopass` or an Argon2 hash",
            ),
            (
                "bob $argon2id$v=19$m=7168,t=5,p=1$c2FsdHNhbHQ +@all",
                "f line 1: key `users`: expected `nopass` or an Argon2 hash",
            ),
            ("bob nopass +@nothing", "f line 1: key `users`: `+@nothing` names no command"),
            ("bob nopass @read", "f line 1: key `users`: expected +command"),
            ("a nopass\na nopass", "f line 2: key `users`: user `a` is there twice"),
        ] {
            let error = Users::parse("f", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
