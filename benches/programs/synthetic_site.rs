//! Makes up a site and its log: `synthetic_site DIRECTORY [LAUNCHES [USERS [DAYS [SEED]]]]` writes
//! `log.jsonl`, `policy.toml`, `passwd` and `group`, for `rungate simulate` and `rungate report` to be
//! measured with. It uses nothing of rungate.
//!
//! Who they are: each user is in one of eight groups, and is given a zeal (a few start most of what is
//! started) and three of the twelve commands that they start nearly always. When they come: at random, by the
//! hour (a working day with a dent at noon and a quiet night) and the day (weekends have a tenth). How long
//! they stay: lognormal, each command with a median of its own and a long tail. How many fit: each command
//! has seats, and a launch that finds none is refused; nobody waits. All of it comes from one seed.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times and shares that are made up"
)]

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    env, fs,
    io::{BufWriter, Write},
    path::Path,
};

/// A command, how much of all launches it is, the median of its minutes, and its seats, less a third, for
/// each 13,700 launches a day.
const COMMANDS: [(&str, f64, f64, f64); 12] = [
    ("matlab", 0.20, 14.0, 110.0),
    ("virtuoso", 0.12, 35.0, 150.0),
    ("spectre", 0.18, 6.0, 45.0),
    ("vivado", 0.08, 30.0, 85.0),
    ("comsol", 0.05, 40.0, 70.0),
    ("ansys", 0.05, 45.0, 80.0),
    ("abaqus", 0.04, 50.0, 70.0),
    ("questa", 0.10, 8.0, 35.0),
    ("jasper", 0.04, 20.0, 30.0),
    ("labview", 0.03, 25.0, 28.0),
    ("mathematica", 0.04, 18.0, 26.0),
    ("stata", 0.07, 10.0, 28.0),
];

const GROUPS: [&str; 8] =
    ["analog", "digital", "layout", "verification", "power", "physics", "students", "staff"];

/// How busy each hour of a working day is.
const HOURS: [f64; 24] = [
    0.10, 0.08, 0.07, 0.06, 0.06, 0.08, 0.20, 0.60, 1.30, 1.90, 2.10, 2.00, 1.30, 1.60, 2.00, 2.10, 1.90,
    1.50, 0.90, 0.60, 0.45, 0.35, 0.25, 0.15,
];

/// 5 January 2026, a Monday, in microseconds since 1970.
const BEGIN: f64 = 1_767_571_200e6;
const HOUR: f64 = 3600e6;

struct Dice(u64);

impl Dice {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn share(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.share()).ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next_u64() % count as u64) as usize
    }
}

/// Which of many with these shares, where the shares are added up.
fn pick(sums: &[f64], dice: &mut Dice) -> usize {
    let wanted = dice.share() * sums.last().copied().unwrap_or(1.0);
    sums.partition_point(|sum| *sum <= wanted).min(sums.len() - 1)
}

fn sums(shares: impl Iterator<Item = f64>) -> Vec<f64> {
    let add = |sum: &mut f64, share: f64| {
        *sum += share;
        Some(*sum)
    };
    shares.scan(0.0, add).collect()
}

/// A program that ends: when, its slot, and who it was.
struct Running {
    command: usize,
    slot: usize,
    user: usize,
    pid: u32,
    began: u64,
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |place: usize, otherwise: usize| {
        words.get(place).map_or(otherwise, |word| word.parse().expect("a number"))
    };
    let directory = Path::new(words.first().expect("a directory"));
    let (launches, users, days) = (number(1, 5_000_000), number(2, 2000), number(3, 365));
    let mut dice = Dice(number(4, 1) as u64);
    fs::create_dir_all(directory).expect("a new directory");

    let scale = launches as f64 / days as f64 / 13_700.0;
    let seats: Vec<usize> =
        COMMANDS.iter().map(|(.., seats)| (1.3 * seats * scale).ceil().max(1.0) as usize).collect();
    write_policy(directory, &seats);
    write_accounts(directory, users);

    let zeal = sums((0..users).map(|_| (1.3 * dice.normal()).exp()));
    let shares = sums(COMMANDS.iter().map(|(_, share, ..)| *share));
    let favourites: Vec<[usize; 3]> = (0..users)
        .map(|_| [pick(&shares, &mut dice), pick(&shares, &mut dice), pick(&shares, &mut dice)])
        .collect();
    // How busy each hour of the week is, so that all hours together make as many launches as are wanted.
    let week: Vec<f64> =
        (0..168).map(|hour| HOURS[hour % 24] * if hour / 24 >= 5 { 0.1 } else { 1.0 }).collect();
    let busy: f64 = (0..days * 24).map(|hour| week[hour % 168]).sum();
    let most = week.iter().copied().fold(0.0, f64::max);

