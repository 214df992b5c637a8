//! The same tests over the agent: within [`over_the_agent`] every policy of a site is the system's, its
//! repositories are kept by an agent of the site, and what the tests ask the kernel about a lock file is
//! asked of `rungate list`.

use std::cell::{Cell, RefCell};
use std::fs::{self, create_dir_all};

use serde_json::Value;

use super::agent::listing;
use super::held_slots::HeldSlot;
use super::line::Waiter;
use super::running::Running;
use super::site::{Site, set_mode};

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    /// A handle to a site must not be in what the site has.
    static AGENTS: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// Ends what was begun, also when the test panics.
struct Over;

impl Drop for Over {
    fn drop(&mut self) {
        IS_ON.set(false);
        AGENTS.take();
    }
}

/// Runs a test over the agent.
pub(crate) fn over_the_agent(test: fn()) {
    IS_ON.set(true);
    let _over = Over;
    test();
    let has_agent = AGENTS.with_borrow(|agents| !agents.is_empty());
    assert!(has_agent, "no policy of this test is kept by an agent: it says nothing here");
}

pub(crate) fn is_on() -> bool {
    IS_ON.get()
}

/// What a test expects of a policy that is its own, of one that is the system's.
pub(super) fn expected(text: &str) -> String {
    if is_on() { text.replace("$DIR/policy.toml", "/etc/rungate/policy.toml") } else { text.to_owned() }
}

impl Site {
    /// Makes a policy the system's, and sees to an agent.
    pub(super) fn policy_over_agent(&self, text: &str) {
        // In one step, as with lock files.
        self.system_file("policy.new", text);
        let [new, policy] = ["policy.new", "policy.toml"].map(|name| self.path("etc/rungate").join(name));
        fs::rename(new, policy).expect("replace the policy");
        if !self.path("system-run").exists() {
            self.directory_over_run();
            let directory = self.path("system-run/rungate-agent");
            create_dir_all(&directory).expect("create the directory of the socket");
            set_mode(&directory, 0o755);
            AGENTS.with_borrow_mut(|agents| agents.push(self.agent()));
        }
    }

    /// Who holds which slots of a table.
    #[track_caller]
    pub(super) fn held_with_agent(&self, lock_file: &str) -> Vec<HeldSlot> {
        let table = self.listed(lock_file);
        let holders = table.iter().flat_map(|table| table["holders"].as_array().into_iter().flatten());
        let number = |value: &Value| value.as_i64().unwrap_or(-1);
        let slots = holders.flat_map(|holder| {
            let last = if holder["last_slot"].is_null() { &holder["slot"] } else { &holder["last_slot"] };
            (number(&holder["slot"])..=number(last)).map(|slot| {
                let pid = i32::try_from(number(&holder["pid"])).expect("a process id");
                HeldSlot { number: slot, pid }
            })
        });
        slots.collect()
    }

    /// Who waits there.
    #[track_caller]
    pub(super) fn line_with_agent(&self, lock_file: &str) -> Vec<Waiter> {
        let table = self.listed(lock_file);
        let waiting = table.iter().flat_map(|table| table["waiting"].as_array().into_iter().flatten());
        let waiter = |(number, waiter): (i64, &Value)| Waiter {
            number,
            limit: 0,
            pid: waiter["pid"].as_i64().and_then(|pid| pid.try_into().ok()).unwrap_or(-1),
        };
        (1..).zip(waiting).map(waiter).collect()
    }

    fn listed(&self, lock_file: &str) -> Option<Value> {
        let name = lock_file.strip_suffix(".lock").expect("a lock file by default");
        let mut all = listing(&self.test()).into_iter();
        all.find(|table| {
            let member = table["member"].as_str().map_or_else(String::new, |member| format!(".{member}"));
            format!("{}{member}", table["repository"].as_str().expect("a name")) == name
                || table["repository"] == name && table["member"].is_null()
        })
    }
}

/// The policy with the agent as its keeper, line by line where it was.
pub(super) fn kept_by_agent(text: &str) -> String {
    const KEEPER: &str = "keeper = \"agent\"";
    if !text.contains("version") {
        return format!("version = 1\ndefaults.{KEEPER}\n\n{text}");
    }
    let is_of_files = |line: &str| {
        let key = line.trim_start().trim_start_matches("defaults.");
        key.starts_with("directory = \"$DIR") || key.starts_with("create_mode")
    };
    let mut keeper = Some(KEEPER);
    let mut line = |line: &str| {
        if !is_of_files(line) {
            return format!("{line}\n");
        }
        let dotted = if line.trim_start().starts_with("defaults.") { "defaults." } else { "" };
        keeper.take().map_or_else(|| "\n".to_owned(), |keeper| format!("{dotted}{keeper}\n"))
    };
    let text: String = text.lines().map(&mut line).collect();
    assert_eq!(keeper, None, "the policy says where its lock files are");
    text
}
