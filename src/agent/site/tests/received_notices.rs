//! Notices that other hosts leave about holders of this host, and the replies of this host.

use std::{
    io::Read,
    os::unix::process::ExitStatusExt,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::stage::{Stage, deleted, done, of_host, saved, slot};
use crate::{
    agent::{
        ledger::state::{SavedHolding, SavedSlots},
        site::{AgentId, Key, NoticeRecord, Operation, Reply, Report, SlotRecord, Value, record::bytes},
    },
    judge::terms::{Expiry, table_of_site},
    sys::{Process, Signal, own_uid, process},
};

/// A notice of the holder of slot 1.
fn notice(host: &str, by: Option<u32>, holder: SlotRecord) -> NoticeRecord {
    NoticeRecord { host: host.to_owned(), agent: AgentId::default(), by, holder, reply: None }
}

/// The host hears of it.
fn sees_notice(stage: &mut Stage, revision: i64, notice: &NoticeRecord) {
    let pair = stage.pair(&Key::Notice("seats".to_owned(), 1), revision, bytes(notice));
    stage.sees(vec![(pair, true)]);
}

/// Slot 1 is that of this record, and one other host is there.
fn meets_another_host(stage: &mut Stage, record: &SlotRecord) {
    let held = stage.pair(&slot(1), 6, Value::Slot(record.clone()).bytes());
    let other = stage.pair(&Key::Host("lab9".to_owned()), 4, of_host(&AgentId::default()));
    stage.reads(7, vec![other, held]);
}

/// A notice is about one process. It ends no later holder of the same slot, and it is over with the host that
/// has left it.
#[test]
fn a_notice_of_an_earlier_holder_is_about_no_later_one() {
    let mut stage = Stage::new(|state| state.write(1, &saved(&[1])).expect("there is room"));
    let record = stage.record(&saved(&[1]), 0);
    meets_another_host(&mut stage, &record);
    let earlier = SlotRecord { start: record.start - 1, ..record.clone() };
    for (revision, host, holder, counts) in
        [(8, "lab9", earlier, false), (9, "lab8", record.clone(), false), (10, "lab9", record, true)]
    {
        sees_notice(&mut stage, revision, &notice(host, None, holder));
        assert_eq!(!stage.site.received.is_empty(), counts, "{revision}");
    }
}

/// A holder of slot 1 whose program has ended, and whose slot lingers.
fn lingers() -> SavedHolding {
    let hour = Duration::from_secs(3600);
    let mut ended = saved(&[1]);
    ended.lingers_until = process::since_boot().map(|now| now + hour);
    let of = &mut ended.tables[0];
    (of.group, of.is_of_heirs, of.linger) = (Some("root".to_owned()), true, Some(hour));
    ended
}

/// A slot that lingers is not freed while etcd does not have it: the notice may be about an earlier holder.
#[test]
fn a_slot_that_etcd_does_not_have_is_not_freed() {
    let mut stage = Stage::new(|state| state.write(1, &lingers()).expect("there is room"));
    let record = stage.record(&lingers(), 0);
    let other = stage.pair(&Key::Host("lab9".to_owned()), 4, of_host(&AgentId::default()));
    stage.reads(7, vec![other]);
    sees_notice(&mut stage, 8, &notice("lab9", Some(0), record.clone()));
    assert_eq!(stage.local.ledger().lingering().len(), 1);
    let held = stage.pair(&slot(1), 9, Value::Slot(record).bytes());
    stage.sees(vec![(held, true)]);
    assert_eq!(stage.local.ledger().lingering().len(), 0, "now it has it");
}

/// The key of a slot that root frees is deleted at once.
#[test]
fn the_key_of_a_slot_that_is_freed_is_deleted() {
    let mut stage = Stage::open(|state| state.write(1, &lingers()).expect("there is room"));
    let (number, _) = stage.asks().expect("the slot is put back");
    stage.hears(Report::Done(number, Ok(done(9))));
    let record = stage.record(&lingers(), 0);
    let held = stage.pair(&slot(1), 9, Value::Slot(record.clone()).bytes());
    let other = stage.pair(&Key::Host("lab9".to_owned()), 10, of_host(&AgentId::default()));
    stage.sees(vec![(held, true), (other, true)]);
    assert_eq!(stage.asks(), None);
    sees_notice(&mut stage, 11, &notice("lab9", Some(0), record));
    let asked = stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(stage.kept(8, &[deleted(slot(1), 9)])));
}

