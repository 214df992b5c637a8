//! For tests: a member of etcd that gives the answers that it was told to give.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread::{self, JoinHandle},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{Access, Client};

/// What begins an answer by which a member refuses.
const REFUSED: &str = "refused: ";

/// The same of one that does not say whether it was done.
const UNCLEAR: &str = "unclear: ";

/// The same of one that hangs before the end of its answer.
const UNFINISHED: &str = "unfinished: ";

/// The answer of a member that hangs after it.
pub(in crate::agent::site) fn unfinished(answer: &str) -> String {
    format!("{UNFINISHED}{answer}")
}

/// The answer of a member that does not say whether it has done what it was asked for.
pub(in crate::agent::site) fn unclear(why: &str) -> String {
    format!("{UNCLEAR}{}", json!({ "error": why }))
}

/// The answer of a member that refuses, for this reason.
pub(in crate::agent::site) fn refused(why: &str) -> String {
    format!("{REFUSED}{}", json!({ "error": why }))
}

/// A member that gives these answers, one after the other, and a client of it. The thread ends with the
/// requests that came.
pub(in crate::agent::site) fn member(answers: &[impl AsRef<str>]) -> (Client, JoinHandle<Vec<Value>>) {
    member_with(answers, Access::default())
}

/// The same for a client with these credentials.
pub(in crate::agent::site) fn member_with(
    answers: &[impl AsRef<str>],
    access: Access,
) -> (Client, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let answers: Vec<String> = answers.iter().map(|answer| answer.as_ref().to_owned()).collect();
    let answering = thread::spawn(move || answers.iter().map(|answer| answered(&listener, answer)).collect());
    let (endpoints, patience) = (vec![endpoint], Duration::from_secs(60));
    let client = Client::new(Access { endpoints, patience, ..access });
    (client.expect("a client"), answering)
}

/// The next request, which gets this answer.
fn answered(listener: &TcpListener, answer: &str) -> Value {
    let (connection, _) = listener.accept().expect("a caller");
    let (mut lines, mut length) = (BufReader::new(&connection), 0);
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).expect("a head");
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut question = vec![0; length];
    lines.read_exact(&mut question).expect("a body");
    let statuses = [(REFUSED, "400 Bad Request"), (UNCLEAR, "503 Service Unavailable")];
    let failed = statuses.iter().find_map(|(prefix, status)| Some((*status, answer.strip_prefix(prefix)?)));
    let (status, answer) = failed.unwrap_or(("200 OK", answer));
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n");
    let (answer, missing) = answer.strip_prefix(UNFINISHED).map_or((answer, 0), |answer| (answer, 1));
    let length = answer.len() + missing;
    write!(&connection, "{head}Content-Length: {length}\r\n\r\n{answer}").expect("it reads");
    if missing > 0 {
        // Until the client hangs up.
        let _ = lines.read_to_end(&mut Vec::new());
    }
    // A request for metrics has no body.
    if length == 0 { Value::Null } else { serde_json::from_slice(&question).expect("JSON") }
}

/// The answer to a read that finds a key with this value, which was written at a revision; or none. `now` is
/// the revision of etcd.
pub(in crate::agent::site) fn found(now: i64, key: &str, value: &[u8], revision: Option<i64>) -> String {
    let (key, value) = (STANDARD.encode(key), STANDARD.encode(value));
    let pair = |at: i64| json!({ "key": key, "value": value, "mod_revision": at.to_string() });
    let pairs: Vec<Value> = revision.map(pair).into_iter().collect();
    let header = json!({ "cluster_id": "1", "revision": now.to_string() });
    json!({ "header": header, "kvs": pairs, "count": "1" }).to_string()
}

/// The answer to a transaction that was committed at a revision.
pub(in crate::agent::site) fn committed(revision: i64) -> String {
    let header = json!({ "cluster_id": "1", "revision": revision.to_string() });
    json!({ "header": header, "succeeded": true }).to_string()
}
