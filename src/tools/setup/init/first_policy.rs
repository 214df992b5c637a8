//! The text of a first policy: comments and an example to start from, and a limit for each command that was
//! named.

use std::fmt::Write as _;

use crate::text::{error::Error, escape::visible, exit_status::ExitStatus};

/// The system's, which the package installs too.
const SYSTEM: &str = include_str!("../../../../packaging/policy.toml");

/// A user's own.
const OWN: &str = include_str!("own.toml");

/// What stands in both of them, and is not true where a command was named.
const NOTHING_YET: &str = "As it stands, nothing is limited. ";

/// Behind this line stands what is in force.
const VERSION: &str = "version = 1\n";

/// A policy to begin with.
pub(super) struct FirstPolicy {
    commands: Vec<String>,
    limit: u32,
}

impl FirstPolicy {
    /// A policy that limits these commands, each to so many at once.
    pub(super) fn new(commands: &[String], limit: u32) -> Result<Self, Error> {
        for (index, command) in commands.iter().enumerate() {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if command.is_empty() || command.starts_with(['.', '-']) || !command.chars().all(is_plain) {
                let text = format!("\"{}\" is no plain name of a command", visible(command));
                return Err(Error::new(ExitStatus::Usage, text).advise(
                    "Letters, digits, \".\", \"_\" and \"-\" are. A policy can do more: write it into the file."
                        .to_owned(),
                ));
            }
            if commands[..index].contains(command) {
                return Err(Error::new(ExitStatus::Usage, format!("\"{command}\" is named twice")));
            }
        }
        Ok(Self { commands: commands.to_vec(), limit })
    }

    /// Its repositories: one for each command, of its name.
    pub(super) fn repositories(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(String::as_str)
    }

    /// For everybody.
    pub(super) fn for_the_system(&self) -> String {
        self.within(SYSTEM)
    }

    pub(super) fn for_a_user(&self) -> String {
        self.within(OWN)
    }

    fn within(&self, text: &str) -> String {
        if self.commands.is_empty() {
            return text.to_owned();
        }
        let mut rules = VERSION.to_owned();
        let at_once =
            if self.limit == 1 { "one at a time".to_owned() } else { format!("{} at once", self.limit) };
        for command in &self.commands {
            let key = if command.contains('.') { format!("\"{command}\"") } else { command.clone() };
            let _ = write!(
                rules,
                "\n[repository.{key}]\nlimit = {}\n\n[[rule]]\nname     = \"{command}, {at_once}\"\n\
                 commands = [\"{command}\"]\nacquire  = [\"{command}\"]\n",
                self.limit
            );
        }
        text.replace(NOTHING_YET, "").replace(VERSION, &rules)
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::setup::init::first_policy::*;

    #[test]
    fn both_texts_have_the_places_where_something_is_put() {
        for text in [SYSTEM, OWN] {
            assert_eq!((text.matches(NOTHING_YET).count(), text.matches(VERSION).count()), (1, 1), "{text}");
        }
    }

    #[track_caller]
    fn case(command: &str, is_fine: bool) {
        assert_eq!(FirstPolicy::new(&[command.to_owned()], 1).is_ok(), is_fine, "{command:?}");
    }

    #[test]
    fn only_plain_names_become_repositories() {
        case("matlab", true);
        case("clang++", false);
        case("g.5_x-y", true);
        case("../x", false);
        case(".hidden", false);
        case("a\"b", false);
        case("", false);
        assert!(FirstPolicy::new(&["a".to_owned(), "a".to_owned()], 1).is_err());
    }
}