/// Only root frees a slot that stays taken after the end of its program, from a host that is there, and only
/// that of the process that root means.
#[test]
fn a_slot_that_lingers_is_freed_for_root_alone() {
    let ended = lingers();
    let mut stage = Stage::new(|state| state.write(1, &ended).expect("there is room"));
    assert_eq!(stage.local.ledger().lingering().len(), 1);
    let record = stage.record(&ended, 0);
    assert!(record.has_ended());
    meets_another_host(&mut stage, &record);
    let earlier = SlotRecord { start: record.start - 1, ..record.clone() };
    let runs = SlotRecord { lingers_until: None, ..record.clone() };
    let notices = [
        notice("lab9", Some(1), record.clone()),
        notice("lab9", None, record.clone()),
        notice("lab8", Some(0), record.clone()),
        notice("lab9", Some(0), earlier),
        notice("lab9", Some(0), runs),
        notice("lab9", Some(0), record),
    ];
    for (notice, revision) in notices.iter().zip(8..) {
        sees_notice(&mut stage, revision, notice);
        assert_eq!(stage.local.ledger().lingering().is_empty(), revision == 13, "{revision}");
    }
}

/// A time since boot that does not come during a test, in milliseconds.
const LATER: u64 = 1 << 40;

/// Every holder is overdue that is older than this.
const EXPIRY: Expiry = Expiry { after: Duration::from_millis(1), ..Expiry::AT_REQUEST };

/// The first signal is announced.
const ENDING: Reply = Reply::Ending(Signal::SIGINT as i32);

/// A user who is not root has this slot since that time, in milliseconds since boot.
fn has_since(number: u64, taken: u64) -> SavedHolding {
    SavedHolding { uid: 1000, taken: Some(taken), ..saved(&[number]) }
}

/// A host with these holdings, which have the numbers from 1 on. Slot 1 is that of the first one.
fn with(holdings: &[SavedHolding]) -> (Stage, SlotRecord) {
    let mut stage = Stage::new(|state| {
        for (number, holding) in (1..).zip(holdings) {
            state.write(number, holding).expect("there is room");
        }
    });
    let record = stage.record(&holdings[0], 0);
    meets_another_host(&mut stage, &record);
    (stage, record)
}

/// The reply to the notice of the holder of slot 1.
fn reply(stage: &Stage) -> Option<Reply> {
    reply_on(stage, "seats")
}

/// The same for another table.
fn reply_on(stage: &Stage, table: &str) -> Option<Reply> {
    match stage.site.wanted_notices(&stage.local).remove(&Key::Notice(table.to_owned(), 1)) {
        Some(Value::Notice(notice)) => notice.reply,
        _ => None,
    }
}

/// All members of a group are ended, or none: one that remains would keep the slot. Other holders of the
/// table do not count.
#[test]
fn a_group_is_ended_if_all_of_its_members_are_overdue() {
    for (taken, said) in [(0, ENDING), (LATER, Reply::NotOverdue)] {
        let member = |mut holding: SavedHolding| {
            holding.tables[0].group = Some("root".to_owned());
            holding
        };
        let [first, second] = [0, taken].map(|taken| member(has_since(1, taken)));
        let (mut stage, record) = with(&[first, second, has_since(2, LATER)]);
        sees_notice(&mut stage, 8, &notice("lab9", None, record));
        stage.site.judged_expiry(&mut stage.local, 1, "seats", Some(EXPIRY));
        assert_eq!(reply(&stage), Some(said), "{taken}");
        // The other member has only the second slot of the first one.
        let greater = SavedHolding { uid: 1000, taken: Some(0), ..saved(&[1, 3]) };
        let (mut stage, record) = with(&[member(greater), member(has_since(3, taken))]);
        sees_notice(&mut stage, 8, &notice("lab9", None, record));
        stage.site.judged_expiry(&mut stage.local, 1, "seats", Some(EXPIRY));
        assert_eq!(reply(&stage), Some(said), "{taken}");
    }
}

