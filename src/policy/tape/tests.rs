//! What the walk accepts, held against what `toml` makes of the same text.

use std::{fmt::Write as _, fs, path::Path};

use proptest::{
    collection::vec,
    sample::select,
    test_runner::{Config, TestRunner},
};

use super::*;

/// Every form of TOML, those that a policy never has among them.
const FORMS: &str = r#"# a comment
version = 1
dotted.a.b = 'literal \ and "'
dotted.a."c d" = "escapes \u00e4 \\ \" \t"
dotted . e = """
several "lines" \
    and more"""
escaped = """one\""" and two\\"""
odd = [0x1F, 0o17, 0b1, +5, -0, 1_000, 9223372036854775807, 99999999999999999999, 1.5, -inf, 1e3]
moments = [2026-11-20, 2026-11-20T14:02:00Z, 2026-11-20 14:02:00, 14:02:00,]
empty = [ # nothing
]
inline = { a = 1, b.c = 2, "d" = [ { } , { e = true, } ], 'f' = {
  g = false } }
[table]
"quoted \u0041" = 'x' # behind
'' = ""
[[list]]
a = 1
[list.below]
b = 2
[[list.inner]]
c = 3
[[list]]
a = '''
four'''
[ spaced . "and quoted" ]
x = 1
[implied.below]
y = 1
[implied]
z = 1
[table.deeper.still]
w = '''it''s'''
"#;

/// What a reader sees of a text.
fn seen(nodes: &Nodes, text: &str) -> String {
    let mut told = String::new();
    tell(Tape { text, nodes }.root(), 0, &mut told);
    told
}

fn tell(item: Item<'_>, depth: usize, told: &mut String) {
    let what = match item.kind() {
        _ if item.is_table() => "table".to_owned(),
        _ if item.is_list() => "list".to_owned(),
        _ if item.is_number() => {
            item.digits().parse::<i64>().map_or("a number".into(), |number| number.to_string())
        }
        Kind::Moment => format!("moment {}", item.digits()),
        Kind::True => "true".to_owned(),
        Kind::False => "false".to_owned(),
        Kind::Float => "float".to_owned(),
        _ => format!("text <{}>", item.text().expect("a text")),
    };
    let (key, key_span, span) = (item.key(), item.key_span(), item.span());
    let _ = write!(told, "{:depth$}<{key}> {} {}", "", key_span.start, key_span.end);
    let _ = writeln!(told, " {} {} {what}", span.start, span.end);
    let mut items: Vec<Item<'_>> = item.items().collect();
    items.sort_by_key(|item| item.key_span().start);
    for item in items {
        tell(item, depth + 1, told);
    }
}

/// Holds the walk against `toml`; whether it was certain of the text.
fn compare(text: &str) -> bool {
    let Some(nodes) = Nodes::walk(text) else { return false };
    let (tree, errors) = DeTable::parse_recoverable(text);
    assert!(errors.is_empty(), "{} in\n{text}", errors[0]);
    assert_eq!(seen(&nodes, text), seen(&Nodes::of_tree(tree.get_ref(), text), text), "in\n{text}");
    true
}

fn files(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.filter_map(|file| fs::read_to_string(file).ok()).collect()
}

#[test]
fn every_form_is_what_toml_says() {
    // All but a time behind a date and a blank.
    assert!(!compare(FORMS));
    assert!(compare(&FORMS.replace("2026-11-20 14:02:00, ", "")));
    assert!(compare("# a\r\na = [\r\n  1, # b\r\n]\r\n\r\n[b]\r\nc = { d = 2,\r\n }\r\n"));
    assert!(compare("\"a b\".c = 1\n'd e'.f.g = 2\n[\"h i\".j]\n"));
    assert!(compare("a = \"\"\nb = \"\"\"\"\"\"\nc = ''\nd = [0, -0, 10]\n"));
    assert!(!compare("a = 08\n") && !compare("a = -08\n"));
    assert!(!compare("a = 1 b = 2\n") && !compare("[a] b = 1\n") && !compare("a = [1] [b]\n"));
    for policy in files("policies") {
        assert!(compare(&policy), "{policy}");
    }
    let sound = |text: &&String| DeTable::parse(text).is_ok();
    let corpus = files("fuzz/corpus/policy");
    let certain = corpus.iter().filter(|text| compare(text)).count();
    let sound = corpus.iter().filter(sound).count();
    assert!(certain > 20 && certain * 10 >= sound * 9, "{certain} of {sound}");
}

#[test]
fn large_tables_know_their_keys() {
    let entries = |keys: &mut dyn Iterator<Item = usize>| -> String {
        keys.map(|key| format!("[t.k{key}]\n\"x\\u0041\" = 1\n[t.k{key}.below]\n")).collect()
    };
    assert!(compare(&entries(&mut (0..100))));
    for twice in [0, 5, 50, 99] {
        assert!(!compare(&entries(&mut (0..100).chain([twice]))), "{twice}");
    }
}

