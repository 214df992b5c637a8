//! The README, executed: every policy in it is checked, every script in it is installed, and every command in
//! it is run by the user at whose prompt it stands, in the order of the page, and must print what the page
//! shows.
//!
//! What the page cannot know is made alike on both sides before they are compared: times and ages, the name
//! of the host, and numbers of three digits and more, which are known by the order in which they come up, so
//! that a process that is named twice is the same one. Counts, limits, slots and statuses are compared as
//! they stand.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{Ending, Outcome, Running, Site, Terminal, Test, needs_root, skip};

/// One fenced block, and the heading above it.
pub(crate) struct Block {
    heading: String,
    language: String,
    text: String,
}

impl Block {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// The blocks of a page of the package.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let page = fs::read_to_string(package().join(page)).expect("the page");
    let mut blocks: Vec<Block> = Vec::new();
    let (mut heading, mut inside) = (String::new(), false);
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = !inside;
            if inside {
                blocks.push(Block {
                    heading: heading.clone(),
                    language: language.into(),
                    text: String::new(),
                });
            }
        } else if inside {
            let block = blocks.last_mut().expect("an open block");
            block.text.push_str(line);
            block.text.push('\n');
        } else if line.starts_with('#') {
            heading = line.trim_start_matches(['#', ' ', '…']).into();
        }
    }
    blocks
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A command of a console block, who types it, and what the page shows below it.
struct Step {
    user: String,
    command: String,
    shown: String,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        let prompt =
            line.split_once("$ ").filter(|(user, _)| user.chars().all(|c| c.is_ascii_alphanumeric()));
        match (prompt, steps.last_mut()) {
            (Some((user, command)), _) => {
                let user = if user.is_empty() { "ann" } else { user };
                steps.push(Step { user: user.into(), command: command.into(), shown: String::new() });
            }
            (None, Some(step)) => step.shown = format!("{}{line}\n", step.shown),
            (None, None) => panic!("a console block begins with a command: {line:?}"),
        }
    }
    steps
}

/// The machine of one story of the page, and what runs on it in the background.
pub(crate) struct Scene {
    site: Site,
    /// Whether each policy of the page is to hold together by itself.
    checks_policies: bool,
    last_status: i32,
    running: Vec<Running>,
    page_numbers: Numbers,
    our_numbers: Numbers,
    /// What was printed otherwise than the page shows: all of it is told at once.
    pub(crate) differences: Vec<String>,
}

impl Scene {
    fn new() -> Self {
        let site = Site::new();
        site.directory_over_run();
        for (name, groups) in [
            ("ann", &["cad"][..]),
            ("bob", &[]),
            ("cid", &["students"]),
            ("stu07", &["students"]),
            ("dana", &[]),
        ] {
            site.account(name, groups);
        }
        fs::create_dir_all(site.path("etc/rungate/shims")).expect("a directory");
        site.rungate_in_bin();
        for program in ["matlab", "terraform"] {
            site.program(program);
        }
        site.script("nightly-sync", "#!/bin/sh\n");
        // As in a clone, whose own place other users need not be able to enter.
        fs::create_dir(site.path("work/policies")).expect("a directory");
        let quick_start =
            fs::read_to_string(package().join("policies/quick-start.toml")).expect("the first policy");
        site.write("work/policies/quick-start.toml", &quick_start);
        Self { checks_policies: true, ..Self::at(site) }
    }

    /// One on a machine that is set up already.
    pub(crate) fn at(site: Site) -> Self {
        Self {
            site,
            checks_policies: false,
            last_status: 0,
            running: Vec::new(),
            page_numbers: Numbers::default(),
            our_numbers: Numbers::default(),
            differences: Vec::new(),
        }
    }

