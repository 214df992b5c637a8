//! `--notify`: tells the user that a wait is over, by the bell and the title of the terminal and, where there
//! is a desktop, by notify-send(1). A failure costs the launch nothing.

use std::{ffi::CString, path::Path};

use crate::{
    sys::{child, executable},
    text::stream,
};

/// Does not wait for notify-send, and leaves no child behind that the program would find.
const SCRIPT: &str = "notify-send -- \"$1\" \"$2\" </dev/null >/dev/null 2>&1 &";

/// Tells it. Both texts are escaped.
pub(super) fn notify(title: &str, text: &str) {
    stream::ring(title);
    let words: Vec<CString> = ["sh", "-c", SCRIPT, "sh", title, text]
        .into_iter()
        .filter_map(|word| executable::c_string(word.as_ref()))
        .collect();
    let environment = executable::environment();
    let shell = Path::new("/bin/sh");
    if let Ok(Ok(pid)) = child::spawn(|| executable::replace_process(shell, &words, &environment)) {
        let _ = child::reap(pid);
    }
}
