//! The ways by which people and programs reach commands, and where each of them searches: a shim works only
//! for those that search its directory before the program's. Shells are started with their usual environment
//! and queried; the rest is read from settings. Root's startup files affect only root, so for root the shells
//! run as a user without any.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{BufRead, BufReader},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::{
    launch::{Search, Shim},
    sys::{accounts, executable, process},
    text::Show,
};

/// How a user reaches a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// A login shell.
    Login(Shell),
    /// `ssh HOST COMMAND`, which the shell of the user starts.
    Ssh(Shell),
    /// `su USER -c COMMAND`.
    Su,
    /// A job of cron.
    Cron,
    Sudo,
    /// A session of the desktop, and what is started from its menus.
    Desktop,
    /// What the user's own systemd starts.
    UserUnit,
    /// What the system's systemd starts.
    Service,
}

/// A way, and where it searches commands.
#[derive(Clone, Debug)]
pub(crate) struct WayIn {
    pub(crate) way: Way,
    /// None if this is unknown, or visible only to root.
    search: Option<Search>,
}

/// The file that a name finds on one way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Reach {
    Shim,
    /// A program that is found before it.
    Other(PathBuf),
    /// Nothing: neither the shim nor a program is found.
    Nothing,
    /// Where this way searches is unknown.
    Unknown,
}

/// Every way that this host has, for the caller; for root, as it is for a user without startup files of their
/// own. None where a startup file asks for them, which these shells would read again; and, because the
/// variable is inherited, below a server that a startup file started.
pub(crate) fn ways_in() -> Option<Vec<WayIn>> {
    if env::var_os(ASKING).is_some() {
        return None;
    }
    let by_shells = installed().flat_map(|shell| [Way::Login(shell), Way::Ssh(shell)]);
    let others = [Way::Su, Way::Sudo, Way::Cron, Way::Desktop, Way::UserUnit, Way::Service];
    let ways = by_shells.chain(others.into_iter().filter(|way| is_there(*way)));
    thread::scope(|scope| {
        let asked: Vec<_> = ways.map(|way| (way, scope.spawn(move || search(way)))).collect();
        let answered = |(way, answer): (Way, thread::ScopedJoinHandle<'_, Option<Search>>)| WayIn {
            way,
            search: answer.join().unwrap_or(None),
        };
        Some(asked.into_iter().map(answered).collect())
    })
}

fn search(way: Way) -> Option<Search> {
    let path = match way {
        Way::Login(shell) => shell.path_after_login(),
        Way::Ssh(shell) => shell.path_over_ssh(),
        Way::Su | Way::Sudo | Way::Cron | Way::Desktop | Way::UserUnit | Way::Service => path(way),
    };
    path.map(Search::of)
}

impl Way {
    /// Its name in listings.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Login(shell) => format!("{}, logged in", shell.name()),
            Self::Ssh(shell) => format!("{}, ssh HOST COMMAND", shell.name()),
            Self::Su => "su USER -c COMMAND".to_owned(),
            Self::Cron => "cron".to_owned(),
            Self::Sudo => "sudo".to_owned(),
            Self::Desktop => "desktop session".to_owned(),
            Self::UserUnit => "systemd, user's units".to_owned(),
            Self::Service => "systemd, services".to_owned(),
        }
    }

    /// Its name in JSON.
    pub(crate) fn key(self) -> String {
        match self {
            Self::Login(shell) => format!("{}-login", shell.name()),
            Self::Ssh(shell) => format!("{}-ssh", shell.name()),
            Self::Su => "su".to_owned(),
            Self::Cron => "cron".to_owned(),
            Self::Sudo => "sudo".to_owned(),
            Self::Desktop => "desktop".to_owned(),
            Self::UserUnit => "user-unit".to_owned(),
            Self::Service => "service".to_owned(),
        }
    }

    /// Why it is unknown where this way searches.
    pub(crate) fn unknown(self) -> &'static str {
        match self {
            Self::Sudo if !accounts::is_root() => "only root can tell",
            Self::Login(_) | Self::Ssh(_) | Self::Desktop => "no answer in time",
            Self::Su | Self::Cron | Self::Sudo | Self::UserUnit | Self::Service => "cannot be told",
        }
    }

    /// The commands or lines by which this directory of shims is searched first.
    pub(crate) fn remedy(self, shims: &Path) -> String {
        of(self, shims, accounts::is_root())
    }
}