    fn shell(&self, user: &str, command: &str) -> Test {
        // The README's first command, with the program that is being tested instead of one that cargo builds.
        let command = command.replace("cargo run --", "rungate");
        let command = format!("(exit {}); {command}", self.last_status);
        // As in login shells, where the package is installed.
        let path =
            format!("/etc/rungate/shims:{}:/usr/bin:/bin:/usr/sbin:/sbin", self.site.path("bin").display());
        self.site.test().user(user).program("/bin/bash").env("PATH", path).args(["-c", &command])
    }

    pub(crate) fn play(&mut self, block: &Block) {
        match block.language.as_str() {
            "toml" => self.write_policy(&block.text),
            "sh" => {
                let name = block
                    .text
                    .lines()
                    .nth(1)
                    .and_then(|line| line.strip_prefix("# "))
                    .expect("the script's name");
                self.site.script(name, &block.text);
            }
            "console" => steps(&block.text).iter().for_each(|step| self.perform(step)),
            "screen" => self.watch(&block.text),
            // What root types to install it for everybody is not tried out on the machine that runs the
            // tests.
            "text" => assert!(block.text.lines().all(|line| line.starts_with("# ")), "{}", block.text),
            other => panic!("nothing is known of a block of {other:?}"),
        }
    }

    /// Every policy of the page begins with the name of its file, and has neither faults nor anything
    /// doubtful but for the one that is called broken.
    fn write_policy(&self, text: &str) {
        let name = text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("the policy's name");
        match name.strip_prefix("/etc/rungate/") {
            Some(name) => self.site.system_file(name, text),
            None => {
                let path = Path::new("work").join(name);
                fs::create_dir_all(self.site.path(path.parent().expect("a directory"))).expect("a directory");
                self.site.write(path, text);
            }
        }
        if !self.checks_policies {
            return;
        }
        let check = self.shell("ann", &format!("rungate policy check --strict {name} >/dev/null 2>&1"));
        check.status(i32::from(name == "broken.toml"));
    }

    /// The screen that Ann sees who watches, and has gone down by one line.
    fn watch(&mut self, shown: &str) {
        if !Path::new("/usr/bin/tmux").exists() {
            return skip("tmux(1) is not installed");
        }
        let terminal = Terminal::open_for(self.site.test().user("ann"), (80, shown.lines().count()));
        terminal.enter("exec rungate status --watch");
        terminal.shows("q quit");
        terminal.press("Down");
        let screen = terminal.shows("\n>matlab-per-user [ann]");
        let (ours, pages) = (self.our_numbers.alike(&screen), self.page_numbers.alike(shown));
        if ours != pages {
            self.differences.push(format!("--- the page shows\n{shown}--- the screen was\n{screen}"));
        }
    }

    fn perform(&mut self, step: &Step) {
        if step.command == "cargo test" {
            return;
        }
        let (background, shown) = (step.command.strip_suffix(" &"), &step.shown);
        let waits = step.command.contains(" -w ");
        let printed = if background.is_some() || waits {
            let command = background.unwrap_or(&step.command);
            let mut running = self.shell(&step.user, &format!("exec {command} 2>&1")).background();
            let printed = shown.lines().map(|_| running.read_line()).collect();
            if shown.is_empty() {
                running.wait_for_echo();
            }
            self.running.push(running);
            printed
        } else {
            let Outcome { stdout, ending, .. } =
                self.shell(&step.user, &format!("{{ {}; }} 2>&1", step.command)).outcome();
            let Ending::Status(status) = ending else { panic!("{}: {ending:?}", step.command) };
            self.last_status = status;
            stdout
        };
        let host = nix::unistd::gethostname().expect("a host name").into_string().expect("a plain name");
        let printed = printed
            .replace(&format!("host {host}"), "host ws17")
            .replace(&format!(" {host} "), " ws17 ")
            .replace(self.site.path("bin/matlab").to_str().expect("a plain path"), "/opt/matlab/bin/matlab");
        let (ours, pages) = (self.our_numbers.alike(&printed), self.page_numbers.alike(shown));
        if ours != pages {
            self.differences
                .push(format!("$ {}\n--- the page shows\n{shown}--- printed was\n{printed}", step.command));
        }
    }
}

