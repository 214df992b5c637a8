//! A file of a repository, or a table of the agent, in a listing: where it is, and its settings in the
//! policy.

use std::{
    ffi::OsStr,
    ops::RangeInclusive,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use crate::{
    acquire::is_for_queue,
    judge::{
        Request, limit_of_most, listed,
        terms::{LookupError, Member, Names, Outside, Pause, Queue, WhenStale, claim, provenance},
    },
    keeper::{
        Client, Holder, KeeperError, Line, LockPath, Means, NoSample, Pruned, Sample, TableSnapshot, Used,
        Waiter, WaitingProcess,
        agent::{self, message::UnreadableSlot},
        file::{
            file::LockFile,
            prune::{prune, reset},
        },
        outside,
        table::Table,
    },
    launch::{Situation, SystemNames, failed},
    policy::{self, Placeholder, Policy, Repository},
    sys::{NameCache, accounts},
    text::visible,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// One lock file.
pub(crate) struct ListedFile {
    /// The repository's name.
    pub(crate) name: String,
    /// Its member, if there is one for each, from its name.
    pub(crate) member: Option<String>,
    /// The values in its name, in the order of the placeholders, up to the one where the name was cut.
    pub(crate) values: Vec<Member>,
    /// The maximum length of its queue.
    pub(crate) queue: Queue,
    pub(super) kept_at: KeptAt,
    /// Its settings by the policy, as far as names could be looked up.
    pub(super) terms: Result<Terms, LookupError>,
}

/// Where a table of slots is.
pub(super) enum KeptAt {
    /// A lock file of the policy.
    File(PathBuf, Way),
    /// A lock file that was named by its path, which should exist.
    Named(PathBuf),
    /// A table of the agent's, by its name.
    Agent(String),
}

/// How many slots are free.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Free {
    /// For every launch.
    pub(crate) now: u64,
    /// For waiting launches only.
    pub(crate) for_queue: u64,
}

impl Free {
    /// `2 kept for the queue`, if there are any.
    pub(crate) fn note(self) -> Option<String> {
        (self.for_queue > 0).then(|| format!("{} kept for the queue", self.for_queue))
    }
}

/// What a sample has of a repository.
pub(crate) struct UseOutside {
    /// How many slots are in use outside rungate.
    pub(crate) slots: u64,
    /// How long ago it was measured.
    pub(crate) age: Duration,
    /// The programs on this host that need a slot and have none.
    pub(crate) programs: Vec<Line>,
}

fn program(line: &Line) -> Value {
    json!({ "pid": line.pid, "user": line.user, "command": line.command })
}

/// How its file is reached.
#[derive(Clone, Default)]
pub(super) struct Way {
    pub(super) base: PathBuf,
    private: Option<PathBuf>,
    /// Whether the caller wrote the policy that names it.
    is_own: bool,
}

impl Way {
    pub(super) fn to(known: &policy::Repository, policy: &Policy, situation: &Situation) -> Self {
        let base = known.base(&situation.runtime);
        let private = base.starts_with(&situation.runtime).then(|| situation.runtime.clone());
        Self { base, private, is_own: !policy.layers()[known.layer].is_of_system() }
    }

    /// The path to a file in a directory.
    pub(super) fn within(base: PathBuf, situation: &Situation) -> Self {
        let private = base.starts_with(&situation.runtime).then(|| situation.runtime.clone());
        Self { base, private, is_own: false }
    }

    pub(super) fn place<'a>(&'a self, path: &'a Path) -> LockPath<'a> {
        LockPath {
            path,
            base: &self.base,
            private: self.private.as_deref(),
            owner: None,
            is_own: self.is_own,
        }
    }
}

impl ListedFile {
    /// Where it is, if it is a lock file.
    pub(crate) fn place(&self) -> Option<LockPath<'_>> {
        match &self.kept_at {
            KeptAt::File(path, way) => Some(way.place(path)),
            KeptAt::Named(path) => Some(LockPath::named(path)),
            KeptAt::Agent(_) => None,
        }
    }

    /// Its path, if it is a lock file.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.kept_at {
            KeptAt::File(path, _) | KeptAt::Named(path) => Some(path),
            KeptAt::Agent(_) => None,
        }
    }

    /// Its name with the agent, if it is a table of the agent's.
    pub(crate) fn table(&self) -> Option<&str> {
        match &self.kept_at {
            KeptAt::File(..) | KeptAt::Named(_) => None,
            KeptAt::Agent(table) => Some(table),
        }
    }

    pub(crate) fn survey(&self) -> Result<TableSnapshot, KeeperError> {
        match &self.kept_at {
            KeptAt::File(path, way) => Ok(TableSnapshot::of(&way.place(path))?),
            KeptAt::Named(path) => Ok(TableSnapshot::of_existing(&LockPath::named(path))?),
            KeptAt::Agent(table) => Ok(agent::survey(table)?),
        }
    }

    /// Slots with unknown holders, because the site's value is unreadable.
    pub(crate) fn unreadable_slots(&self, survey: &TableSnapshot) -> Vec<UnreadableSlot> {
        self.table().map_or_else(Vec::new, |table| agent::unreadable_slots(table, &survey.holders))
    }

    /// How many slots every launch may have, and how many more only waiting launches, judged as for a new
    /// launch. None if the limit is not known.
    pub(crate) fn free(&self, survey: &TableSnapshot, generation: u16) -> Option<Free> {
        let outside = match self.outside() {
            Some(Ok(outside)) => outside.slots,
            Some(Err(_)) if self.needs_sample() => u64::MAX,
            Some(Err(_)) | None => 0,
        };
        let taken = survey.used.saturating_add(self.kept_idle(survey)).saturating_add(outside);
        let idle = self.limit()?.saturating_sub(taken);
        let is_for_queue = idle > 0 && !survey.waiting.is_empty() && self.is_for_queue(generation);
        Some(if is_for_queue { Free { now: 0, for_queue: idle } } else { Free { now: idle, for_queue: 0 } })
    }

    fn open(&self) -> Option<Table> {
        match (self.place(), &self.kept_at) {
            (Some(place), _) => LockFile::open_to_read(&place).ok().flatten().map(Rc::new).map(Table::File),
            (None, KeptAt::Agent(table)) => agent::look(table).ok().flatten().map(Table::Memory),
            (None, _) => None,
        }
    }

    /// What is in use outside rungate, if the policy has it measured.
    pub(crate) fn outside(&self) -> Option<Result<UseOutside, NoSample>> {
        let outside = self.terms.as_ref().ok()?.outside.as_ref()?;
        let (sample, lines) = match Sample::read(outside).and_then(|it| it.lines(outside).map(|of| (it, of)))
        {
            Ok(known) => known,
            Err(unknown) => return Some(Err(unknown)),
        };
        let table = self.open();
        let held = table.as_ref().and_then(|table| table.occupancy(None, Means::All).ok());
        let (held, _) = held.unwrap_or_default();
        let vouched = table.and_then(|table| table.vouched(&held).ok()).unwrap_or_default();
        let names = outside::Names { all: self.names(), out_of_order: self.out_of_order() };
        let slots = Used::of(&sample, &lines, outside, (&held, &vouched), &names, 0).slots();
        let programs = lines.into_iter().filter(|line| line.command.is_some()).collect();
        Some(Ok(UseOutside { slots, age: sample.age(), programs }))
    }

    /// The same for people: `2 in use outside rungate`, or why that is not known.
    pub(crate) fn outside_note(&self) -> Option<String> {
        Self::note_of(self.outside().as_ref())
    }

    /// The same for what was found.
    pub(crate) fn note_of(outside: Option<&Result<UseOutside, NoSample>>) -> Option<String> {
        match outside? {
            Ok(UseOutside { slots: 0, .. }) => None,
            Ok(UseOutside { slots, .. }) => Some(format!("{slots} in use outside rungate")),
            Err(unknown) => Some(unknown.to_string()),
        }
    }

    /// How many slots stay taken although their programs have ended: `2 lingering`.
    pub(crate) fn linger_note(survey: &TableSnapshot) -> Option<String> {
        let lingering = survey.holders.iter().filter(|holder| holder.lingers_until.is_some());
        let slots: u64 = lingering.map(|holder| holder.slots.1 - holder.slots.0 + 1).sum();
        (slots > 0).then(|| format!("{slots} lingering"))
    }

    /// Whether launches are refused while use outside is unknown.
    pub(crate) fn needs_sample(&self) -> bool {
        let outside = self.terms.as_ref().ok().and_then(|terms| terms.outside.as_ref());
        outside.is_some_and(|outside| outside.when_stale == WhenStale::Refuse)
    }

    /// If it cannot be read again, the state of a moment ago counts: free slots are free.
    fn is_for_queue(&self, generation: u16) -> bool {
        let table = self.open();
        // The limit of a file that was named by its path comes from no policy.
        let generation = if matches!(self.kept_at, KeptAt::Named(_)) { 0 } else { generation };
        let terms = claim::Terms { slots: 1, limit: self.limit().unwrap_or(0), ..claim::Terms::default() };
        let terms = claim::Terms { zones: self.zones_of_all(), ..terms };
        table.is_some_and(|table| is_for_queue(&table, &terms, generation).unwrap_or(false))
    }

    /// The slots that are not kept; none if all are kept.
    fn zones_of_all(&self) -> Option<Vec<RangeInclusive<u64>>> {
        let mut kept: Vec<&RangeInclusive<u64>> = self.kept().iter().map(|(slots, _)| slots).collect();
        kept.sort_by_key(|slots| *slots.start());
        let highest = self.limit()? + self.out_of_order().len() as u64;
        let mut next = 1;
        let mut zones = Vec::new();
        for slots in &kept {
            zones.push(next..=slots.start().saturating_sub(1));
            next = slots.end() + 1;
        }
        zones.push(next..=highest);
        zones.retain(|zone| !zone.is_empty());
        (!kept.is_empty()).then_some(zones)
    }

    /// The same, without a search for holders without a record.
    pub(crate) fn glance(&self) -> Result<TableSnapshot, KeeperError> {
        match self.place() {
            Some(place) => Ok(TableSnapshot::at_a_glance(&place)?),
            None => self.survey(),
        }
    }

    /// Forgets when it was last used. Returns whether there was anything to forget.
    pub(crate) fn reset(&self) -> Result<bool, KeeperError> {
        match &self.kept_at {
            KeptAt::File(path, way) => Ok(reset(&way.place(path))?),
            KeptAt::Named(path) => Ok(reset(&LockPath::named(path))?),
            KeptAt::Agent(table) => Ok(Client::connect()?.reset(vec![table.clone()])?),
        }
    }

    /// Removes it, if it is a lock file that is not needed any more.
    pub(crate) fn prune(&self, pause: Option<Pause>, dry_run: bool) -> Result<Pruned, KeeperError> {
        match &self.kept_at {
            KeptAt::File(path, way) => Ok(prune(&way.place(path), pause, dry_run)?),
            KeptAt::Named(_) | KeptAt::Agent(_) => Ok(Pruned::NotOurs),
        }
    }

    pub(crate) fn limit(&self) -> Option<u64> {
        self.terms.as_ref().ok()?.limit
    }

    /// `limit of %power, 1 out of order`, if it is not the limit of all, or not the number of slots.
    pub(crate) fn limit_note(&self) -> Option<String> {
        let limit_of = self.limit_of().map(str::to_owned);
        provenance::reason(limit_of, self.out_of_order().len())
    }

    /// `limit of %power`
    pub(crate) fn limit_of(&self) -> Option<&str> {
        self.terms.as_ref().ok()?.limit_note.as_deref()
    }

    /// The names of its slots, if they have any.
    pub(crate) fn names(&self) -> &[String] {
        self.terms.as_ref().map_or(&[], |terms| &terms.names)
    }

    /// The names of a holder's slots.
    pub(crate) fn names_of(&self, (first, last): (u64, u64)) -> Vec<&str> {
        let called = |slot: u64| self.names().get(usize::try_from(slot).ok()?.checked_sub(1)?);
        let last = last.min(self.names().len() as u64);
        (first..=last).filter_map(called).map(String::as_str).collect()
    }

    /// The slots that no launch gets.
    pub(crate) fn out_of_order(&self) -> &[u32] {
        self.terms.as_ref().map_or(&[], |terms| &terms.out_of_order)
    }

    /// Why the limit is unknown.
    pub(crate) fn failure(&self) -> Option<&LookupError> {
        self.terms.as_ref().err()
    }

    fn kept(&self) -> &[(RangeInclusive<u64>, String)] {
        self.terms.as_ref().map_or(&[], |terms| &terms.kept)
    }

    /// Whether slots are kept for some users.
    pub(crate) fn keeps(&self) -> bool {
        !self.kept().is_empty()
    }

    /// How many of the slots that only some may use are idle.
    pub(crate) fn kept_idle(&self, survey: &TableSnapshot) -> u64 {
        self.kept().iter().map(|(slots, _)| survey.free_among(slots)).sum()
    }

    /// `3 kept for %cad`, for idle slots.
    pub(crate) fn kept_note(&self, survey: &TableSnapshot) -> Option<String> {
        let idle = self.kept().iter().map(|(slots, whom)| (survey.free_among(slots), whom));
        let notes: Vec<String> = idle
            .filter(|(idle, _)| *idle > 0)
            .map(|(idle, whom)| format!("{idle} kept for {whom}"))
            .collect();
        (!notes.is_empty()).then(|| notes.join(", "))
    }

    /// `seats-per-user [ann]`
    pub(crate) fn title(&self) -> String {
        match &self.member {
            Some(member) => format!("{} [{member}]", self.name),
            None => self.name.clone(),
        }
    }

    /// The columns of every listing of a table that could be read.
    pub(crate) fn read_to_json(&self, survey: &TableSnapshot, free: Option<Free>) -> Value {
        let mut value = self.to_json();
        value["used"] = json!(survey.used);
        value["kept"] = json!(self.kept_idle(survey));
        value["kept_for"] = json!(self.kept_note(survey));
        value["kept_for_queue"] = json!(free.map(|free| free.for_queue));
        value
    }

    /// The columns that need no table.
    pub(crate) fn to_json(&self) -> Value {
        let out_of_order = self.out_of_order().iter().map(|slot| u64::from(*slot));
        json!({
            "repository": self.name,
            "member": self.member,
            "path": self.path().map(visible),
            "limit": self.limit(),
            "limit_of": self.limit_of(),
            "out_of_order": out_of_order.flat_map(|slot| self.names_of((slot, slot))).collect::<Vec<_>>(),
            "queue": self.queue.most,
            "queue_per_user": self.queue.per_user,
            "outside": self.outside().map(|outside| match outside {
                Ok(outside) => json!({
                    "slots": outside.slots,
                    "age": outside.age.as_secs(),
                    "programs": outside.programs.iter().map(program).collect::<Vec<_>>(),
                    "error": null,
                }),
                Err(unknown) => json!({
                    "slots": null,
                    "age": null,
                    "programs": [],
                    "error": unknown.to_string(),
                }),
            }),
        })
    }
}

