//! Whether a program that tests start is made of the sources that are here: `cargo test --test tests` makes
//! rungate again, and leaves the examples as they were. An old referee beside a new rungate sees what is not
//! there.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Complains where the program in the directory of examples is missing, or older than one of its sources.
pub(super) fn assert_current(name: &str) {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_rungate")).with_file_name("examples").join(name);
    if let Some(why) = outdated(&program, &program.with_extension("d")) {
        panic!(
            "{name}, which the tests start, {why}: run `cargo build --examples` with the same options first"
        );
    }
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
