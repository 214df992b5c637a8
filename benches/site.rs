//! A directory with policies of any length, for launches to be measured under.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// What the programs under `benches/programs` and `tests/programs` are built as.
const PROGRAMS: [&str; 3] = ["crowd", "peak", "peer"];

/// And a library that is put before one of them.
const CLOCK: [&str; 2] = ["mutex_clock", "libmutex_clock.so"];

/// The directory, and the programs to be measured.
pub(crate) struct Site {
    folder: TempDir,
}

/// Where the launcher is that is measured.
static INSTALLED: OnceLock<String> = OnceLock::new();

impl Site {
    /// A new one, with everything that can be measured.
    #[allow(dead_code, reason = "not every benchmark needs all of it")]
    pub(crate) fn new() -> Self {
        let small: Vec<&str> =
            PROGRAMS.into_iter().chain([CLOCK[0]]).flat_map(|name| ["--example", name]).collect();
        build(&small);
        build(&["--bin", "rungate", "--bin", "rungate-tools"]);
        let site = Self::with(&["rungate", "rungate-tools"]);
        for program in PROGRAMS.into_iter().chain([CLOCK[1]]) {
            site.installed(&built("examples").join(program));
        }
        build_alone(&site, "null_launcher");
        site
    }

    /// One with the launcher, which is built without the other two programs: that takes less than half of the
    /// time, and a launch has the same instructions to one in a thousand.
    #[allow(dead_code, reason = "only who counts instructions needs it")]
    pub(crate) fn of_launcher() -> Self {
        build(&["--no-default-features", "--bin", "rungate"]);
        Self::with(&["rungate"])
    }

    /// One with these programs of rungate's, which were built last: as they are installed, without what the
    /// tests ask of the crates that both use. What is measured is a copy, as an installation makes one: the
    /// file that the linker wrote lies otherwise in the page cache, and costs a launch up to a tenth more.
    fn with(bins: &[&str]) -> Self {
        // Not where the environment says: each directory on the way to a policy is checked, and has its
        // price.
        let folder = TempDir::new_in("/tmp").expect("a temporary directory");
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("chmod");
        let site = Self { folder };
        for program in bins {
            site.installed(&built(program));
        }
        INSTALLED.get_or_init(|| site.path("rungate").display().to_string());
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A copy of a program in the site's own folder, so that it costs nothing if it was built.
    pub(crate) fn installed(&self, program: &Path) -> PathBuf {
        let copy = self.path(&program.file_name().unwrap_or_default().to_string_lossy());
        if copy != program {
            fs::copy(program, &copy).expect("a copy");
        }
        copy
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.path(name)
    }

    /// The agent, for those who need one.
    #[allow(dead_code, reason = "not every benchmark does")]
    pub(crate) fn agent(&self) -> PathBuf {
        build(&["--bin", "rungate-agent"]);
        self.installed(&built("rungate-agent"))
    }

    /// A policy with so many rules, of which the first is for true(1) and takes a slot in so many
    /// repositories. Each of the others has three patterns.
    pub(crate) fn policy(&self, rules: usize, repositories: usize) -> PathBuf {
        let folder = self.folder.path().display();
        let mut text = format!("version = 1\n[defaults]\ndirectory = \"{folder}\"\n");
        for number in 0..repositories {
            let _ = writeln!(text, "[repository.r{number}]\nlimit = 50");
        }
        let all: Vec<String> = (0..repositories).map(|number| format!("\"r{number}\"")).collect();
        let _ = writeln!(text, "[[rule]]\ncommands = [\"true\"]\nacquire = [{}]", all.join(", "));
        text.push_str(&others(rules));
        let path = self.path(&format!("{rules}-{repositories}.toml"));
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("chmod");
        path
    }
}

/// Rules of which none is for true(1), one less than so many: each has three patterns.
pub(crate) fn others(rules: usize) -> String {
    let mut text = String::new();
    for number in 1..rules {
        let _ = writeln!(
            text,
            "[[rule]]\nname = \"rule {number}\"\n\
             commands = [\"cmd{number}\", \"tool{number}-*\", \"/opt/x{number}/*/bin/y\"]\n\
             groups = [\"games\"]\nacquire = [\"r0\"]"
        );
    }
    text
}

/// Where something of this name is built as it is released, whatever the benchmark itself was built as.
fn built(name: &str) -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_rungate")).parent().expect("a directory");
    beside.with_file_name("release").join(name)
}

fn build(what: &[&str]) {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--manifest-path"]).arg(manifest).args(what);
    assert!(build.status().expect("cargo runs").success(), "{what:?} can be built");
}

/// A small program that needs nothing but the standard library, and that the compiler alone builds: cargo
/// would build the library before it, and once more without what the tests add.
pub(crate) fn build_alone(site: &Site, name: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/programs").join(format!("{name}.rs"));
    let mut build = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
    build.args(["--edition=2024", "-Copt-level=3", "-Clto=fat", "-Ccodegen-units=1", "-Cpanic=abort"]);
    build.arg("-Cstrip=debuginfo").arg("-o").arg(site.path(name)).arg(source);
    assert!(build.status().expect("rustc runs").success(), "{name} can be built");
}

/// The program that all of this is about, once there is a site.
pub(crate) fn rungate() -> &'static str {
    INSTALLED.get().expect("a site")
}