// The owner of one file of a repository, known only by the name of the file: for the policy's settings for
// their launches. The owner's groups are those of the database, because there is no session to query.

/// The policy's settings for one file.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    pub(super) limit: Option<u64>,
    /// `limit of %power`
    pub(super) limit_note: Option<String>,
    /// The names of its slots, from the first on.
    pub(super) names: Vec<String>,
    /// Its slots that no launch gets.
    pub(super) out_of_order: Vec<u32>,
    /// The slots that only some may use, each range with the users that it is kept for.
    pub(super) kept: Vec<(RangeInclusive<u64>, String)>,
    /// How use is known that rungate did not start.
    pub(super) outside: Option<Outside>,
}

/// The owner of files of a repository.
pub(super) struct Owner<'a> {
    pub(super) policy: &'a Policy,
    pub(super) known: &'a Repository,
    pub(super) situation: &'a Situation,
}

/// No user and no group has this number.
const NOBODY: u32 = u32::MAX;

/// The member by the name of a file, as far as the system knows it.
#[derive(Default)]
struct Named {
    user: Known,
    group: Known,
}

/// A number, and the name if the file has it.
type Known = Option<(u32, Option<String>)>;

impl Owner<'_> {
    /// The policy's settings for the file of these members, one for each placeholder of the path.
    pub(super) fn terms(&self, members: &[Member]) -> Result<Terms, LookupError> {
        let mut names = Named::default();
        let mut value: &[u8] = &[];
        let mut host = self.situation.host.as_os_str();
        let (mut command, mut directory) = (OsStr::new(""), Path::new("/"));
        // If all have one limit, no look-up is needed.
        let is_same = self.known.limits.is_empty() && self.known.outside.is_none();
        for (placeholder, member) in self.known.placeholders().zip(members) {
            let text = OsStr::from_bytes(member.value());
            match placeholder {
                Placeholder::User | Placeholder::Uid | Placeholder::Group | Placeholder::Gid if is_same => {}
                Placeholder::User | Placeholder::Uid => names.user = Some(user(member)?),
                Placeholder::Group | Placeholder::Gid => names.group = Some(group(member)?),
                Placeholder::Host => host = text,
                Placeholder::Command => command = text,
                Placeholder::Directory => directory = Path::new(text),
                Placeholder::Argument(_)
                | Placeholder::Arguments
                | Placeholder::Environment(_)
                | Placeholder::Captured(_) => {
                    value = text.as_bytes();
                }
            }
        }
        let uid = names.user.as_ref().map_or(NOBODY, |(uid, _)| *uid);
        let gid = names.group.as_ref().map(|(gid, _)| *gid);
        let gids = if self.known.asks_for_groups() { groups_of(uid)? } else { Vec::new() };
        let request = Request {
            typed: command,
            path: Path::new(command),
            canonical: Path::new(command),
            uid,
            gids: &gids,
            host,
            directory,
            names: &names,
            ..self.nobody()
        };
        let listed = listed(self.policy, self.known, &request, gid, value)?;
        Ok(Terms {
            limit: Some(listed.limit),
            limit_note: listed.limit_of.map(|because| because.limit()),
            names: listed.names.to_vec(),
            out_of_order: listed.out_of_order,
            kept: listed.kept.into_iter().map(|(slots, whom)| (slots, whom.to_string())).collect(),
            outside: listed.outside.map(|outside| {
                // A sample that is not root's is the caller's, whoever owns the file.
                let owner = outside.owner.min(self.situation.credentials.uid);
                Outside { owner, ..outside }
            }),
        })
    }

    /// The limit of those that are not named.
    pub(super) fn limit_of_most(&self) -> u64 {
        limit_of_most(self.policy, self.known, &self.nobody())
    }

    /// A request without command and user, now.
    fn nobody(&self) -> Request<'_> {
        Request {
            typed: OsStr::new(""),
            arguments: &[],
            path: Path::new(""),
            canonical: Path::new(""),
            uid: NOBODY,
            gids: &[],
            host: &self.situation.host,
            directory: Path::new("/"),
            environment: &|_| None,
            now: Timestamp::now(),
            cpus: &accounts::processors,
            runtime: &self.situation.runtime,
            names: &SystemNames,
        }
    }
}

