//! The programs that tests start: copies of what was built. A file that a linker wrote lies in the page cache
//! in small pages, and its start costs three times as much as that of its copy.
//!
//! And whether they are made of the sources that are here: `cargo test --test tests` makes rungate again, and
//! leaves the examples as they were. An old referee beside a new rungate sees what is not there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::{LazyLock, Mutex, PoisonError},
    time::SystemTime,
};

/// What is built without being a program of the tests.
const PRODUCT: [&str; 3] = ["rungate", "rungate-tools", "rungate-agent"];

/// The programs in `tests/programs` and `benches/programs`.
pub(super) const PROGRAMS: [&str; 13] = [
    "stage",
    "peer",
    "observer",
    "holder",
    "forger",
    "older_kernel",
    "null_launcher",
    "witness",
    "slot_witness",
    "saboteur",
    "referee",
    "actor",
    "synthetic_site",
];

/// The directory with rungate's programs, and with those of the tests in its `examples`. `tests/wrong/run`
/// says where other programs of rungate's were built.
static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let built = Path::new(env!("CARGO_BIN_EXE_rungate")).parent().expect("a directory");
    let others = std::env::var_os("RUNGATE_TEST_PROGRAMS").map(PathBuf::from);
    let product = others.as_deref().unwrap_or(built);
    let copies = product.join("copies");
    let are_made = fs::create_dir_all(copies.join("examples")).is_ok()
        && PRODUCT.iter().all(|name| copy(&product.join(name), &copies.join(name)))
        && PROGRAMS
            .map(|name| Path::new("examples").join(name))
            .iter()
            .all(|name| copy(&built.join(name), &copies.join(name)));
    // Who may not write there takes what another made, and else what was built.
    assert!(are_made || others.is_none(), "{} can be written", copies.display());
    if are_made { copies } else { built.to_owned() }
});

/// Makes a copy, if there is none of what was built last: by another process, because what this one has open
/// for writing is inherited by the programs that a neighbouring test starts, and a file that is open for
/// writing cannot be executed. Another test program may do the same. A program that was not built needs none.
fn copy(built: &Path, copy: &Path) -> bool {
    if !built.exists() || modified(copy) == modified(built) {
        return true;
    }
    let own = copy.with_extension(process::id().to_string());
    let copied = Command::new("cp").arg("--preserve=mode,timestamps").arg(built).arg(&own).output();
    copied.is_ok_and(|output| output.status.success()) && fs::rename(own, copy).is_ok()
}

/// The directory with rungate's programs, and with those of the tests in its `examples`.
pub(crate) fn directory() -> &'static Path {
    &DIRECTORY
}

/// The agent, or another of rungate's programs.
pub(crate) fn program(name: &str) -> PathBuf {
    DIRECTORY.join(name)
}

/// Complains where the program in the directory of examples is missing, or older than one of its sources.
pub(super) fn assert_current(name: &'static str) {
    static CURRENT: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if current.contains(name) {
        return;
    }
    let program = PathBuf::from(env!("CARGO_BIN_EXE_rungate")).with_file_name("examples").join(name);
    if let Some(why) = outdated(&program, &program.with_extension("d")) {
        panic!(
            "{name}, which the tests start, {why}: run `cargo build --examples` with the same options first"
        );
    }
    current.insert(name);
}

/// Why it is not what its sources say.
fn outdated(program: &Path, dependencies: &Path) -> Option<String> {
    let Some(made) = modified(program) else { return Some("is missing".into()) };
    let text = fs::read_to_string(dependencies).unwrap_or_default();
    // What the library is made of is in the list too, but no such program uses it.
    let of_tests: Vec<PathBuf> = sources(&text).into_iter().filter(|path| is_of_tests(path)).collect();
    if of_tests.is_empty() {
        return Some("was made of other sources than these".into());
    }
    let newer = of_tests.into_iter().find(|source| modified(source).is_none_or(|changed| changed > made))?;
    Some(format!("is older than {}", newer.display()))
}

fn is_of_tests(path: &Path) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["tests", "benches"].iter().any(|folder| path.starts_with(root.join(folder)))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// The sources in a list as Cargo writes it: `program: source source`, with a backslash before each blank in
/// a name.
fn sources(text: &str) -> Vec<PathBuf> {
    let (_, list) = text.split_once(": ").unwrap_or_default();
    let mut names = vec![String::new()];
    let mut characters = list.trim_end().chars();
    while let Some(character) = characters.next() {
        match (character, names.last_mut()) {
            ('\\', Some(name)) => name.extend(characters.next()),
            (' ', _) => names.push(String::new()),
            (other, Some(name)) => name.push(other),
            (_, None) => {}
        }
    }
    names.into_iter().filter(|name| !name.is_empty()).map(PathBuf::from).collect()
}

#[test]
fn a_program_of_old_sources_is_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [program, list] = ["program", "program.d"].map(|name| directory.path().join(name));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tests.rs");
    let make = |when: SystemTime, text: String| {
        fs::write(&program, "").expect("write");
        fs::File::options()
            .write(true)
            .open(&program)
            .and_then(|file| file.set_modified(when))
            .expect("a time");
        fs::write(&list, text).expect("write");
        outdated(&program, &list)
    };
    let listed = format!("program: /elsewhere/a\\ b.rs {}\n", source.display());
    assert_eq!(make(SystemTime::now(), listed.clone()), None);
    let told = make(SystemTime::UNIX_EPOCH, listed);
    assert_eq!(told, Some(format!("is older than {}", source.display())));
    let told = make(SystemTime::now(), "program: /elsewhere/a.rs\n".into());
    assert_eq!(told.as_deref(), Some("was made of other sources than these"));
    assert_eq!(outdated(Path::new("/nowhere"), &list).as_deref(), Some("is missing"));
}