    let file = fs::File::create(directory.join("log.jsonl")).expect("a new log");
    let mut log = BufWriter::with_capacity(1 << 20, file);
    let mut free: Vec<Vec<usize>> = seats.iter().map(|seats| (1..=*seats).rev().collect()).collect();
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut running: Vec<Running> = Vec::new();
    let mut idle: Vec<usize> = Vec::new();
    let (mut now, mut pid) = (BEGIN, 1000u32);
    let end = BEGIN + days as f64 * 24.0 * HOUR;
    loop {
        // Random arrivals at the busiest rate, of which as many are left out as the hour is less busy.
        now += dice.exponential(HOUR * busy / (most * launches as f64));
        if now >= end {
            break;
        }
        let hour = ((now - BEGIN) / HOUR) as usize % 168;
        if dice.share() * most > week[hour] {
            continue;
        }
        let micros = now as u64;
        while ends.peek().is_some_and(|Reverse((at, _))| *at <= micros) {
            let Some(Reverse((at, place))) = ends.pop() else { break };
            write_end(&mut log, at, &running[place]);
            free[running[place].command].push(running[place].slot);
            idle.push(place);
        }
        let user = pick(&zeal, &mut dice);
        let command =
            if dice.share() < 0.9 { favourites[user][dice.below(3)] } else { pick(&shares, &mut dice) };
        pid = if pid > 4_000_000 { 1000 } else { pid + 1 };
        let used = seats[command] - free[command].len();
        let Some(slot) = free[command].pop() else {
            write_decision(&mut log, micros, None, command, user, pid, used, seats[command]);
            continue;
        };
        write_decision(&mut log, micros, Some(slot), command, user, pid, used + 1, seats[command]);
        let minutes = COMMANDS[command].2 * (1.1 * dice.normal()).exp();
        let one = Running { command, slot, user, pid, began: micros };
        let place = match idle.pop() {
            Some(place) => {
                running[place] = one;
                place
            }
            None => {
                running.push(one);
                running.len() - 1
            }
        };
        ends.push(Reverse((micros + (minutes * 60e6).min(14.0 * 24.0 * HOUR) as u64, place)));
    }
    log.flush().expect("the log is written");
}

#[allow(clippy::too_many_arguments, reason = "each is a field of the line")]
fn write_decision(
    log: &mut impl Write,
    micros: u64,
    slot: Option<usize>,
    command: usize,
    user: usize,
    pid: u32,
    used: usize,
    limit: usize,
) {
    let (name, uid) = (COMMANDS[command].0, 10_000 + user);
    let (event, slot) = match slot {
        Some(slot) => ("started", format!("={slot}")),
        None => ("refused", String::new()),
    };
    writeln!(
        log,
        "{{\"time\":{},\"event\":\"{event}\",\"command\":\"{name}\",\"uid\":{uid},\"pid\":{pid},\"host\":\"ws{}\",\
         \"repositories\":[\"{name}{slot}\"],\"rules\":[\"{name} seats\"],\"decided\":{micros},\
         \"launch\":{{\"groups\":[100,{}],\"program\":\"/opt/{name}/bin/{name}\",\"directory\":\"/home/u{user}/work\"}},\
         \"tables\":[{{\"repository\":\"{name}\",\"used\":{used},\"limit\":{limit}}}]}}",
        micros / 1000,
        user % 400,
        20_000 + user % GROUPS.len(),
    )
    .expect("the log can be written");
}

fn write_end(log: &mut impl Write, micros: u64, running: &Running) {
    writeln!(
        log,
        "{{\"time\":{},\"event\":\"ended\",\"command\":\"{}\",\"uid\":{},\"pid\":{},\"host\":\"ws{}\",\"seconds\":{:.3},\
         \"status\":\"0\",\"decided\":{micros}}}",
        micros / 1000,
        COMMANDS[running.command].0,
        10_000 + running.user,
        running.pid,
        running.user % 400,
        (micros - running.began) as f64 / 1e6,
    )
    .expect("the log can be written");
}

fn write_policy(directory: &Path, seats: &[usize]) {
    let mut text =
        "[defaults]\ntime_zone = \"UTC\"\n\n[log]\nto = \"/var/log/rungate/log.jsonl\"\nreplay = true\n"
            .to_owned();
    for ((name, ..), seats) in COMMANDS.iter().zip(seats) {
        text += &format!(
            "\n[repository.{name}]\nlimit = {seats}\n\n[[rule]]\nname = \"{name} seats\"\ncommands = [\"{name}\"]\nacquire = [\"{name}\"]\n"
        );
    }
    fs::write(directory.join("policy.toml"), text).expect("a new policy");
}

fn write_accounts(directory: &Path, users: usize) {
    let group = |user: usize| 20_000 + user % GROUPS.len();
    let passwd =
        |user: usize| format!("u{user}:x:{}:{}::/home/u{user}:/bin/sh\n", 10_000 + user, group(user));
    fs::write(directory.join("passwd"), (0..users).map(passwd).collect::<String>()).expect("a new file");
    let groups = GROUPS.iter().enumerate().map(|(place, name)| format!("{name}:x:{}:\n", 20_000 + place));
    fs::write(directory.join("group"), groups.chain(["users:x:100:\n".to_owned()]).collect::<String>())
        .expect("a new file");
}
