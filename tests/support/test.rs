//! One command, and everything that must come of it.
//!
//! ```ignore
//! site.test()
//!     .user("games")
//!     .args(["run", "--", "matlab"])
//!     .stderr("rungate: matlab: not started: …\n")
//!     .status(75);
//! ```
//!
//! Standard output, standard error and the status are always compared: what a test does not mention must be
//! empty. The expected texts are patterns (`pattern.rs`), in which `$DIR` is the site's directory.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::Instant;

use nix::sys::signal::Signal;

use super::accounts::{Account, is_root};
use super::built;
use super::deadline::{DEADLINE, DEADLINE_OF_OTHERS, ends_within, is_over};
use super::outcome::{Ending, Outcome};
use super::over_agent;
use super::pattern::matches;
use super::running::Running;
use super::site::Site;
use super::unindent::unindent;

/// A command that has not been started yet.
#[derive(Clone)]
#[must_use = "nothing runs before status(), killed_by(), outcome() or spawn()"]
pub(crate) struct Test {
    site: Site,
    program: PathBuf,
    arguments: Vec<OsString>,
    user: Account,
    groups: Option<Vec<String>>,
    host: Option<String>,
    environment: Vec<(OsString, Option<OsString>)>,
    through: Vec<OsString>,
    directory: PathBuf,
    stdin: Vec<u8>,
    stdout: String,
    stderr: String,
}

impl Test {
    /// rungate, at a site of its own.
    pub(crate) fn new() -> Self {
        Self::at(&Site::new())
    }

    pub(super) fn at(site: &Site) -> Self {
        Self {
            site: site.clone(),
            program: site.rungate().to_owned(),
            arguments: Vec::new(),
            user: Account::own(),
            groups: None,
            host: None,
            environment: Vec::new(),
            through: Vec::new(),
            directory: site.path("work"),
            stdin: Vec::new(),
            stdout: String::new(),
            stderr: String::new(),
        }
    }

    /// Where it runs.
    pub(super) fn site(&self) -> &Site {
        &self.site
    }

    /// The agent, in the place of a launcher.
    pub(crate) fn rungate_agent(self) -> Self {
        self.program(built::program("rungate-agent"))
    }