impl WayIn {
    /// The file that the name of a shim finds.
    pub(crate) fn reach(&self, shim: &Shim) -> Reach {
        let Some(search) = &self.search else { return Reach::Unknown };
        let mut candidates = search.entries().iter().map(|entry| entry.join(&shim.name));
        match candidates.find(|path| executable::check(path).is_ok()) {
            Some(found) if executable::identity(&found) == executable::identity(&shim.path) => Reach::Shim,
            Some(found) => Reach::Other(found),
            None => Reach::Nothing,
        }
    }
}

// The line, and its file, that makes a way search a directory of shims first. Root gets the system's files,
// other users their own, if they have one.

/// The rest of a search path that must contain all of it, if this host has none yet.
const USUAL: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What PAM reads at login.
const ENVIRONMENT: &str = "/etc/environment";

/// How the caller can put this directory first.
fn of(way: Way, shims: &Path, is_root: bool) -> String {
    let before = assigned(shims, "$PATH");
    let whole = || assigned(shims, USUAL);
    match way {
        Way::Login(shell) | Way::Ssh(shell @ (Shell::Zsh | Shell::Fish | Shell::Tcsh)) => {
            of_shell(shell, shims, is_root)
        }
        // Debian's ends early in non-interactive shells.
        Way::Ssh(Shell::Bash) if !is_root => prepend(&before, "~/.bashrc"),
        Way::Ssh(Shell::Sh | Shell::Bash) | Way::Su => for_root(is_root, in_environment(shims)),
        Way::Desktop if is_root => in_environment(shims),
        Way::Desktop => append(&before, "~/.xsessionrc"),
        Way::UserUnit if is_root => append(&before, "/etc/environment.d/99-rungate.conf"),
        Way::UserUnit => append(&before, "~/.config/environment.d/99-rungate.conf"),
        Way::Service => format!("in the unit: ExecStart={}", quoted(&shims.join("NAME").shown().to_string())),
        Way::Cron if is_root => format!("on top of each crontab: {}", whole()),
        Way::Cron => format!("crontab -e, and on top: {}", whole()),
        // Only root can read the present value, which the line replaces.
        Way::Sudo if !is_root => "as root, rungate shim list prints the line".to_owned(),
        Way::Sudo => {
            let rest = rest_of(sudo_path(), shims);
            let line = format!("Defaults secure_path=\"{}:{rest}\"", shims.shown());
            let file = "/etc/sudoers.d/rungate";
            format!("{} && chmod 0440 {file}", append(&line, file))
        }
    }
}

/// An assignment for shells and for files of settings.
fn assigned(shims: &Path, rest: &str) -> String {
    let shims = shims.shown().to_string();
    if is_plain(&shims) { format!("PATH={shims}:{rest}") } else { format!("PATH=\"{shims}:{rest}\"") }
}

/// A word of a startup file or of a setting.
fn quoted(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { format!("\"{text}\"") }
}

fn is_plain(text: &str) -> bool {
    text.chars().all(|character| character.is_alphanumeric() || "+,-./:=@_".contains(character))
}

/// The present value of a setting that is replaced, without the shims and without empty entries, which mean
/// the current directory.
fn rest_of(path: Option<OsString>, shims: &Path) -> String {
    let path = path.unwrap_or_default();
    let entries = path.as_bytes().split(|byte| *byte == b':').map(OsStr::from_bytes);
    let entries = entries.filter(|entry| !entry.is_empty() && *entry != shims);
    let rest = entries.map(|entry| entry.shown().to_string()).collect::<Vec<_>>().join(":");
    if rest.is_empty() { USUAL.to_owned() } else { rest }
}

/// A `PATH` that it has already keeps its place; a later line would replace it.
fn in_environment(shims: &Path) -> String {
    let text = fs::read_to_string(ENVIRONMENT).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("PATH=")).collect();
    let rest = rest_of(of_pam(), shims);
    let is_plain = || of_pam().is_some_and(|path| path == *rest) && is_plain(&shims.shown().to_string());
    match lines.as_slice() {
        [line] if line.starts_with("PATH=") && !line.contains('\'') && is_plain() => {
            format!("sed -i --follow-symlinks 's|^PATH=\"\\?|&{}:|' {ENVIRONMENT}", shims.shown())
        }
        _ => append(&assigned(shims, &rest), ENVIRONMENT),
    }
}

