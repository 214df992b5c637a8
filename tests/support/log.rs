//! Logs that tests make up, event by event.

use serde_json::{Value, json};

use super::Site;

/// A log with these events, one each second.
pub(crate) fn log_of(site: &Site, events: &[Value]) {
    let mut text = String::new();
    for (second, event) in events.iter().enumerate() {
        let mut event = event.clone();
        let time = json!(1_790_000_000_000_u64 + second as u64 * 1000);
        let fields =
            [("time", time), ("uid", json!(0)), ("command", json!("sync")), ("pid", json!(100 + second))];
        for (field, value) in fields {
            if event[field].is_null() {
                event[field] = value;
            }
        }
        text += &format!("{event}\n");
    }
    site.write("work/log.jsonl", &text);
}

/// A start under two repositories.
pub(crate) fn started(pid: i32) -> Value {
    json!({ "event": "started", "pid": pid, "repositories": ["disk=1", "net=2,3"], "rules": ["nightly"] })
}

/// Its end.
pub(crate) fn ended(pid: i32, seconds: f64) -> Value {
    json!({ "event": "ended", "pid": pid, "seconds": seconds, "status": "0" })
}
