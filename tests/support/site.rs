//! A machine in small for one test: a directory with a policy, a place for repositories, programs and users'
//! folders.
//!
//! ```text
//! $DIR/policy.toml     what RUNGATE_POLICY names, once there is a policy
//! $DIR/repositories/   anybody may create files here, as in /run/rungate (1777)
//! $DIR/bin/            first in PATH
//! $DIR/shims/          links to rungate; not in PATH unless a test puts it there
//! $DIR/work/           where commands start (1777)
//! $DIR/run/UID/        XDG_RUNTIME_DIR of that user (0700)
//! $DIR/config/UID/     XDG_CONFIG_HOME of that user (0700)
//! $DIR/etc/            a small /etc, mounted over the real one when there is a system policy
//! ```
//!
//! In every text that a test hands over, and in every text that it expects, `$DIR` stands for the directory.

use std::fs::{self, File, Permissions, create_dir, hard_link, set_permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use nix::libc;
use tempfile::TempDir;

use super::accounts::{Account, is_root};
use super::built;
use super::deadline::eventually;
use super::held_slots::{HeldSlot, conflicting_lock, held_slots};
use super::over_agent;
use super::running::Running;
use super::test::Test;
use super::unindent::unindent;

/// A policy of one repository, `seats`, with this limit and these other keys, and of a rule with the same name
/// that takes a slot of it for these commands.
pub(crate) fn seats(limit: u32, keys: &str, commands: &[&str]) -> String {
    format!(
        "[repository.seats]\nlimit = {limit}\n{keys}\n\
        [[rule]]\nname = \"seats\"\ncommands = {commands:?}\nacquire = [\"seats\"]\n"
    )
}

/// A handle to one site. The directory goes with the last handle.
#[derive(Clone)]
pub(crate) struct Site(Arc<Directory>);

struct Directory {
    path: TempDir,
    rungate: PathBuf,
    programs: PathBuf,
}

impl Site {
    pub(crate) fn new() -> Self {
        let directory =
            tempfile::Builder::new().prefix("rungate-").tempdir_in(base()).expect("a temporary directory");
        let path = directory.path();
        set_mode(path, 0o755);
        for (name, mode) in
            [("repositories", 0o1777), ("bin", 0o755), ("work", 0o1777), ("run", 0o755), ("config", 0o755)]
        {
            create_dir(path.join(name)).expect("a new directory has room for more");
            set_mode(&path.join(name), mode);
        }
        let (rungate, programs) = programs_for_everyone(path);
        Self(Arc::new(Directory { path: directory, rungate, programs }))
    }

    /// A new site with this policy.
    pub(crate) fn with_policy(text: &str) -> Self {
        let site = Self::new();
        site.policy(text);
        site
    }

    /// A new site with the policy of [`seats`] and a program for each of the commands.
    pub(crate) fn with_seats(limit: u32, keys: &str, commands: &[&str]) -> Self {
        let site = Self::with_policy(&seats(limit, keys, commands));
        for command in commands {
            site.program(command);
        }
        site
    }

    /// Writes `$DIR/policy.toml`. A text that does not give a version gets three lines in front: the version,
    /// and `$DIR/repositories` as the directory of repositories, which are for everybody.
    pub(crate) fn policy(&self, text: &str) {
        if over_agent::is_on() {
            return self.policy_over_agent(&over_agent::kept_by_agent(&unindent(text)));
        }
        // In one step: nobody reads half of it.
        self.write("policy.new", &whole_policy(text));
        fs::rename(self.path("policy.new"), self.path("policy.toml")).expect("replace the policy");
    }

    /// Makes this text the system's policy, `/etc/rungate/policy.toml`, for every command of this site that
    /// follows. Only root can do that.
    pub(crate) fn system_policy(&self, text: &str) {
        if over_agent::is_on() {
            return self.policy_over_agent(&over_agent::kept_by_agent(&unindent(text)));
        }
        self.system_file("policy.toml", &whole_policy(text));
    }

    /// A host with a policy of the system's, a directory of its own over `/run`, and a user ann.
    pub(crate) fn of_system(policy: &str) -> Self {
        let site = Self::new();
        site.account("ann", &[]);
        site.directory_over_run();
        site.system_policy(policy);
        site
    }

    /// Writes a file below `/etc/rungate`, as the commands of this site see it.
    pub(crate) fn system_file(&self, name: &str, text: &str) {
        self.make_etc();
        let file = Path::new("etc/rungate").join(name);
        let directory = file.parent().expect("a file has a directory");
        fs::create_dir_all(self.path(directory)).expect("create etc/rungate");
        // In one step: nobody reads half of it.
        let new = directory.join(".new");
        self.write(&new, text);
        fs::rename(self.path(new), self.path(file)).expect("replace the file");
    }

    /// Adds a user to this site's `/etc`, a member of these groups, which are made if need be. Only root can
    /// mount that over the real one.
    pub(crate) fn account(&self, name: &str, groups: &[&str]) {
        self.make_etc();
        let uid = self.add(&format!("{name}:x:ID:ID::/:/bin/sh"), "passwd");
        fs::OpenOptions::new()
            .append(true)
            .open(self.path("etc/group"))
            .and_then(|mut file| writeln!(file, "{name}:x:{uid}:"))
            .expect("write etc/group");
        for group in groups {
            let file = self.path("etc/group");
            let text = fs::read_to_string(&file).expect("read etc/group");
            if !text.lines().any(|line| line.starts_with(&format!("{group}:"))) {
                self.add(&format!("{group}:x:ID:"), "group");
            }
            let text = fs::read_to_string(&file).expect("read etc/group");
            let with_member = |line: &str| match line.strip_prefix(&format!("{group}:")) {
                Some(rest) => format!("{group}:{rest}{}{name}\n", if rest.ends_with(':') { "" } else { "," }),
                None => format!("{line}\n"),
            };
            fs::write(&file, text.lines().map(with_member).collect::<String>()).expect("write etc/group");
        }
    }

    /// Appends a line with a number that no user and no group has yet.
    fn add(&self, line: &str, file: &str) -> u32 {
        let read =
            |file: &str| fs::read_to_string(self.path("etc").join(file)).expect("a database of the site");
        let taken = read("passwd") + &read("group");
        let id =
            (54_000..64_000).find(|id| !taken.contains(&format!(":{id}:"))).expect("a number that is free");
        let text = read(file) + &line.replace("ID", &id.to_string()) + "\n";
        fs::write(self.path("etc").join(file), text).expect("a database of the site");
        id
    }

    /// A user of this site, else of the machine.
    #[track_caller]
    pub(crate) fn user(&self, name: &str) -> Account {
        let passwd = fs::read_to_string(self.path("etc/passwd")).unwrap_or_default();
        let fields =
            passwd.lines().map(|line| line.split(':').collect::<Vec<&str>>()).find(|line| line[0] == name);
        let Some(fields) = fields else { return Account::named(name) };
        let number = |field: &str| field.parse().expect("ids are numbers");
        Account { name: name.to_owned(), uid: number(fields[2]), gid: number(fields[3]) }
    }

    fn make_etc(&self) {
        let etc = self.path("etc");
        if !etc.exists() {
            create_dir(&etc).expect("create etc");
            for name in ["passwd", "group", "nsswitch.conf", "ld.so.cache", "hosts", "hostname", "localtime"]
            {
                // A machine need not have each of them.
                let _ = fs::copy(Path::new("/etc").join(name), etc.join(name));
            }
            // A person of the machine may be called like one of this site.
            for name in ["passwd", "group"] {
                let text = fs::read_to_string(etc.join(name)).expect("a database of the machine");
                let lines = text.lines().filter(|line| is_of_system(line)).map(without_members);
                fs::write(etc.join(name), lines.collect::<String>()).expect("a database of the site");
            }
        }
    }

    /// Gives this site a time zone of the system's: a file in the form of tzfile(5).
    pub(crate) fn system_zone(&self, file: &[u8]) {
        self.make_etc();
        // The machine's may be one that only its owner can write.
        let _ = fs::remove_file(self.path("etc/localtime"));
        fs::write(self.path("etc/localtime"), file).expect("a zone");
    }

    /// Has commands of this site see a `/run` of their own, with the directory of the system's repositories.
    pub(crate) fn directory_over_run(&self) {
        let directory = self.path("system-run/rungate");
        fs::create_dir_all(&directory).expect("create system-run");
        set_mode(&directory, 0o1777);
    }

    /// The directories of this site that its commands see in the place of the machine's, and what they stand
    /// for.
    pub(super) fn own_directories(&self) -> Vec<(PathBuf, &'static str)> {
        let directories = [(self.path("etc"), "/etc"), (self.path("system-run"), "/run")];
        directories.into_iter().filter(|(path, _)| path.exists()).collect()
    }

    /// Writes the policy of that user's own, `$XDG_CONFIG_HOME/rungate/policy.toml`.
    pub(crate) fn own_policy(&self, user: &Account, text: &str) {
        let directory = self.config_directory(user).join("rungate");
        fs::create_dir_all(&directory).expect("create the user's configuration");
        let file = directory.join("policy.toml");
        self.write(&file, &whole_policy(text));
        for path in [&directory, &file] {
            chown(path, Some(user.uid), Some(user.gid)).expect("give the configuration to the user");
        }
    }

    /// Writes a file below the site, readable by everybody.
    pub(crate) fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.path(path);
        fs::write(&path, self.expand(&unindent(text)))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        set_mode(&path, 0o644);
    }

    /// Puts a shell script into `$DIR/bin`.
    pub(crate) fn script(&self, name: &str, text: &str) {
        write_by_another(&self.path("bin").join(name), self.expand(&unindent(text)));
    }

    /// Puts a program of that name into `$DIR/bin` that copies its standard input to its standard output: it
    /// runs as long as a test wants it to, and answers, so that a test knows that it runs.
    pub(crate) fn program(&self, name: &str) {
        self.copy_of("/bin/cat", name);
    }

    /// Puts a link to rungate with the name of a command into `$DIR/shims`.
    pub(crate) fn shim(&self, name: &str) {
        let directory = self.path("shims");
        if create_dir(&directory).is_ok() {
            set_mode(&directory, 0o755);
        }
        symlink(self.rungate(), directory.join(name)).expect("a new link");
    }

    /// Puts rungate into `$DIR/bin`, as it is installed.
    pub(crate) fn rungate_in_bin(&self) {
        for program in ["rungate", "rungate-tools"] {
            install(&self.rungate().with_file_name(program), &self.path("bin").join(program));
        }
    }

    /// Puts a program of the system into `$DIR/bin`, under this name.
    pub(crate) fn copy_of(&self, program: &str, name: &str) {
        install(Path::new(program), &self.path("bin").join(name));
    }

    /// Locks ranges of a repository, which is created if need be, for as long as the guard lives. The words
    /// are those of `tests/programs/holder.rs`. Somebody may have a mutex for a moment just then.
    #[track_caller]
    pub(crate) fn holder<'word>(
        &self,
        repository: &str,
        words: impl IntoIterator<Item = &'word str>,
    ) -> Running {
        let path = self.repository(repository);
        // To create what others have made in a directory for everybody is refused (fs.protected_regular).
        if !path.exists() {
            File::options().create(true).append(true).open(&path).expect("a new repository");
        }
        let words: Vec<&str> = words.into_iter().collect();
        eventually(&format!("{words:?} can be locked in {repository}"), || {
            let holder = self.test().program(self.helper("holder"));
            let mut running = holder.args([&path]).args(words.iter().copied()).background();
            (running.read_line() == "ready\n").then_some(running)
        })
    }

    /// A lock of anybody's on the bytes of a repository from `start` up to `end`.
    #[track_caller]
    pub(crate) fn lock_between(&self, repository: &str, start: i64, end: i64) -> Option<libc::flock> {
        let file = File::open(self.repository(repository)).expect("a repository");
        conflicting_lock(&file, start, end).expect("the kernel says who holds a lock")
    }

    /// A command of rungate at this site.
    pub(crate) fn test(&self) -> Test {
        Test::at(self)
    }

    /// A path below the site; an absolute one stays as it is.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.path.path().join(path)
    }

    /// A file in the directory of repositories.
    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        self.path("repositories").join(name)
    }

    /// Who holds which slots of a repository, as the kernel has it. There is nobody in a file that does not
    /// exist.
    #[track_caller]
    pub(crate) fn held(&self, repository: &str) -> Vec<HeldSlot> {
        if over_agent::is_on() {
            return self.held_with_agent(repository);
        }
        match File::open(self.repository(repository)) {
            Ok(file) => held_slots(&file).expect("the kernel says who holds a lock"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => panic!("{repository}: {error}"),
        }
    }

    /// The numbers of the slots that are held, lowest first.
    #[track_caller]
    pub(crate) fn held_numbers(&self, repository: &str) -> Vec<i64> {
        self.held(repository).iter().map(|slot| slot.number).collect()
    }

    /// rungate, where every user can start it.
    pub(crate) fn rungate(&self) -> &Path {
        &self.0.rungate
    }

    /// One of the programs in `tests/programs`, where every user can start it.
    #[track_caller]
    pub(crate) fn helper(&self, name: &'static str) -> PathBuf {
        assert!(built::PROGRAMS.contains(&name), "{name} is not one of the tests' programs");
        built::assert_current(name);
        self.0.programs.join(name)
    }

    pub(super) fn runtime_directory(&self, user: &Account) -> PathBuf {
        self.private_directory("run", user)
    }

    pub(super) fn config_directory(&self, user: &Account) -> PathBuf {
        self.private_directory("config", user)
    }

    fn private_directory(&self, of: &str, user: &Account) -> PathBuf {
        let path = self.path(of).join(user.uid.to_string());
        // Whoever comes first makes it; another thread of the same test may have.
        if create_dir(&path).is_ok() {
            set_mode(&path, 0o700);
            chown(&path, Some(user.uid), Some(user.gid)).expect("give the directory to its user");
        }
        path
    }

    /// Puts the site's directory in the place of `$DIR`.
    pub(crate) fn expand(&self, text: &str) -> String {
        text.replace("$DIR", self.0.path.path().to_str().expect("temporary directories have plain names"))
    }
}

