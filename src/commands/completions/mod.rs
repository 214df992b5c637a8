//! `rungate completions`: the lines that teach a shell to ask rungate itself how a command line goes on. What
//! it is then told comes from the definition of the command line and from the policy (`completer`), so that
//! the lines never change.

pub(super) mod completer;

use clap_complete::env::Shells;

use crate::{
    cli::CompletionsArguments,
    commands::{completions::completer::VARIABLE, shared::print},
    error::Error,
    exit_status::ExitStatus,
};

/// The name that is completed, and that answers.
const NAME: &str = "rungate";

/// A function of zsh's own kind completes when it is called; the lines alone would only define it, the first
/// time.
const AUTOLOADED: &str = "\
if [[ \"${funcstack[1]}\" == _rungate ]]; then
    _clap_dynamic_completer_rungate \"$@\"
fi
";

/// Prints the lines for a shell, whose name is one of those of the command line.
pub(super) fn run(arguments: &CompletionsArguments) -> Result<u8, Error> {
    let shell = arguments.shell.as_str();
    let shells = Shells::builtins();
    let mut script = Vec::new();
    let written = shells
        .completer(shell)
        .map(|completer| completer.write_registration(VARIABLE, NAME, NAME, NAME, &mut script));
    let (Some(Ok(())), Ok(text)) = (written, String::from_utf8(script)) else {
        return Err(Error::new(ExitStatus::System, format!("nothing is known of the shell {shell}")));
    };
    let text = text.trim().to_owned() + "\n";
    print(&if shell == "zsh" { text + AUTOLOADED } else { text })
}