/// The number of a user, and their name if the file has it. A name that could not be in a path reads back as
/// what it became.
fn user(member: &Member) -> Result<(u32, Option<String>), LookupError> {
    match member {
        Member::User(uid) => Ok((*uid, None)),
        Member::Group(_) => Ok((NOBODY, None)),
        Member::Text { value, .. } => {
            let name = String::from_utf8_lossy(value).into_owned();
            Ok((SystemNames.user_id(&name)?.unwrap_or(NOBODY), Some(name)))
        }
    }
}

fn group(member: &Member) -> Result<(u32, Option<String>), LookupError> {
    match member {
        Member::Group(gid) => Ok((*gid, None)),
        Member::User(_) => Ok((NOBODY, None)),
        Member::Text { value, .. } => {
            let name = String::from_utf8_lossy(value).into_owned();
            Ok((SystemNames.group_id(&name)?.unwrap_or(NOBODY), Some(name)))
        }
    }
}

fn groups_of(uid: u32) -> Result<Vec<u32>, LookupError> {
    let account = accounts::account_of_uid(uid).map_err(failed)?;
    account.map_or(Ok(Vec::new()), |account| accounts::groups_of(&account).map_err(failed))
}

impl Names for Named {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        match &self.user {
            Some((known, Some(name))) if *known == uid => Ok(Some(name.clone())),
            _ => SystemNames.user_name(uid),
        }
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        SystemNames.user_id(name)
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        SystemNames.group_id(name)
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        match &self.group {
            Some((known, Some(name))) if *known == gid => Ok(Some(name.clone())),
            _ => SystemNames.group_name(gid),
        }
    }

    fn in_netgroup(&self, netgroup: &str, host: &str, user: &str) -> Result<bool, LookupError> {
        SystemNames.in_netgroup(netgroup, host, user)
    }
}