/// The startup file of each shell; for sh and bash, that of login shells.
fn of_shell(shell: Shell, shims: &Path, is_root: bool) -> String {
    let before = assigned(shims, "$PATH");
    let shims = quoted(&shims.shown().to_string());
    let (line, system, own) = match shell {
        Shell::Sh => (before, "/etc/profile", "~/.profile"),
        Shell::Bash => (before, "/etc/profile", first(&["~/.bash_profile", "~/.bash_login"], "~/.profile")),
        Shell::Zsh => (
            format!("path=({shims} ${{path:#{shims}}})"),
            if Path::new("/etc/zsh").is_dir() { "/etc/zsh/zshenv" } else { "/etc/zshenv" },
            "~/.zshenv",
        ),
        Shell::Fish => (
            format!("set -gxp PATH {shims}"),
            "/etc/fish/conf.d/rungate.fish",
            "~/.config/fish/conf.d/rungate.fish",
        ),
        Shell::Tcsh => {
            (format!("set path = ({shims} $path:q)"), "/etc/csh.cshrc", first(&["~/.tcshrc"], "~/.cshrc"))
        }
    };
    append(&line, if is_root { system } else { own })
}

/// The file that a shell reads of several: the first that exists.
fn first(files: &[&'static str], otherwise: &'static str) -> &'static str {
    files.iter().find(|file| in_home(file).exists()).copied().unwrap_or(otherwise)
}

/// The path of a file that may begin with `~/`.
fn in_home(file: &str) -> PathBuf {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    file.strip_prefix("~/").map_or_else(|| PathBuf::from(file), |name| home.join(name))
}

/// sed writes another file first, so that a full disk loses nothing, and keeps the mode. It inserts nothing
/// into an empty file.
fn prepend(line: &str, file: &str) -> String {
    if fs::metadata(in_home(file)).map_or(0, |status| status.len()) == 0 {
        return append(line, file);
    }
    format!("sed -i --follow-symlinks {} {file}", in_quotes(&format!("1i {line}")))
}

fn append(line: &str, file: &str) -> String {
    // Directories that may not exist yet.
    let directory = ["environment.d", "conf.d"].iter().find_map(|part| {
        let (directory, _) = file.rsplit_once('/')?;
        directory.ends_with(part).then(|| format!("mkdir -p {directory} && "))
    });
    // The last line may have no end.
    let is_open = fs::read(in_home(file)).is_ok_and(|text| text.last().is_some_and(|byte| *byte != b'\n'));
    let print = if is_open { "printf '\\n%s\\n'" } else { "echo" };
    format!("{}{print} {} >>{file}", directory.unwrap_or_default(), in_quotes(line))
}

/// A word for a shell.
fn in_quotes(line: &str) -> String {
    format!("'{}'", line.replace('\'', "'\\''"))
}

fn for_root(is_root: bool, remedy: String) -> String {
    if is_root { remedy } else { format!("as root: {remedy}") }
}

// The shells of this host, each with its `PATH`: started as in real use, it reads its startup files and
// prints it.

/// A common shell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shell {
    Sh,
    Bash,
    Zsh,
    Fish,
    Tcsh,
}

/// Those that this host has.
fn installed() -> impl Iterator<Item = Shell> {
    let all = [Shell::Sh, Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Tcsh];
    all.into_iter().filter(|shell| shell.program().is_some())
}

impl Shell {
    fn name(self) -> &'static str {
        match self {
            Self::Sh => "sh",
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Tcsh => "tcsh",
        }
    }

    fn program(self) -> Option<PathBuf> {
        let places = ["/bin", "/usr/bin", "/usr/local/bin"];
        places.iter().map(|place| Path::new(place).join(self.name())).find(|path| path.exists())
    }

    /// The search path at login.
    fn path_after_login(self) -> Option<OsString> {
        let mut command = self.command(&login_path())?;
        // The dash marks a login shell for all of them; tcsh accepts no other option with -l.
        answer(command.arg0(format!("-{}", self.name())), MARK)
    }

    /// The search path if sshd starts it for one command.
    fn path_over_ssh(self) -> Option<OsString> {
        let mut command = self.command(&ssh_path())?;
        // With these, bash reads the startup files of interactive shells.
        command.env("SSH_CLIENT", "127.0.0.1 1 22").env("SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 22");
        answer(&mut command, MARK)
    }

    fn command(self, path: &OsStr) -> Option<Command> {
        let mut command = prepared(&self.program()?, path);
        command.args(["-c", QUESTION]);
        Some(command)
    }
}