/// A holder without a known age may be one of another host. It is not ended, and the reply stays as it is
/// until the request is over.
#[test]
fn a_reply_to_a_request_stays() {
    let (mut stage, record) = with(&[saved(&[1])]);
    sees_notice(&mut stage, 8, &notice("lab9", Some(0), record));
    assert_eq!(reply(&stage), None);
    for expiry in [None, Some(EXPIRY)] {
        stage.site.judged_expiry(&mut stage.local, 1, "seats", expiry);
        assert_eq!((reply(&stage), stage.site.ended_by_notices()), (Some(Reply::NotOverdue), Vec::new()));
    }
}

/// A holder whose end a user has requested is not ended any more when the request is over, also if another
/// launch finds it overdue. One that is overdue by this host's policy is ended further. After a final reply
/// nothing more is done.
#[test]
fn a_holder_is_ended_while_the_reason_for_it_lasts() {
    let cases = [
        (Some(0), None, Some(0), None, true),
        (Some(1000), None, Some(1000), None, true),
        (Some(0), None, None, None, false),
        (None, Some(EXPIRY), None, None, true),
        (None, Some(EXPIRY), Some(0), None, true),
        (Some(0), None, Some(0), Some(Reply::NotPermitted), false),
    ];
    for (case, (by, expiry, then, said, is_ended)) in cases.into_iter().enumerate() {
        let (mut stage, record) = with(&[has_since(1, 0)]);
        sees_notice(&mut stage, 8, &notice("lab9", by, record.clone()));
        stage.site.judged_expiry(&mut stage.local, 1, "seats", expiry);
        assert_eq!((reply(&stage), stage.site.ended_by_notices()), (Some(ENDING), vec![1]));
        sees_notice(&mut stage, 9, &NoticeRecord { reply: said, ..notice("lab9", then, record) });
        assert_eq!(!stage.site.ended_by_notices().is_empty(), is_ended, "{case}");
        // A final reply is written once.
        assert_eq!(reply(&stage), is_ended.then_some(ENDING), "{case}");
        let gone = stage.pair(&Key::Notice("seats".to_owned(), 1), 10, Vec::new());
        stage.sees(vec![(gone, false)]);
        assert_eq!(stage.site.ended_by_notices(), [0_u64; 0], "there is no notice");
        // It is remembered, so that it gets no signal twice.
        assert_eq!(!stage.site.received.is_empty(), is_ended, "{case}");
    }
}

/// This process has slot 1 of two tables.
fn of_two_tables() -> SavedHolding {
    let mut of_two = has_since(1, 0);
    let other = SavedSlots { table: table_of_site("other"), ..of_two.tables[0].clone() };
    of_two.tables.push(other);
    of_two
}

/// The host hears of such a notice of the holders of both slots 1, and of slot 2.
fn sees_notices(stage: &mut Stage, notice: &NoticeRecord) {
    let (told, value) = (bytes(notice), Value::Slot(notice.holder.clone()).bytes());
    let each = [("seats", 1), ("other", 1), ("seats", 2)].map(|(table, number)| {
        let (slot, notice) = (Key::Slot(table.to_owned(), number), Key::Notice(table.to_owned(), number));
        [stage.pair(&slot, 8, value.clone()), stage.pair(&notice, 8, told.clone())]
    });
    stage.sees(each.into_iter().flatten().map(|pair| (pair, true)).collect());
}

/// A holder with slots of several tables gets its signals once. Every other holder gets its own.
#[test]
fn each_holder_is_ended_once() {
    let (mut stage, record) = with(&[of_two_tables(), has_since(2, 0)]);
    sees_notices(&mut stage, &notice("lab9", Some(0), record));
    for (number, table) in [(1, "seats"), (1, "other"), (2, "seats")] {
        stage.site.judged_expiry(&mut stage.local, number, table, None);
    }
    assert_eq!(stage.site.ended_by_notices(), [1, 2]);
    assert_eq!((reply(&stage), reply_on(&stage, "other")), (Some(ENDING), Some(ENDING)));
    let ended = stage.local.ledger().holdings().get(&2).expect("a holding");
    stage.site.on_ended_by_notice(2, ended);
    assert_eq!(stage.site.ended_by_notices(), [1], "the other one is not forgotten");
}

/// A holder that is overdue in one of its tables is ended, although it is not overdue in another one.
#[test]
fn a_holder_is_overdue_in_each_table_by_itself() {
    let (mut stage, record) = with(&[of_two_tables(), has_since(2, 0)]);
    sees_notices(&mut stage, &notice("lab9", None, record));
    stage.site.judged_expiry(&mut stage.local, 1, "seats", None);
    stage.site.judged_expiry(&mut stage.local, 1, "other", Some(EXPIRY));
    assert_eq!(stage.site.ended_by_notices(), [1]);
    assert_eq!((reply(&stage), reply_on(&stage, "other")), (Some(Reply::NotOverdue), Some(ENDING)));
}