    /// Another program than rungate.
    pub(crate) fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }

    /// Adds arguments. `$DIR` in them is the site's directory.
    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|argument| self.site.expand_bytes(argument.as_ref())));
        self
    }

    /// Runs as this user, with the groups the user database gives them unless [`Test::groups`] says
    /// otherwise. Only root can become somebody else: see `needs_root!`.
    #[track_caller]
    pub(crate) fn user(mut self, name: &str) -> Self {
        self.user = self.site.user(name);
        assert!(
            is_root() || self.user == Account::own(),
            "only root can become {name}: the test lacks needs_root!()"
        );
        self
    }

    /// The supplementary groups, instead of those in the group database.
    pub(crate) fn groups<'name>(mut self, names: impl IntoIterator<Item = &'name str>) -> Self {
        self.groups = Some(names.into_iter().map(str::to_owned).collect());
        self
    }

    /// Runs on a host of this name, which is this one nevertheless. Only root can have that.
    pub(crate) fn host(mut self, name: &str) -> Self {
        self.host = Some(name.to_owned());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let value = self.site.expand_bytes(value.as_ref());
        self.environment.push((name.into(), Some(value)));
        self
    }

    pub(crate) fn env_remove(mut self, name: &str) -> Self {
        self.environment.push((name.into(), None));
        self
    }

    /// Starts the command through others that become it, as in `env --ignore-signal=INT rungate …`.
    pub(crate) fn through<A: AsRef<OsStr>>(mut self, prefix: impl IntoIterator<Item = A>) -> Self {
        self.through.extend(prefix.into_iter().map(|word| self.site.expand_bytes(word.as_ref())));
        self
    }

    /// The working directory, below the site's.
    pub(crate) fn directory(mut self, path: &str) -> Self {
        self.directory = self.site.path(path);
        self
    }

    pub(crate) fn stdin(mut self, text: impl AsRef<[u8]>) -> Self {
        self.stdin = text.as_ref().into();
        self
    }

    /// What must be on standard output.
    pub(crate) fn stdout(mut self, pattern: &str) -> Self {
        self.stdout = self.site.expand(&over_agent::expected(&unindent(pattern)));
        self
    }

    /// What must be on standard error.
    pub(crate) fn stderr(mut self, pattern: &str) -> Self {
        self.stderr = self.site.expand(&over_agent::expected(&unindent(pattern)));
        self
    }

    /// Runs it: it must return this status, and must have printed what was said before.
    #[track_caller]
    pub(crate) fn status(&self, expected: i32) {
        self.compare(Ending::Status(expected));
    }

    /// Runs it: it must die of this signal, and must have printed what was said before.
    #[track_caller]
    pub(crate) fn killed_by(&self, signal: i32) {
        self.compare(Ending::Signal(signal));
    }

    #[track_caller]
    fn compare(&self, ending: Ending) {
        let is_right = |outcome: &Outcome| {
            outcome.ending == ending
                && matches(&self.stdout, &outcome.stdout)
                && matches(&self.stderr, &outcome.stderr)
        };
        let begun = Instant::now();
        let mut outcome = self.outcome();
        // Nothing was started, so that it can be tried again.
        while !is_right(&outcome) && outcome.lost_its_patience() && !is_over(begun, DEADLINE) {
            outcome = self.outcome();
        }
        assert!(
            is_right(&outcome),
            "{command:?}\n\
            --- expected: {ending:?}\n--- standard output\n{}--- standard error\n{}\
            --- actual: {:?}\n--- standard output\n{}--- standard error\n{}---",
            self.stdout,
            self.stderr,
            outcome.ending,
            outcome.stdout,
            outcome.stderr,
            command = self.arguments,
        );
    }

    /// Runs it to its end and compares nothing: for storms, where each start is judged together with the
    /// others.
    #[track_caller]
    pub(crate) fn outcome(&self) -> Outcome {
        let mut child = self.start();
        let stdin = child.stdin.take();
        let text = self.stdin.clone();
        let writer = thread::spawn(move || stdin.map(|mut pipe| pipe.write_all(&text)));
        // Read while it runs: one that has more to say than a pipe holds would never end.
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr) = (thread::spawn(|| whole(stdout)), thread::spawn(|| whole(stderr)));
        let deadline = if self.program == self.site.rungate() { DEADLINE } else { DEADLINE_OF_OTHERS };
        let is_late = !ends_within(deadline, &child);
        if is_late {
            child.kill().expect("kill a child");
        }
        let status = child.wait().expect("a child that ended can be reaped");
        let [stdout, stderr] =
            [stdout, stderr].map(|reader| reader.join().expect("the reader does not panic"));
        if is_late {
            let stderr = String::from_utf8_lossy(&stderr);
            panic!("still running after {deadline:?}: {:?}\n{stderr}", self.arguments);
        }
        let output = Output { status, stdout, stderr };
        // A program that did not read all of it broke the pipe, which is its right.
        let _ = writer.join().expect("the writer does not panic");
        Outcome::new(output)
    }

    /// Starts it in the background, and returns when its program runs: that must answer a line on its
    /// standard input with the same line, as cat(1) does.
    #[track_caller]
    pub(crate) fn spawn(&self) -> Running {
        let begun = Instant::now();
        loop {
            let mut running = self.background();
            match running.echoes() {
                Ok(()) => return running,
                // Nothing was started, so that it can be tried again.
                Err(outcome) if outcome.lost_its_patience() && !is_over(begun, DEADLINE) => {}
                Err(outcome) => running.did_not_run(&outcome),
            }
        }
    }

    /// Starts it in the background and returns at once.
    #[track_caller]
    pub(crate) fn background(&self) -> Running {
        Running::new(self.start(), format!("{:?}", self.arguments))
    }

    fn start(&self) -> Child {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// What is in front becomes the command by exec, so that the child's process id is the command's.
    fn command(&self) -> Command {
        let mut words = self.stage();
        if !words.is_empty() || signals_are_ignored() {
            words.insert(0, self.site.helper("stage").into());
            words.push("--".into());
        }
        words.extend(self.through.iter().cloned());
        words.push(self.program.clone().into());
        words.extend(self.arguments.iter().cloned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&self.directory).env_clear().envs(self.usual_environment());
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Where it runs, and as whom, in the words of `stage`.
    fn stage(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        for (directory, over) in self.site.own_directories() {
            words.extend(["--mount".into(), directory.into(), over.into()]);
        }
        words.extend(self.host.iter().flat_map(|host| ["--host".into(), host.into()]));
        // Nothing has to change for the account that runs the tests.
        if self.user != Account::own() || self.groups.is_some() {
            words.push("--user".into());
            words.extend([self.user.uid, self.user.gid].map(|number| number.to_string().into()));
        }
        words.extend(self.groups.iter().flat_map(|names| ["--groups".into(), names.join(",").into()]));
        words
    }

    fn usual_environment(&self) -> Vec<(&'static str, OsString)> {
        let mut environment = vec![
            ("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", self.site.path("bin").display()).into()),
            ("HOME", self.site.path("work").into()),
            ("USER", self.user.name.clone().into()),
            ("XDG_RUNTIME_DIR", self.site.runtime_directory(&self.user).into()),
            ("XDG_CONFIG_HOME", self.site.config_directory(&self.user).into()),
        ];
        let policy = self.site.path("policy.toml");
        if policy.exists() {
            environment.push(("RUNGATE_POLICY", policy.into()));
        }
        environment
    }
}

/// Whether the tests themselves ignore signals: a shell has its jobs in the background ignore SIGINT and
/// SIGQUIT, nohup(1) SIGHUP, and what they start would ignore them as well. SIGPIPE, which Rust ignores, it
/// releases by itself.
fn signals_are_ignored() -> bool {
    static IGNORED: LazyLock<bool> = LazyLock::new(|| {
        let status = fs::read_to_string("/proc/self/status").expect("the status of this process");
        let ignored =
            status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).expect("a set of signals");
        let ignored = u64::from_str_radix(ignored, 16).expect("a hexadecimal number");
        (1..32).any(|signal| signal != Signal::SIGPIPE as i32 && ignored >> (signal - 1) & 1 == 1)
    });
    *IGNORED
}

/// Everything that a program writes there.
fn whole(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    pipe.map(|mut pipe| pipe.read_to_end(&mut bytes).expect("a pipe can be read"));
    bytes
}

impl Site {
    /// [`Site::expand`] for what need not be UTF-8.
    fn expand_bytes(&self, text: &OsStr) -> OsString {
        match text.to_str() {
            Some(text) => self.expand(text).into(),
            None => OsString::from_vec(text.as_bytes().to_owned()),
        }
    }
}