// The settings of this host for sessions without a shell, and for shells before their startup files: from the
// files of login, PAM, cron, sudo, the desktop and systemd.

/// The PATH of Debian's login.
const LOGIN: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games";

/// The PATH of Debian's sshd.
const SSH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/games";

/// The PATH that cron gives to its jobs.
const CRON: &str = "/usr/bin:/bin";

/// The PATH of systemd's services.
const SYSTEMD: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";

const GENERATOR: &str = "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator";

/// Runs the files that the X session's shell reads from packages, but only those about shims.
const SNIPPETS: &str = r#"for part in /etc/X11/Xsession.d/*rungate*; do [ ! -r "$part" ] || . "$part"; done"#;

/// Whether this host has such a way.
fn is_there(way: Way) -> bool {
    let places: &[&str] = match way {
        Way::Login(_) | Way::Ssh(_) => return true,
        Way::Su => &["/bin/su"],
        Way::Cron => &["/usr/sbin/cron", "/usr/sbin/crond"],
        Way::Sudo => &["/usr/bin/sudo"],
        Way::Desktop => &["/etc/X11/Xsession", "/usr/share/xsessions", "/usr/share/wayland-sessions"],
        Way::UserUnit => &[GENERATOR],
        Way::Service => &["/run/systemd/system"],
    };
    places.iter().any(|place| Path::new(place).exists())
}

/// The `PATH` on a way without a shell.
fn path(way: Way) -> Option<OsString> {
    match way {
        Way::Login(_) | Way::Ssh(_) => None,
        // su keeps the PATH of its caller.
        Way::Su => of_pam().or_else(|| env::var_os("PATH")),
        Way::Cron => Some(cron_path()),
        Way::Sudo => sudo_path(),
        Way::Desktop => desktop_path(),
        Way::UserUnit => user_unit_path(),
        Way::Service => Some(said("systemctl", &["show-environment"], b"PATH=").unwrap_or(SYSTEMD.into())),
    }
}

/// The result of a login shell.
fn login_path() -> OsString {
    let set = of_pam().or_else(|| in_file("/etc/login.defs", "ENV_PATH"));
    set.unwrap_or_else(|| LOGIN.into())
}

/// The result of a shell that sshd starts.
fn ssh_path() -> OsString {
    of_pam().unwrap_or_else(|| SSH.into())
}

/// The PATH that PAM sets at login.
fn of_pam() -> Option<OsString> {
    in_file(ENVIRONMENT, "PATH")
}

fn cron_path() -> OsString {
    let own = || said("crontab", &["-l"], b"PATH=").filter(|_| !accounts::is_root());
    let system = || in_file("/etc/crontab", "PATH").filter(|_| accounts::is_root());
    own().or_else(system).unwrap_or_else(|| CRON.into())
}

/// sudo shows it only to root; other callers must give a password, or are reported.
fn sudo_path() -> Option<OsString> {
    let is_root = accounts::is_root();
    is_root.then(|| said("sudo", &["-V"], b"Value to override user's $PATH with: "))?
}

/// In a session it is the present one; otherwise the one with which a session will begin.
fn desktop_path() -> Option<OsString> {
    let is_root = accounts::is_root();
    // Root became root in the session of another user.
    if !is_root && ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some()) {
        return env::var_os("PATH");
    }
    let mut session = prepared(Path::new("/bin/sh"), &login_path());
    let path = answer(session.args(["-c", &format!("{SNIPPETS}; {QUESTION}")]), MARK)?;
    // This file may start any program, so it is only read, not executed.
    let own = env::var_os("HOME").map(|home| Path::new(&home).join(".xsessionrc"));
    let set = own.filter(|_| !is_root).and_then(|own| in_file(own, "PATH"));
    Some(set.map_or(path.clone(), |set| with_rest(&set, &path)))
}