#[test]
fn a_request_of_another_user_ends_no_holder() {
    let (mut stage, record) = with(&[has_since(1, 0)]);
    sees_notice(&mut stage, 8, &notice("lab9", Some(1001), record));
    stage.site.judged_expiry(&mut stage.local, 1, "seats", None);
    assert_eq!((reply(&stage), stage.site.ended_by_notices()), (Some(Reply::NotOverdue), vec![]));
}

/// A slot that stays taken after the end of its program gets another number if another host has it.
#[test]
fn a_slot_that_lingers_moves_too() {
    let mut stage = Stage::new(|state| state.write(1, &lingers()).expect("there is room"));
    let (host, agent) = ("lab9".to_owned(), AgentId::default());
    let other = SlotRecord { host, agent, ..stage.record(&saved(&[1]), 1) };
    meets_another_host(&mut stage, &other);
    stage.registers(8);
    let (_, asked) = stage.asks().expect("it has another slot");
    let name = stage.site.keys.name(&slot(2));
    assert!(matches!(asked.operations.as_slice(), [Operation::Put(written, _)] if *written == name));
    assert!(stage.local.ledger().lingering().values().all(|of| of.has(&table_of_site("seats"), 2)));
}

/// A program that ignores SIGINT.
fn stubborn() -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT; echo; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = shell.spawn().expect("sh(1)");
    // When it has written its line, it ignores the signal.
    program.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("a line");
    program
}

/// A program of this user has slot 1.
fn has_slot(program: &Child, uid: u32) -> SavedHolding {
    let pid = program.id().try_into().expect("a PID");
    let start = Process::find(pid).expect("it runs").started;
    SavedHolding { pid, start, uid, ..has_since(1, 0) }
}

/// Time passes until this is so.
fn comes_to(stage: &mut Stage, mut is_so: impl FnMut(&Stage) -> bool) {
    let begun = Instant::now();
    while !is_so(stage) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not come to that");
        stage.hears(Report::Tick);
        thread::yield_now();
    }
}

/// Each signal is announced in the reply, and sent when the host has read its own announcement. The next one
/// is announced when the time for the one before is over.
#[test]
fn each_signal_is_announced_before_it_is_sent() {
    let mut program = stubborn();
    let (mut stage, record) = with(&[has_slot(&program, own_uid())]);
    let told = |reply| NoticeRecord { reply, ..notice("lab9", None, record.clone()) };
    sees_notice(&mut stage, 8, &told(None));
    let expiry = Expiry { grace: Duration::ZERO, ..EXPIRY };
    stage.site.judged_expiry(&mut stage.local, 1, "seats", Some(expiry));
    assert_eq!(reply(&stage), Some(ENDING));
    sees_notice(&mut stage, 9, &told(Some(ENDING)));
    let next = Some(Reply::Ending(Signal::SIGTERM as i32));
    comes_to(&mut stage, |stage| reply(stage) == next);
    assert_eq!(program.try_wait().expect("a child"), None, "it has ignored the first signal");
    sees_notice(&mut stage, 10, &told(next));
    comes_to(&mut stage, |_| program.try_wait().expect("a child").is_some());
    let status = program.wait().expect("a child");
    assert_eq!(status.signal(), Some(Signal::SIGTERM as i32));
}

/// A program that does not run as the user of its launch is not ended, and the reply says so.
#[test]
fn a_program_that_runs_as_another_user_is_not_ended() {
    let mut program = stubborn();
    let (mut stage, record) = with(&[has_slot(&program, own_uid() + 1)]);
    let told = |reply| NoticeRecord { reply, ..notice("lab9", Some(0), record.clone()) };
    sees_notice(&mut stage, 8, &told(None));
    stage.site.judged_expiry(&mut stage.local, 1, "seats", None);
    sees_notice(&mut stage, 9, &told(Some(ENDING)));
    comes_to(&mut stage, |stage| reply(stage) == Some(Reply::NotPermitted));
    assert_eq!(program.try_wait().expect("a child"), None);
    program.kill().expect("it is ours");
    program.wait().expect("it has ended");
}