/// Each page says for which need it is, and links to others.
#[test]
fn every_page_says_which_need_it_is_for() {
    let mut pages = 0;
    for entry in fs::read_dir(package().join("docs")).expect("the pages") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a page");
        let label = text.lines().nth(2).unwrap_or_default();
        let needs = ["*To learn ", "*To do ", "*To do: ", "*To look up ", "*To understand "];
        let links_to = label.split("](").count() > 1;
        assert!(needs.iter().any(|need| label.starts_with(need)) && links_to, "{}: {label}", path.display());
        pages += 1;
    }
    assert!(pages > 8, "{pages}");
}

/// Numbers of three digits and more, by the order of their first appearance.
#[derive(Default)]
struct Numbers(BTreeMap<String, usize>);

impl Numbers {
    /// A text with single blanks, and without what differs from run to run.
    fn alike(&mut self, text: &str) -> String {
        let lines = text.lines().map(|line| {
            let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
            let alike = words.iter().enumerate().map(|(place, word)| match words.get(place + 1) {
                Some(next) if is_day(word) && NAMES.contains(next) => "TIME".into(),
                _ if is_date(word) => "TIME".into(),
                _ => self.word(word),
            });
            let alike: Vec<String> = alike.collect();
            // A time that is not today has its date before it.
            let is_date = |place: usize| {
                alike[place] == "TIME" && alike.get(place + 1).is_some_and(|next| next.starts_with("TIME"))
            };
            let times = alike.iter().enumerate().filter(|(place, _)| !is_date(*place));
            times.map(|(_, word)| word.as_str()).collect::<Vec<&str>>().join(" ")
        });
        lines.collect::<Vec<String>>().join("\n")
    }

    fn word(&mut self, word: &str) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == ':';
        let mut alike = String::new();
        let mut rest = word;
        while !rest.is_empty() {
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len()).max(1);
            let length = if rest.is_char_boundary(length) {
                length
            } else {
                rest.chars().next().map_or(1, char::len_utf8)
            };
            let (part, after) = rest.split_at(length);
            alike += &self.part(part);
            rest = after;
        }
        alike
    }

    fn part(&mut self, part: &str) -> String {
        let starts_with_digit = part.starts_with(|c: char| c.is_ascii_digit());
        let is_age = starts_with_digit && part.ends_with(['d', 'h', 'm', 's']);
        let is_time = starts_with_digit && part.trim_end_matches(':').contains(':');
        if is_age || is_time || NAMES.contains(&part) {
            return "TIME".into();
        }
        if part.len() >= 3 && part.chars().all(|c| c.is_ascii_digit()) {
            let next = self.0.len();
            return format!("#{}", self.0.entry(part.to_owned()).or_insert(next));
        }
        part.to_owned()
    }
}

/// The names of days and months.
const NAMES: [&str; 19] = [
    "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug",
    "Sep", "Oct", "Nov", "Dec",
];

/// Whether a word is the number of a day, where a month follows.
fn is_day(word: &str) -> bool {
    (1..=2).contains(&word.len()) && word.chars().all(|c| c.is_ascii_digit())
}

/// Whether a word is the date of another year.
fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    parts.len() == 3 && parts.iter().all(|part| part.len() > 1 && part.chars().all(|c| c.is_ascii_digit()))
}

/// Before midnight, what is allowed next is so on another day, perhaps of another year.
#[test]
fn a_time_with_its_date_is_like_a_time() {
    let alike = |text: &str| Numbers::default().alike(text);
    let page = alike("next allowed at 22:36:54, by 4711");
    assert_eq!(page, "next allowed at TIME, by #0");
    assert_eq!(alike("next allowed at 25 Nov 00:02:54, by 4712"), page);
    assert_eq!(alike("next allowed at 2027-01-01 00:02:54, by 4712"), page);
    assert_ne!(alike("next allowed at 25 slots 00:02:54, by 4712"), page);
}

