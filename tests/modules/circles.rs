//! The files of the source, and which imports from which.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{code, is_import, members, sources};

/// What a file offers of other files under its own name, and where that is: `pub use self::a::B` is `B`.
fn exports(path: &Path) -> BTreeMap<String, Vec<String>> {
    let own = module_path(path);
    let beneath = |import: &Vec<String>| import.len() > own.len() && import.starts_with(&own);
    let all = imports(path).into_iter().filter(beneath);
    all.filter_map(|import| Some((import.last()?.clone(), import))).collect()
}

/// The modules that a file imports from or names in a path, except those that it is a part of: `src/a/b.rs` is
/// `["a", "b"]`.
fn imports(path: &Path) -> BTreeSet<Vec<String>> {
    let own = module_path(path);
    let mut imports = BTreeSet::new();
    for (_, line) in code(path) {
        let named = if is_import(&line) {
            leaves(line.split_once("use ").map_or("", |(_, tree)| tree).trim_end_matches(';'))
        } else if line.contains(" use ") {
            // What a part gives to its folder alone.
            continue;
        } else {
            line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
                .filter(|path| path.contains("::"))
                .map(|path| path.split("::").map(str::to_owned).collect())
                .collect()
        };
        for import in named {
            let mut words = import.iter().map(String::as_str).peekable();
            let mut found: Vec<String> = match words.next() {
                Some("crate") => Vec::new(),
                Some("self") => own.clone(),
                Some("super") => own[..own.len() - 1].to_vec(),
                _ => continue,
            };
            while words.next_if_eq(&"super").is_some() {
                found.pop();
            }
            found.extend(words.map(str::to_owned));
            imports.insert(found);
        }
    }
    imports
}

/// `a::{b, c::D}` is `a::b` and `a::c::D`.
fn leaves(tree: &str) -> Vec<Vec<String>> {
    let words = |text: &str| -> Vec<String> {
        let word = |word: &str| word.split_whitespace().next().unwrap_or_default().to_owned();
        text.split("::").map(word).filter(|word| !word.is_empty()).collect()
    };
    let Some((stem, _)) = tree.split_once('{') else { return vec![words(tree)] };
    let of = |member: &str| leaves(member.trim()).into_iter().map(|rest| [words(stem), rest].concat());
    members(&tree[stem.len()..]).into_iter().filter(|member| !member.trim().is_empty()).flat_map(of).collect()
}

fn module_path(path: &Path) -> Vec<String> {
    let words = path.with_extension("");
    let words = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    words.filter(|word| word != "mod").collect()
}

/// Whoever wants to understand two files of a circle has to understand all of it.
#[test]
fn no_files_go_round_in_a_circle() {
    let files: BTreeMap<Vec<String>, BTreeMap<String, Vec<String>>> =
        sources().iter().map(|path| (module_path(path), exports(path))).collect();
    // What a folder only passes on is in the file that has it.
    let origin = |mut import: Vec<String>| {
        while let Some((name, folder)) = import.split_last()
            && let Some(exported) = files.get(folder).and_then(|exports| exports.get(name))
            && *exported != import
        {
            import.clone_from(exported);
        }
        import
    };
    let mut uses: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for path in sources() {
        let own = module_path(&path);
        let file = |import: &Vec<String>| {
            let import = origin(import.clone());
            (1..=import.len())
                .rev()
                .map(|length| import[..length].to_vec())
                .find(|part| files.contains_key(part))
        };
        let others = imports(&path).iter().filter_map(file).filter(|file| !own.starts_with(file)).collect();
        uses.insert(own, others);
    }
    // Whoever uses nobody who is left, or is used by nobody who is left, is in no circle.
    loop {
        let left: BTreeSet<Vec<String>> = uses.keys().cloned().collect();
        let used: BTreeSet<Vec<String>> = uses.values().flatten().cloned().collect();
        let is_between = |file: &Vec<String>, others: &BTreeSet<Vec<String>>| {
            used.contains(file) && others.iter().any(|other| left.contains(other))
        };
        uses.retain(|file, others| is_between(file, others));
        if uses.len() == left.len() {
            break;
        }
    }
    let names = |file: &Vec<String>| file.join("::");
    let left: Vec<String> = uses
        .iter()
        .map(|(file, used)| {
            let used = used.iter().filter(|used| uses.contains_key(*used)).map(names);
            format!("{} -> {}", names(file), used.collect::<Vec<_>>().join(", "))
        })
        .collect();
    assert!(left.is_empty(), "files in a circle:\n{}", left.join("\n"));
}