// What a waiter of a table waits for, as listings show it: a waiter ahead of it in the queue, or slots.
// [`Class::passes`](crate::keeper::Class::passes) decides which launches may overtake which, as in the
// queue.

/// What one waiter waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum WaitsFor {
    /// The nearest waiter ahead that it may not pass.
    Waiter(Waiter),
    /// The only process that holds slots.
    Holder(Holder),
    /// Fewer slots in use than its rule allows: its ceiling is below the limit.
    UseBelow(u64),
    /// As many free slots as it wants.
    Slots(u64),
}

impl WaitsFor {
    /// What the waiter at this position in the queue of a table waits for.
    pub(crate) fn of(survey: &TableSnapshot, place: usize, limit: Option<u64>) -> Self {
        let waiter = &survey.waiting[place];
        let ahead = survey.waiting[..place].iter().rev().find(|older| !waiter.class.passes(older.class));
        if let Some(ahead) = ahead {
            return Self::Waiter(ahead.clone());
        }
        let capacity = waiter.class.capacity;
        if limit.is_some_and(|limit| capacity < limit) {
            return Self::UseBelow((capacity + 1).saturating_sub(waiter.wants.unwrap_or(1)).max(1));
        }
        let mut pids: Vec<Option<String>> = survey.holders.iter().map(Holder::shown_pid).collect();
        pids.dedup();
        match (pids.as_slice(), survey.holders.first()) {
            ([Some(_)], Some(holder)) => Self::Holder(holder.clone()),
            _ => Self::Slots(waiter.wants.unwrap_or(1)),
        }
    }

    /// The waiter ahead, if it waits behind one.
    pub(crate) fn waiter(&self) -> Option<&WaitingProcess> {
        match self {
            Self::Waiter(ahead) => Some(&ahead.process),
            Self::Holder(_) | Self::UseBelow(_) | Self::Slots(_) => None,
        }
    }

    /// `PID 9001 cid`, `use below 30`, `2 free slots`
    pub(crate) fn show(&self, names: &NameCache) -> String {
        let process = |pid: Option<String>, uid: Option<u32>| {
            let pid = pid.unwrap_or_else(|| "?".to_owned());
            let user = uid.map_or_else(String::new, |uid| format!(" {}", visible(names.user(uid))));
            format!("PID {pid}{user}")
        };
        match self {
            Self::Waiter(ahead) => process(ahead.process.shown_pid(), ahead.uid()),
            Self::Holder(holder) => process(holder.shown_pid(), holder.uid),
            Self::UseBelow(most) => format!("use below {most}"),
            Self::Slots(1) => "a free slot".to_owned(),
            Self::Slots(slots) => format!("{slots} free slots"),
        }
    }
}
