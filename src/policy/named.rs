//! The arguments and values of variables that a policy names, so that a log may contain them. Others may be
//! secret.

use std::ffi::{OsStr, OsString};

use super::{Acquisition, Placeholder, Policy, Selectors};

impl Policy {
    /// For each argument, whether a rule names it, by itself or as a number of slots.
    pub fn named_arguments(&self, arguments: &[OsString]) -> Vec<bool> {
        let mut named = vec![false; arguments.len()];
        let selectors = self.all_selectors().filter_map(|selectors| selectors.arguments.as_ref());
        selectors.for_each(|selector| selector.mark_named(arguments, &mut named));
        let terms = self.rules.iter().flat_map(|rule| &rule.acquire).flat_map(Acquisition::terms);
        for from in terms.filter_map(|terms| terms.slots_from.as_ref()) {
            from.after.iter().for_each(|name| mark_number(name, arguments, &mut named));
        }
        for placeholder in self.placeholders() {
            match placeholder {
                Placeholder::Argument(number) => {
                    if let Some(named) = named.get_mut(number - 1) {
                        *named = true;
                    }
                }
                Placeholder::Arguments => named.fill(true),
                _ => {}
            }
        }
        named
    }

    /// Whether a rule names this value of a variable.
    pub fn names_value(&self, variable: &str, value: &OsStr) -> bool {
        let mut selectors = self.all_selectors().filter_map(|selectors| selectors.environment.as_ref());
        selectors.any(|selector| selector.names(variable, value))
            || self
                .placeholders()
                .any(|placeholder| *placeholder == Placeholder::Environment(variable.into()))
    }

    /// All users can read the values in names of lock files.
    fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.repositories.iter().flat_map(|repository| repository.path.placeholders())
    }

    fn all_selectors(&self) -> impl Iterator<Item = &Selectors> {
        self.rules.iter().flat_map(|rule| std::iter::once(&rule.selectors).chain(&rule.except))
    }
}

/// Marks the option for the number of slots, and the number after it.
fn mark_number(option: &str, arguments: &[OsString], named: &mut [bool]) {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    for (place, argument) in arguments.iter().enumerate() {
        let Some(rest) = argument.to_str().and_then(|text| text.strip_prefix(option)) else { continue };
        let next = arguments.get(place + 1).and_then(|next| next.to_str());
        if rest.is_empty() {
            named[place] = true;
            if next.is_some_and(is_number) {
                named[place + 1] = true;
            }
        } else if is_number(rest.strip_prefix('=').unwrap_or(rest)) {
            named[place] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [repository.a]
        limit = 9
        [repository.j]
        per = "{job}"
        limit = 1
        [[rule]]
        arguments = ["-batch", ["-lic", "*"], "--mode=*"]
        acquire = [{ repository = "a", slots_from = { after = "-np" } }]
        [[rule]]
        arguments = [["-job", "{job}"]]
        acquire = ["j"]
        [[rule]]
        environment = { PROJECT = ["apollo*", "mercury"], TOKEN = true, HOST = ["*"] }
        acquire = ["a"]
    "#;

    fn policy() -> Policy {
        Policy::of_text("/p.toml", POLICY).unwrap_or_else(|faults| panic!("{faults}"))
    }

    #[track_caller]
    fn named(arguments: &str, expected: &str) {
        let arguments: Vec<OsString> = arguments.split(' ').map(OsString::from).collect();
        let named = policy().named_arguments(&arguments);
        let told = arguments.iter().zip(named).map(|(argument, is_named)| {
            if is_named { argument.to_string_lossy().into_owned() } else { "_".to_owned() }
        });
        assert_eq!(told.collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn an_argument_is_named_by_what_is_said_of_it() {
        named("-batch password", "-batch _");
        named("-lic secret x", "-lic _ _");
        named("--mode=fast -np 8 9 -np=4", "--mode=fast -np 8 _ -np=4");
        named("-job alpha -job beta", "-job alpha _ _");
        named("-np secret", "-np _");
        named("-np 8x -np8x", "-np _ _");
    }

    #[test]
    fn a_value_is_named_by_a_pattern_that_says_something_of_it() {
        let names = |variable: &str, value: &str| policy().names_value(variable, OsStr::new(value));
        assert!(names("PROJECT", "apollo-2") && names("PROJECT", "mercury"));
        assert!(!names("PROJECT", "gemini") && !names("TOKEN", "x") && !names("HOST", "x"));
    }

    /// A policy names the commands of its rules and those with a program, but no paths and no patterns.
    #[test]
    fn a_command_is_named_by_its_name() {
        let policy = r#"
            [command.comsol]
            exec = "/opt/comsol"
            [[rule]]
            commands = ["matlab", "/opt/x/mex", "m*"]
            action = "deny"
            [[rule]]
            commands = ["matlab", "ansys"]
            action = "deny"
        "#;
        let policy = Policy::of_text("/p.toml", policy).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(policy.command_names().into_iter().collect::<Vec<_>>(), ["ansys", "comsol", "matlab"]);
        assert_eq!(policy.executable(OsStr::new("comsol")), Some(std::path::Path::new("/opt/comsol")));
        assert_eq!(policy.executable(OsStr::new("matlab")), None);
    }

    /// A pattern for one variable says nothing of another one.
    #[test]
    fn a_value_is_not_named_by_the_pattern_of_another_variable() {
        let names = |variable: &str| policy().names_value(variable, OsStr::new("apollo-2"));
        assert!(names("PROJECT") && !names("TOKEN") && !names("HOST") && !names("PASSWORD"));
    }

    /// All users can read the names of lock files, so what is in them is named. An argument that only a star
    /// matches is not, nor one of any number of arguments.
    #[test]
    fn what_is_in_the_name_of_a_lock_file_is_named() {
        let policy = r#"
            [repository.a]
            path = "{env.PROJECT}/{arg3}.lock"
            limit = 1
            [[rule]]
            arguments = { exactly = ["run", "*", "**", "-q"] }
            acquire = ["a"]
        "#;
        let policy = Policy::of_text("/p.toml", policy).unwrap_or_else(|faults| panic!("{faults}"));
        let arguments = ["run", "secret", "job", "password", "-q"].map(OsString::from);
        assert_eq!(policy.named_arguments(&arguments), [true, false, true, false, true]);
        let names = |variable: &str| policy.names_value(variable, OsStr::new("gemini"));
        assert!(names("PROJECT") && !names("TOKEN"));
    }
}
