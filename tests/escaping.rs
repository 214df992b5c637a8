//! "Names of users, groups, hosts and commands, and all arguments, are untrusted text in every message, record and log:
//! control characters are escaped, and none ever becomes part of a path unprocessed."

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::support::Site;

/// A name that would clear the screen, forge a line, turn the text around, and is not UTF-8.
const NAME: &[u8] = b"mat\x1b[2Jlab\nroot\r\x07\x7f\xc2\x9b\xe2\x80\xae\xff";

const ANY: &str = r#"
    [repository.seats]
    limit = 1

    [repository.each]
    path  = "{command}-{arg1}.lock"
    limit = 1

    [[rule]]
    name      = "any"
    arguments = ["*"]
    acquire   = ["seats", "each"]
"#;

#[test]
fn a_name_that_is_no_plain_text_is_escaped_everywhere() {
    let site = Site::with_policy(ANY);
    let name = OsString::from_vec(NAME.to_vec());
    site.program("matlab");
    fs::rename(site.path("bin/matlab"), site.path("bin").join(&name))
        .expect("any name but a few can be a file's");
    let launch = site.test().args([OsStr::new("run"), OsStr::new("--"), &name, OsStr::new("-")]);
    let _running = launch.spawn();

    let plain = |text: &str, place: &str| {
        let odd: Vec<char> =
            text.chars().filter(|&c| c != '\n' && (c.is_control() || c == '\u{202e}')).collect();
        assert!(odd.is_empty(), "{place}: {odd:?} in {text:?}");
        assert!(text.contains("lab"), "{place}: {text:?}");
    };
    let refused = launch.outcome();
    plain(&refused.stderr, "the refusal");
    assert!(refused.stderr.starts_with("rungate: mat\\"), "{}", refused.stderr);
    for command in ["list", "status", "explain", "list --json", "status --json", "explain --json"] {
        let words: Vec<&str> = command.split(' ').collect();
        let mut test = site.test().args(&words);
        if words[0] == "explain" {
            test = test.args([OsStr::new("--"), &name, OsStr::new("a\u{1b}\nb")]);
        }
        let outcome = test.outcome();
        if words[0] != "status" {
            plain(&outcome.stdout, command);
        }
        if words.len() == 2 {
            serde_json::from_str::<serde_json::Value>(&outcome.stdout).expect(command);
        }
    }
    // The record is one line of the file.
    let content = fs::read(site.repository("seats.lock")).expect("the repository");
    let record = &content[8192..8192 + 256];
    plain(std::str::from_utf8(record).expect("a record is text"), "the record");
    assert_eq!(record.split(|&byte| byte == b'\n').count(), 2);

    // The file's name is made of safe characters, and nothing of it is another directory.
    let names: Vec<OsString> = fs::read_dir(site.repository(""))
        .expect("the directory")
        .map(|entry| entry.expect("a file").file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    assert!(names.iter().all(|name| name.as_bytes().iter().all(safe)), "{names:?}");
}

/// "`..`, an empty value and a value that begins with `.` never reach the file system."
#[test]
fn no_value_leads_out_of_the_directory() {
    let site = Site::with_policy(&ANY.replace("{command}-{arg1}", "{arg1}"));
    site.program("matlab");
    for value in [
        "..",
        ".",
        "",
        ".hidden",
        "../../etc/passwd",
        "/etc/passwd",
        "a/../../b",
        "x\0".trim_end_matches('\0'),
    ] {
        let before = fs::read_dir(site.path("")).expect("the site").count();
        let outcome = site.test().args(["run", "--", "matlab", value]).outcome();
        assert_eq!(
            fs::read_dir(site.path("")).expect("the site").count(),
            before,
            "{value:?}: {}",
            outcome.stderr
        );
        for entry in fs::read_dir(site.repository("")).expect("the directory") {
            let name = entry.expect("a file").file_name();
            assert!(!name.as_bytes().starts_with(b"."), "{value:?} made {name:?}");
        }
    }
}

/// "A value is made safe for a file name, and when anything was changed a short hash of the original is appended, so
/// that two values never share a file by accident."
#[test]
fn two_values_never_share_a_file() {
    let site = Site::with_policy(&ANY.replace("acquire   = [\"seats\", \"each\"]", "acquire   = [\"each\"]"));
    site.copy_of("/bin/sleep", "nap");
    site.script("hold", "#!/bin/sh\nexec cat\n");
    let values = ["a b", "a_b", "a/b", "a\nb", "a\u{e4}b", "A_b"];
    let running: Vec<_> =
        values.iter().map(|value| site.test().args(["run", "--", "hold", value]).spawn()).collect();
    assert_eq!(fs::read_dir(site.repository("")).expect("the directory").count(), values.len());
    drop(running);
}
