//! Placeholder expansion: it never leaves the directory and never merges two values. The bytes are texts with
//! a NUL between them: the path of a repository as a policy writes it, then the values of two launches.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
};

use rungate::{
    judge::{
        Request, Verdict, decide,
        terms::{claim::Demand, location::Location},
    },
    policy::Policy,
};

use super::small_site::SmallSite;

/// Expands the path for both launches, and compares.
pub fn judge(data: &[u8]) {
    let mut texts = data.split(|byte| *byte == 0);
    let Some(template) = texts.next().and_then(|text| std::str::from_utf8(text).ok()) else { return };
    let values: Vec<&[u8]> = texts.collect();
    let Some(policy) = policy(template) else { return };
    let half = values.len() / 2;
    let (one, other) = (Launch::of(&values[..half]), Launch::of(&values[half..]));
    let (here, there) = (one.path(&policy), other.path(&policy));
    stays_below(template, &here);
    stays_below(template, &there);
    let (asked, otherwise) = (one.asked(template), other.asked(template));
    assert_eq!(
        here == there,
        asked == otherwise,
        "{template}: {asked:?} gives {here:?}, {otherwise:?} {there:?}"
    );
    // What one value has become, typed by somebody else, is not their file.
    let name = here.file_name().unwrap_or_default().to_owned();
    let posing = Launch { arguments: vec![name, one.argument(1)], ..one.clone() };
    let taken = posing.path(&policy) == here;
    assert_eq!(
        taken,
        posing.asked(template) == asked,
        "{template}: {asked:?} and {:?}",
        posing.asked(template)
    );
}

/// None if the path is a fault.
fn policy(template: &str) -> Option<Policy> {
    let quoted = format!("{template:?}");
    // Rust escapes some characters in another way than TOML does; those paths are faults for other reasons.
    let text = format!("[repository.r]\nlimit = 1\npath = {quoted}\n[[rule]]\nacquire = [\"r\"]\n");
    Policy::of_text("/p.toml", text).ok()
}

/// What a user can choose, and their number.
#[derive(Clone, Debug)]
struct Launch {
    uid: u32,
    command: OsString,
    host: OsString,
    directory: OsString,
    variable: OsString,
    arguments: Vec<OsString>,
}

impl Launch {
    fn of(values: &[&[u8]]) -> Self {
        let value =
            |index: usize| OsString::from_vec(values.get(index).copied().unwrap_or_default().to_vec());
        let uid = values.first().copied().unwrap_or_default();
        Self {
            uid: uid.iter().fold(0, |uid: u32, byte| uid.wrapping_mul(10).wrapping_add(u32::from(*byte))),
            command: OsString::from_vec(
                value(1).into_vec().into_iter().filter(|byte| *byte != b'/').collect(),
            ),
            host: value(2),
            directory: value(3),
            variable: value(4),
            arguments: values
                .iter()
                .skip(5)
                .take(3)
                .map(|value| OsStr::from_bytes(value).to_owned())
                .collect(),
        }
    }

    fn argument(&self, index: usize) -> OsString {
        self.arguments.get(index).cloned().unwrap_or_default()
    }

    fn path(&self, policy: &Policy) -> PathBuf {
        let decision = decide(
            policy,
            &Request {
                typed: &self.command,
                arguments: &self.arguments,
                path: Path::new("/bin/x"),
                canonical: Path::new("/bin/x"),
                uid: self.uid,
                gids: &[],
                host: &self.host,
                directory: Path::new(&self.directory),
                environment: &|_| Some(self.variable.clone()),
                now: jiff::Timestamp::UNIX_EPOCH,
                cpus: &|| 1,
                runtime: Path::new("/r"),
                names: &SmallSite,
            },
        );
        let Verdict::Start(terms) = &decision.verdict else { panic!("it does not start") };
        let Some(Demand::One(claim)) = terms.demands.first() else { panic!("it claims nothing") };
        let Location::File(file) = &claim.location else { panic!("it is kept in no file") };
        file.path.clone()
    }

    /// What of the launch the path asks about. An argument that does not exist counts as one without
    /// characters.
    fn asked(&self, template: &str) -> Vec<(&'static str, Vec<OsString>)> {
        let given = |number: usize| vec![self.argument(number)];
        let all = [
            ("{uid}", vec![self.uid.to_string().into()]),
            ("{user}", vec![self.uid.to_string().into()]),
            ("{command}", vec![self.command.clone()]),
            ("{host}", vec![self.host.clone()]),
            ("{cwd}", vec![self.directory.clone()]),
            ("{env.", vec![self.variable.clone()]),
            ("{arg1}", given(0)),
            ("{arg2}", given(1)),
            ("{arg3}", given(2)),
            ("{args}", self.all_arguments()),
        ];
        all.into_iter().filter(|(placeholder, _)| template.contains(placeholder)).collect()
    }

    /// One argument without characters is as none at all.
    fn all_arguments(&self) -> Vec<OsString> {
        match self.arguments.as_slice() {
            [only] if only.is_empty() => Vec::new(),
            several => several.to_vec(),
        }
    }
}

/// Name by name: what is written stands there as it is written, and a value is one name.
fn stays_below(template: &str, path: &Path) {
    let written: Vec<&str> = template.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let mut names = path.components().rev();
    for pattern in written.iter().rev() {
        if *pattern == "{runtime}" {
            break;
        }
        let Some(Component::Normal(name)) = names.next() else { panic!("{template} leads to {path:?}") };
        let is_fixed = !pattern.contains('{');
        assert!(!is_fixed || name == OsStr::new(pattern), "{template} leads to {path:?}");
        assert!(is_fixed || name.len() <= 255, "{template} gives a name that is too long: {path:?}");
    }
    let start = match (template.starts_with('/'), written.first()) {
        (true, _) => "/",
        (_, Some(&"{runtime}")) => "/r",
        _ => "/run/rungate",
    };
    assert_eq!(names.rev().collect::<PathBuf>(), Path::new(start), "{template} leads to {path:?}");
}
