//! A directory with policies of any length, for launches to be measured under.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// What the programs under `benches/programs` and `tests/programs` are built as.
const PROGRAMS: [&str; 4] = ["null_launcher", "crowd", "peak", "peer"];

/// The directory, and the programs to be measured.
pub(crate) struct Site {
    folder: TempDir,
    programs: PathBuf,
}

impl Site {
    /// A new one. The small programs are built first, and then rungate once more: as it is installed, without what its tests
    /// ask of the crates that both use.
    pub(crate) fn new() -> Self {
        build(&PROGRAMS.map(|program| ["--example", program]).concat());
        build(&["--bin", "rungate"]);
        let programs = Path::new(rungate()).with_file_name("examples");
        // Not where the environment says: each directory on the way to a policy is looked at, and has its price.
        let folder = TempDir::new_in("/tmp").expect("a temporary directory");
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("chmod");
        Self { folder, programs }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A copy of a program in the site's own folder, so that it costs nothing where it was built.
    #[allow(dead_code, reason = "times do not show it")]
    pub(crate) fn installed(&self, program: &Path) -> PathBuf {
        let copy = self.path(&program.file_name().unwrap_or_default().to_string_lossy());
        fs::copy(program, &copy).expect("a copy");
        copy
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// A policy with so many rules, of which the first is for true(1) and takes a slot in so many repositories. Each of the others
    /// has three patterns.
    pub(crate) fn policy(&self, rules: usize, repositories: usize) -> PathBuf {
        let folder = self.folder.path().display();
        let mut text = format!("version = 1\n[defaults]\ndirectory = \"{folder}\"\n");
        for number in 0..repositories {
            let _ = writeln!(text, "[repository.r{number}]\nlimit = 50");
        }
        let all: Vec<String> = (0..repositories).map(|number| format!("\"r{number}\"")).collect();
        let _ = writeln!(text, "[[rule]]\ncommands = [\"true\"]\nacquire = [{}]", all.join(", "));
        for number in 1..rules {
            let _ = writeln!(
                text,
                "[[rule]]\nname = \"rule {number}\"\n\
                 commands = [\"cmd{number}\", \"tool{number}-*\", \"/opt/x{number}/*/bin/y\"]\n\
                 groups = [\"games\"]\nacquire = [\"r0\"]"
            );
        }
        let path = self.path(&format!("{rules}-{repositories}.toml"));
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("chmod");
        path
    }

    /// The same, compiled.
    pub(crate) fn compiled_policy(&self, rules: usize, repositories: usize) -> PathBuf {
        let path = self.policy(rules, repositories);
        let compiled = Command::new(rungate()).args(["policy", "compile"]).arg(&path).status();
        assert!(compiled.expect("rungate runs").success());
        path
    }
}

fn build(what: &[&str]) {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--manifest-path"]).arg(manifest).args(what);
    assert!(build.status().expect("cargo runs").success(), "{what:?} can be built");
}

/// The program that all of this is about.
pub(crate) fn rungate() -> &'static str {
    env!("CARGO_BIN_EXE_rungate")
}