#[test]
fn what_the_page_shows_is_what_happens() {
    needs_root!();
    let blocks = blocks("README.md");
    let play = |scene: &mut Scene, heading: &str| {
        let found: Vec<&Block> = blocks.iter().filter(|block| block.heading.starts_with(heading)).collect();
        assert!(!found.is_empty(), "there is no block below {heading:?}");
        for block in &found {
            scene.play(block);
        }
        found.len()
    };

    // "Six are running: three of Ann's, two of Bob's, and one of Cid's, who is a student."
    let mut story = Scene::new();
    let policy = blocks.iter().find(|block| block.language == "toml").expect("a policy");
    story.play(policy);
    for user in ["ann", "bob", "ann", "cid", "ann", "bob"] {
        story.running.push(story.site.test().user(user).args(["run", "--", "matlab"]).spawn());
    }
    let mut played = 0;
    for heading in STORY {
        played += play(&mut story, heading);
    }

    let mut alone = Scene::new();
    let rest: Vec<&Block> =
        blocks.iter().filter(|block| !STORY.iter().any(|story| block.heading.starts_with(story))).collect();
    for block in &rest {
        alone.play(block);
    }
    assert_eq!(played + rest.len(), blocks.len(), "every block belongs to one of the two scenes");
    let differences = [story.differences, alone.differences].concat();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The tasks of `docs/how-to.md`, one after another on one machine.
#[test]
fn what_the_tasks_show_is_what_happens() {
    needs_root!();
    let blocks = blocks("docs/how-to.md");
    assert!(blocks.len() > 12, "{}", blocks.len());
    let mut scene = Scene::new();
    for block in &blocks {
        scene.play(block);
    }
    assert!(scene.differences.is_empty(), "{}", scene.differences.join("\n"));
}

/// The front page is short, and each of its links leads somewhere: to a file, and to a heading in it.
#[test]
fn the_front_page_is_short_and_its_links_lead_somewhere() {
    let anchor = |heading: &str| -> String {
        let kept = heading.to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    };
    let headings = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with('#'));
        lines.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
    };
    let page = fs::read_to_string(package().join("README.md")).expect("the page");
    assert!(page.lines().count() <= 350, "{}", page.lines().count());
    for name in ["README.md", "docs/how-to.md", "docs/policies.md"] {
        let text = fs::read_to_string(package().join(name)).expect("a page");
        let mut links = 0;
        for link in text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)) {
            if link.starts_with("http") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let folder = package().join(name);
            let folder = folder.parent().expect("a folder");
            let target = if file.is_empty() { package().join(name) } else { folder.join(file) };
            assert!(target.exists(), "{name}: {link}");
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).expect("a page");
                assert!(headings(&text).iter().any(|known| known == heading), "{name}: {link}");
            }
            links += 1;
        }
        assert!(links > 3, "{name}: {links}");
    }
}

/// The headings whose blocks tell one story, with the six holders.
const STORY: [&str; 4] =
    ["rungate", "Wait for my turn", "See why it does not start", "Have all users go through it"];

#[test]
fn blocks_are_found_with_their_headings() {
    let blocks = blocks("README.md");
    assert!(blocks.len() > 8, "{}", blocks.len());
    assert_eq!((blocks[0].heading.as_str(), blocks[0].language.as_str()), ("rungate", "toml"));
}

#[test]
fn numbers_that_come_up_again_are_the_same() {
    let mut numbers = Numbers::default();
    assert_eq!(numbers.alike("PID 8123 (6d04h), 8130 (2h)  8123"), "PID #0 (TIME), #1 (TIME) #0");
    assert_eq!(numbers.alike("4 of 4 used since 22:14"), "4 of 4 used since TIME");
    assert_eq!(numbers.alike("policy.toml:11:3: x"), "policy.toml:11:3: x");
    assert_eq!(numbers.alike("on Sat 5 Nov 22:26"), "on TIME");
}