/// A search path that refers to the previous one.
fn with_rest(path: &OsStr, before: &OsStr) -> OsString {
    let entries = path.as_bytes().split(|byte| *byte == b':');
    let entries = entries.map(|entry| match entry {
        b"$PATH" | b"${PATH}" => before.as_bytes(),
        entry => entry,
    });
    OsString::from_vec(entries.collect::<Vec<_>>().join(&b':'))
}

/// The PATH of the user's own systemd, or the one that it would have.
fn user_unit_path() -> Option<OsString> {
    let running = || said("systemctl", &["--user", "show-environment"], b"PATH=");
    let mut generator = prepared(Path::new(GENERATOR), OsStr::new(SYSTEMD));
    let generated = || answer(&mut generator, b"PATH=");
    (!accounts::is_root()).then(running).flatten().or_else(generated).or_else(|| Some(SYSTEMD.into()))
}

/// The output of a program after these words on a line.
fn said(program: &str, words: &[&str], before: &'static [u8]) -> Option<OsString> {
    answer(Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()), before)
}

/// The value of a variable in a file of the system: `PATH=a:b`, `PATH="a:b"` or `ENV_PATH PATH=a:b`. The last
/// one counts.
fn in_file(file: impl AsRef<Path>, name: &str) -> Option<OsString> {
    let text = fs::read(file).ok()?;
    let value = |line: &[u8]| {
        let line = line.trim_ascii();
        let rest = line.strip_prefix(b"export ").unwrap_or(line).strip_prefix(name.as_bytes())?;
        let rest = rest.trim_ascii_start();
        let rest = rest.strip_prefix(b"PATH").unwrap_or(rest).trim_ascii_start();
        Some(unquoted(rest.strip_prefix(b"=")?.trim_ascii()).to_owned())
    };
    text.split(|byte| *byte == b'\n').filter_map(value).next_back().map(OsString::from_vec)
}

fn unquoted(text: &[u8]) -> &[u8] {
    let between = |quote: &[u8; 1]| text.strip_prefix(quote)?.strip_suffix(quote);
    between(b"\"").or_else(|| between(b"'")).unwrap_or(text)
}

// A question to a program, mostly a shell. Other output of its startup files is ignored, and one that does
// not answer in time is killed, with what it has started.

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Set for these programs: what they start asks no others.
const ASKING: &str = "RUNGATE_WAYS";

/// What is printed there instead of the ways.
pub(crate) const NOT_ASKED: &str = "not asked: RUNGATE_WAYS is set; unset it";

/// The beginning of the line with the answer.
const MARK: &[u8] = b"rungate finds PATH=";

/// The question, as each of these shells understands it.
const QUESTION: &str = r#"printf '\nrungate finds PATH=%s\n' "$PATH""#;

/// A user and a group that own no files.
const NOBODY: u32 = 65_534;

/// A program that starts as in a new session of the caller; for root, as in one of a user without startup
/// files.
fn prepared(program: &Path, path: &OsStr) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", path).env("TERM", "dumb").stdin(Stdio::null()).stderr(Stdio::null());
    if accounts::is_root() {
        command.uid(NOBODY).gid(NOBODY).env("HOME", "/nonexistent").env("USER", "nobody");
    } else {
        let kept = ["HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "ZDOTDIR"];
        command.envs(kept.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    }
    command.current_dir("/");
    command
}

/// The rest of the line that begins with these bytes, if it comes in time.
fn answer(program: &mut Command, before: &'static [u8]) -> Option<OsString> {
    let program = program.env(ASKING, "1").stdout(Stdio::piped());
    let mut child = process::without_terminal(program).spawn().ok()?;
    let output = child.stdout.take()?;
    let (tell, told) = mpsc::channel();
    // A process that left the group may keep the pipe open for ever, so this thread is not joined.
    thread::spawn(move || {
        let mut lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
        let found = lines.find_map(|line| Some(unquoted(line.strip_prefix(before)?).to_owned()));
        let _ = tell.send(found);
    });
    let found = told.recv_timeout(PATIENCE).ok().flatten();
    process::kill_group_of_child(i32::try_from(child.id()).unwrap_or_default());
    let _ = child.wait();
    found.map(OsString::from_vec)
}