fn whole_policy(text: &str) -> String {
    let text = unindent(text);
    if text.contains("version") {
        return text;
    }
    format!(
        "version = 1\ndefaults.directory = \"$DIR/repositories\"\ndefaults.create_mode = \"0666\"\n{text}"
    )
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The directory for temporary ones. As root it must be open to the users whom the tests become.
fn base() -> PathBuf {
    let usual = std::env::temp_dir();
    if !is_root() || open_to_everyone(&usual) { usual } else { PathBuf::from("/var/tmp") }
}

/// Where rungate and the tests' programs are, as seen by every user: beside this test program, or copied into
/// the site when that is in a directory that only root can enter.
fn programs_for_everyone(site: &Path) -> (PathBuf, PathBuf) {
    let rungate = built::program("rungate");
    let programs = rungate.with_file_name("examples");
    if !is_root() || open_to_everyone(&programs) {
        return (rungate, programs);
    }
    let copies = site.join("programs");
    create_dir(&copies).expect("a new directory has room for more");
    for name in built::PROGRAMS {
        install(&programs.join(name), &copies.join(name));
    }
    for program in ["rungate", "rungate-tools"] {
        install(&rungate.with_file_name(program), &copies.join(program));
    }
    (copies.join("rungate"), copies)
}

/// Puts a program somewhere, executable by everybody: by a link if that can be, else by a copy.
fn install(source: &Path, target: &Path) {
    if hard_link(source, target).is_err() {
        copy_program(source, target);
    }
}

/// Copies a program, by another process as well.
pub(crate) fn copy_program(source: impl AsRef<Path>, target: impl AsRef<Path>) {
    let text = fs::read(&source).unwrap_or_else(|error| panic!("{}: {error}", source.as_ref().display()));
    write_by_another(target.as_ref(), text);
}

/// Writes an executable file, and has another process do it: while this one had it open for writing, a
/// program that a neighbouring test starts would inherit that, and the file would be busy when it is to be
/// executed.
fn write_by_another(target: &Path, text: impl AsRef<[u8]>) {
    let mut install = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(target)
        .stdin(Stdio::piped())
        .spawn()
        .expect("install(1) of coreutils");
    install.stdin.take().expect("a pipe").write_all(text.as_ref()).expect("install reads what it copies");
    assert!(install.wait().expect("install ends").success(), "install {}", target.display());
}

fn open_to_everyone(directory: &Path) -> bool {
    directory
        .ancestors()
        .all(|path| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o001 != 0))
}

/// Whether a line of passwd(5) or group(5) is of the system, not of people.
fn is_of_system(line: &str) -> bool {
    let id = line.split(':').nth(2).and_then(|id| id.parse::<u32>().ok());
    id.is_some_and(|id| !(1000..65_534).contains(&id))
}

/// A line of passwd(5), or one of group(5) without its members.
fn without_members(line: &str) -> String {
    let fields: Vec<&str> = line.split(':').collect();
    match fields.as_slice() {
        [group, password, id, _] => format!("{group}:{password}:{id}:\n"),
        _ => format!("{line}\n"),
    }
}