#[test]
fn what_is_there_twice_is_refused() {
    for twice in [
        "a = 1\na = 2",
        "a = 1\n'a' = 2",
        "a = 1\n\"\\u0061\" = 2",
        "a.b = 1\na = 2",
        "a = 1\na.b = 2",
        "a.b = 1\na.b = 2",
        "a = {}\na.b = 1",
        "x = { a = 1, a = 2 }",
        "x = { a.b = 1, a = 2 }",
        "x = [{ a = 1, a = 2 }]",
        "[a]\nb.c = 1\nb = 2",
        "[a]\nb.c = 1\n[a.b]",
        "[a]\n[a]",
        "[a.b]\n[a]\nb = 1",
        "[a.b]\n[a]\n[a.b]",
        "[[a]]\n[a]",
        "[a]\n[[a]]",
        "a = []\n[[a]]",
        "a.b = 1\n[a]",
        "[[a]]\nb = 1\n[a.b]",
    ] {
        assert!(DeTable::parse(twice).is_err() && !compare(twice), "{twice}");
    }
    assert!(compare("[[a]]\nb = 1\n[[a]]\nb = 1\n[a.c]\nb = 1"));
}

#[test]
fn deep_values_are_left_to_toml() {
    let nested = |depth: usize| format!("a = {}{}\n", "[".repeat(depth), "]".repeat(depth));
    assert!(compare(&nested(20)) && !compare(&nested(70)));
    let tables = |depth: usize| format!("a = {}1{}\n", "{ b = ".repeat(depth), " }".repeat(depth));
    for of in [&nested as &dyn Fn(usize) -> String, &tables] {
        assert!(compare(&of(31)) && !compare(&of(32)));
    }
}

/// What the walk accepts of damaged texts is what `toml` makes of them.
#[test]
fn nothing_is_accepted_that_toml_refuses_or_reads_in_another_way() {
    let pieces = [
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "\\",
        "\\u00e4",
        "\\x41",
        "\\e",
        "=",
        ".",
        ",",
        "[",
        "]",
        "{",
        "}",
        "[[",
        "]]",
        "#",
        "\n",
        "\r\n",
        "\r",
        "\t",
        " ",
        "\u{0}",
        "\u{7f}",
        "ä",
        "\u{feff}",
        "a",
        "a = 1\n",
        "[a]\n",
        "[[a]]\n",
        "[table]\n",
        "[list]\n",
        "[list.below]\n",
        "[[list.inner]]\n",
        "[dotted]\n",
        "[dotted.a]\n",
        "dotted.a.x = 1\n",
        "dotted.e.x = 1\n",
        "[implied.below.more]\n",
        "implied.q = 1\n",
        "below.q = 1\n",
        "[inline]\n",
        "inline.x = 1\n",
        "0",
        "1",
        "-",
        "+",
        "_",
        ":",
        "true",
        "2026-11-20",
        "2026-11-20 14:02",
        "14:02:00",
        "inf",
        "nan",
        "1.",
        "0x",
        "08",
        "a.b",
        "\"a\".b",
        "''",
    ];
    let base =
        select(files("policies").into_iter().chain([FORMS.replace(" 14:02:00, ", ",")]).collect::<Vec<_>>());
    let damage = (0..10_000usize, 0..4usize, select(pieces.to_vec()));
    let counts = std::cell::Cell::new((0, 0));
    let config = Config { cases: 20_000, failure_persistence: None, ..Config::default() };
    let run = TestRunner::new(config).run(&(base, vec(damage, 1..4)), |(text, damages)| {
        // A part of it: what is damaged in a long text is mostly its end.
        let mut text: Vec<char> = text.chars().collect();
        for (at, deleted, piece) in damages {
            let at = at % (text.len() + 1);
            let end = (at + deleted).min(text.len());
            text.splice(at..end, piece.chars());
        }
        let (certain, all) = counts.get();
        counts.set((certain + usize::from(compare(&text.iter().collect::<String>())), all + 1));
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    let (certain, all) = counts.get();
    assert!(certain * 5 > all, "{certain} of {all}");
}

/// Whether a rule has a key is asked once for all rules: wherever one may have it, the answer is yes.
#[test]
fn keys_in_lists_are_noted() {
    let may_list = |text: &str| {
        let nodes = Nodes::walk(text).expect("certain TOML");
        Tape { text, nodes: &nodes }.root().may_list("when")
    };
    for text in [
        "[[rule]]\nwhen = []\n",
        "rule = [{ when = [] }]\n",
        "rule = [\n  { name = 'a' },\n  { except = [{ 'when' = [] }] },\n]\n",
        "[[rule]]\nexcept = [{ when = [] }]\n",
        "[[rule]]\n[[rule.except]]\n\"when\" = []\n",
        "[[rule]]\n[rule.table]\nwhen.dotted = 1\n",
    ] {
        assert!(may_list(text), "{text}");
    }
    for text in
        ["[[rule]]\nname = 'when'\n[repository.when]\nlimit = 1\n", "when = 1\n[defaults]\nwhen = 1\n"]
    {
        assert!(!may_list(text), "{text}");
    }
}
