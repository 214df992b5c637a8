//! `rungate end`: ends the named holders, or all overdue ones. The keeper of the slots proves the identity of
//! a holder, and decides whether the caller may end it. This file finds the holders, asks, and reports.

use std::{
    ffi::{OsStr, OsString},
    time::SystemTime,
};

use crate::{
    cli::EndArguments,
    judge::terms::Expiry,
    keeper::{
        Client, EvictionOutcome, Holder, KeeperError, LockPath, MOST_CHOSEN, Overdue, TableSnapshot,
        agent::{
            self,
            message::{Chosen, Evict, Which},
        },
        file::{expiry, file::LockFile},
        memory,
    },
    launch::{
        Situation, journal,
        log::event::{Event, Kind},
    },
    policy::Policy,
    sys::{NameCache, Process, accounts, descriptor, process},
    text::{Clock, Error, ExitStatus, age, print, stream, table::Table, visible, word},
    tools::{
        policy::question,
        shared::{ListedFile, RepositoryFiles, repositories, unseen_ends},
    },
};

/// Ends the holders that the arguments name.
pub(crate) fn run(arguments: &EndArguments, situation: &Situation) -> Result<u8, Error> {
    let policy = situation.load_policy()?;
    let lineage = process::own_lineage().collect();
    let mut end = End { policy: &policy, situation, arguments, lineage, status: ExitStatus::Success };
    match &arguments.repository {
        _ if arguments.overdue => end.overdue()?,
        Some(repository) => end.chosen(repository)?,
        None => {
            let text = "name the repository whose holders to end";
            let advice = "To end one holder: rungate end REPOSITORY PID\n\
                          To end all overdue holders: rungate end --overdue";
            return Err(Error::new(ExitStatus::Usage, text).advise(advice.to_owned()));
        }
    }
    Ok(end.status as u8)
}

struct End<'a> {
    policy: &'a Policy,
    situation: &'a Situation,
    arguments: &'a EndArguments,
    /// The processes that have started this one, and itself.
    lineage: Vec<i32>,
    status: ExitStatus,
}

/// A holder of one of the repository's tables.
struct Row<'f> {
    file: &'f ListedFile,
    holder: Holder,
}

/// The holders of one table that must be ended, each process once.
struct EvictionPlan<'f> {
    file: &'f ListedFile,
    /// None if the agent keeps the table.
    open: Option<LockFile>,
    holders: Vec<Overdue>,
}

impl<'f> EvictionPlan<'f> {
    /// With the holders that are ended together with them.
    fn of(file: &'f ListedFile, open: Option<LockFile>, holders: Vec<Overdue>) -> Self {
        Self { file, open, holders: holders.into_iter().flat_map(Overdue::each).collect() }
    }
}

impl End<'_> {
    fn uid(&self) -> u32 {
        self.situation.credentials.uid
    }

    /// How holders of a repository are ended, if the policy says when they are overdue.
    fn expiry(&self, name: &str) -> Option<Expiry> {
        let known = self.policy.repositories().iter().find(|known| known.shown_name() == name)?;
        known.pace().expiry
    }

    /// Ends the holders that are overdue, in the repositories that are named, or in all.
    fn overdue(&mut self) -> Result<(), Error> {
        // The file and the process of each holder stay open.
        descriptor::raise_limit();
        let named: Vec<OsString> =
            self.arguments.repository.iter().chain(&self.arguments.holders).cloned().collect();
        let repositories = repositories::wanted(self.policy, self.situation, &named)?;
        let mut files = Vec::new();
        for repository in &repositories {
            let Some(expiry) = self.expiry(&repository.name) else {
                if named.is_empty() {
                    continue;
                }
                let name = visible(&repository.name);
                let text = format!("{name}: no holder is ever overdue: the policy sets no expire_after");
                return Err(Error::new(ExitStatus::Usage, text));
            };
            files.extend(repository.files.iter().map(|file| (file, expiry)));
        }
        let is_of_agent = |(file, _): &(&ListedFile, _)| file.table().is_some() && !self.arguments.dry_run;
        let (of_agent, of_files): (Vec<_>, Vec<_>) = files.into_iter().partition(is_of_agent);
        let mut all = Vec::new();
        for (file, expiry) in of_files {
            match self.overdue_of(file, &expiry) {
                Ok(to_end) => all.extend(to_end),
                Err(error) => self.complain(file, &error),
            }
        }
        self.carry_out(all);
        // The agent finds them itself, in one table at a time.
        for (file, expiry) in of_agent {
            let table = file.table().unwrap_or_default();
            if let Err(error) = self.evict(file, table, Which::Overdue(expiry.after), &expiry) {
                self.complain(file, &error);
            }
        }
        // The last: who may write into the log can make it long.
        if self.uid() == 0 && !self.arguments.dry_run {
            unseen_ends::look(self.policy, &self.situation.host);
        }
        Ok(())
    }

    fn overdue_of<'f>(
        &self,
        file: &'f ListedFile,
        expiry: &Expiry,
    ) -> Result<Option<EvictionPlan<'f>>, KeeperError> {
        let (open, holders) = match (file.table(), file.place()) {
            (Some(table), _) => {
                let mut overdue = memory::overdue(&agent::survey(table)?.holders, expiry);
                // Each host ends only its own overdue holders.
                overdue.retain(|overdue| overdue.elsewhere.is_none());
                (None, overdue.into_iter().map(|overdue| self.permitted(overdue)).collect())
            }
            (None, Some(place)) => {
                let survey = TableSnapshot::of(&place)?;
                let Some(open) = LockFile::open_to_read(&place)? else { return Ok(None) };
                let overdue = expiry::overdue(&open, &survey.holders, expiry, SystemTime::now())?;
                (Some(open), overdue)
            }
            (None, None) => return Ok(None),
        };
        Ok((!holders.is_empty()).then(|| EvictionPlan::of(file, open, holders)))
    }

    /// Ends the holders of a repository that are named, or all that the caller may end.
    fn chosen(&mut self, name: &OsString) -> Result<(), Error> {
        let repository = self.repository(name)?;
        let title = visible(&repository.name);
        let mut rows = Vec::new();
        for file in &repository.files {
            match file.survey() {
                Ok(survey) => rows.extend(survey.holders.into_iter().map(|holder| Row { file, holder })),
                Err(error) => self.complain(file, &error),
            }
        }
        let named = self.arguments.holders.iter().map(|holder| Target::read(holder, &repository.name));
        let targets = named.collect::<Result<Vec<Target>, Error>>()?;
        let rows = self.wanted(&repository, rows, &targets)?;
        // Only root knows whether the licence server has the seat back, and frees what it names.
        let may_be_freed = self.uid() == 0 && !self.arguments.holders.is_empty();
        let (lingering, rows): (Vec<Row<'_>>, Vec<Row<'_>>) =
            rows.into_iter().partition(|row| row.holder.lingers_until.is_some() && !may_be_freed);
        for row in &lingering {
            self.tell_lingering(row);
        }
        // Who holds a slot is proved. That it is the user or the process named is so far what a record says.
        let is_slot = |row: &&Row<'_>| targets.iter().any(|target| target.is_slot_of(row));
        let (by_slot, by_record): (Vec<&Row<'_>>, Vec<&Row<'_>>) =
            rows.iter().partition(|row| targets.is_empty() || is_slot(row));
        let mut all: Vec<EvictionPlan<'_>> = Vec::new();
        for (rows, targets) in [(by_slot, None), (by_record, Some(targets.as_slice()))] {
            for file in &repository.files {
                let of_file = rows.iter().filter(|row| std::ptr::eq(row.file, file));
                let holders: Vec<Holder> = of_file.map(|row| row.holder.clone()).collect();
                if holders.is_empty() {
                    continue;
                }
                match self.processes_of(file, &holders, targets) {
                    Ok(mut to_end) => {
                        let is_file = to_end.open.is_some();
                        if let Some(above) = to_end.holders.iter().find(|one| is_file && self.is_above(one)) {
                            return Err(has_started_this(&title, &above.holder));
                        }
                        let known = || all.iter().flat_map(|of| &of.holders);
                        to_end.holders.retain(|one| !known().any(|known| known.is_same(one)));
                        all.push(to_end);
                    }
                    Err(error) => self.complain(file, &error),
                }
            }
        }
        let count = all.iter().map(|of| of.holders.len()).sum::<usize>();
        if count == 0 {
            if self.status as u8 == ExitStatus::Success as u8 && lingering.is_empty() {
                stream::complain(&format!("rungate: {title}: {}", self.nobody()));
            }
            return Ok(());
        }
        if !self.arguments.dry_run && !self.arguments.yes {
            self.ask(&title, &all, count)?;
        }
        self.carry_out(all);
        Ok(())
    }

    /// The program has ended, and its slot stays taken for some time.
    fn tell_lingering(&mut self, Row { file, holder }: &Row<'_>) {
        let clock = Clock::now();
        let until = holder.all().filter_map(|holder| holder.lingers_until).max();
        let until = until.map_or_else(|| "later".to_owned(), |until| clock.short(until));
        stream::complain(&format!(
            "rungate: {}: {} cannot be ended: the slot lingers until {until} (linger)\n\
             A launch with the same values can have it before. To free it now (as root): rungate end {} slot:{}",
            visible(file.title()),
            shown(holder),
            word(file.title()),
            holder.slots.0,
        ));
        if !self.arguments.holders.is_empty() {
            self.status = ExitStatus::System;
        }
    }

    fn repository(&self, name: &OsString) -> Result<RepositoryFiles, Error> {
        let mut found = repositories::wanted(self.policy, self.situation, std::slice::from_ref(name))?;
        found
            .pop()
            .ok_or_else(|| Error::new(ExitStatus::Usage, format!("no repository \"{}\"", visible(name))))
    }

    fn nobody(&self) -> &'static str {
        if self.uid() == 0 { "no slot of it is held" } else { "you hold no slot of it" }
    }

    /// The holders that the arguments select. If one of them may not be ended, none is.
    fn wanted<'f>(
        &mut self,
        repository: &RepositoryFiles,
        rows: Vec<Row<'f>>,
        targets: &[Target],
    ) -> Result<Vec<Row<'f>>, Error> {
        let title = visible(&repository.name);
        // The agent knows its holders. Those of a file are known when they are proved.
        let is_above = |row: &Row<'_>| {
            let is_here = row.file.table().is_some() && row.holder.taken.is_some();
            let mut processes = [row.holder.pid, row.holder.keeper].into_iter().flatten();
            is_here && processes.any(|pid| self.lineage.contains(&pid))
        };
        let (own, policy) = (self.uid(), self.policy);
        // Of those who share the slot, one who is not the caller: the end of the others would free nothing.
        let stranger = |row: &Row<'_>| -> Option<Holder> {
            let is_other = |holder: &&Holder| holder.uid.is_some_and(|uid| uid != own);
            // Where users share no slots, another member of the group has only locked the same bytes.
            let shares = row.file.table().is_some() || !is_by_user(policy, row.file);
            let all = row.holder.all().take(if shares { usize::MAX } else { 1 });
            let stranger = all.into_iter().find(is_other);
            let stranger = stranger.or_else(|| Some(&row.holder).filter(|holder| holder.uid.is_none()));
            stranger.filter(|_| own != 0).cloned()
        };
        if targets.is_empty() {
            let mut all = Vec::new();
            for row in rows.into_iter().filter(|row| !is_above(row)) {
                match stranger(&row) {
                    None => all.push(row),
                    Some(other) if row.holder.all().any(|holder| holder.uid == Some(own)) => {
                        self.status = ExitStatus::System;
                        stream::complain(&format!(
                            "rungate: {title}: slot {} is shared with {}, which belongs to {}: only root may end both",
                            row.holder.slots.0,
                            shown(&other),
                            owner_of(&other),
                        ));
                    }
                    Some(_) => {}
                }
            }
            return Ok(all);
        }
        let list = format!("To see who holds its slots: rungate list {}", word(&repository.name));
        for target in targets {
            let meant: Vec<&Row<'_>> = rows.iter().filter(|row| target.means(row)).collect();
            match target {
                Target::Pid(pid) if meant.is_empty() => {
                    let text = format!("{title}: PID {pid} holds no slot of it");
                    return Err(Error::new(ExitStatus::Usage, text).advise(list));
                }
                // If no slot is held, there is nothing to do.
                Target::User(uid) if meant.is_empty() && !rows.is_empty() => {
                    let user = visible(NameCache::new().user(*uid));
                    let text = format!("{title}: {user} holds no slot of it");
                    return Err(Error::new(ExitStatus::Usage, text).advise(list));
                }
                Target::Slot(slot) if meant.is_empty() => {
                    let text = format!("{title}: slot {slot} is not held");
                    return Err(Error::new(ExitStatus::Usage, text).advise(list));
                }
                Target::Name(name) if meant.is_empty() => {
                    let text = format!("{title}: no slot with the name {} is held", visible(name));
                    return Err(Error::new(ExitStatus::Usage, text).advise(list));
                }
                Target::Pid(pid) => {
                    let mut hosts: Vec<&str> =
                        meant.iter().filter_map(|row| row.holder.host.as_deref()).collect();
                    hosts.sort_unstable();
                    hosts.dedup();
                    if hosts.len() > 1 {
                        let text = format!("{title}: there is a PID {pid} on {}", visible(hosts.join(", ")));
                        let advice =
                            format!("Name the slot: rungate end {} slot:N\n{list}", word(&repository.name));
                        return Err(Error::new(ExitStatus::Usage, text).advise(advice));
                    }
                }
                Target::Slot(_) | Target::Name(_) | Target::User(_) => {}
            }
            if let Some((row, other)) = meant.iter().find_map(|row| Some((row, stranger(row)?))) {
                let text = format!("{title}: {} belongs to {}", shown(&other), owner_of(&other));
                let who = match other.uid {
                    Some(uid) if uid != 0 && row.holder.others.is_empty() => {
                        format!("Only root and {} may end it. Ask one of them", owner_of(&other))
                    }
                    _ => "Only root may end it. Ask root".to_owned(),
                };
                let words = self.arguments.holders.iter().map(word).collect::<Vec<_>>().join(" ");
                let advice = format!("{who}: rungate end {} {words}", word(&repository.name));
                return Err(Error::new(ExitStatus::Denied, text).advise(advice));
            }
            if let Some(row) = meant.iter().find(|row| is_above(row)) {
                return Err(has_started_this(&title, &row.holder));
            }
        }
        Ok(rows.into_iter().filter(|row| targets.iter().any(|target| target.means(row))).collect())
    }

    /// The processes behind these holders, each of whom must be one of the targets if there are any. A holder
    /// whose process cannot be seen is named, but not ended.
    fn processes_of<'f>(
        &mut self,
        file: &'f ListedFile,
        holders: &[Holder],
        targets: Option<&[Target]>,
    ) -> Result<EvictionPlan<'f>, KeeperError> {
        if file.table().is_some() {
            let all = memory::chosen(holders).into_iter().chain(memory::lingering(holders));
            let holders = all.map(|holder| self.permitted(holder)).collect();
            return Ok(EvictionPlan::of(file, None, holders));
        }
        for holder in holders.iter().filter(|holder| holder.pid.is_none()) {
            self.status = ExitStatus::System;
            let by_hand = journal::by_hand(file.path());
            stream::complain(&format!(
                "rungate: {}: slot {}: no process can be seen that holds it{by_hand}",
                visible(file.title()),
                holder.slots.0
            ));
        }
        let place: Option<LockPath<'_>> = file.place();
        let open = place.map(|place| LockFile::open_to_read(&place)).transpose()?.flatten();
        let mut chosen =
            open.as_ref().map(|open| expiry::chosen(open, holders)).transpose()?.unwrap_or_default();
        if self.arguments.holders.is_empty() {
            chosen.retain(|found| !self.is_above(found));
        }
        let chosen = match targets {
            Some(targets) => {
                chosen.into_iter().flat_map(|found| self.meant(file, found, holders, targets)).collect()
            }
            None => chosen,
        };
        Ok(EvictionPlan::of(file, open, chosen))
    }

    /// Those of a proved holder and of its group who are meant. Where users do not share slots,
    /// another user's process in the group has only locked the same bytes.
    fn meant(
        &mut self,
        file: &ListedFile,
        found: Overdue,
        records: &[Holder],
        targets: &[Target],
    ) -> Vec<Overdue> {
        let is_named = |one: &&Overdue| targets.iter().any(|target| target.proves(one, records));
        let named: Vec<Option<u32>> = found.all().filter(is_named).map(|one| one.holder.uid).collect();
        if named.is_empty() {
            self.status = ExitStatus::System;
            let Overdue { holder, .. } = &found;
            stream::complain(&format!(
                "rungate: {}: slot {} is held by {}, which belongs to {}. Its record names another holder: nothing was ended\n\
                 To end it: rungate end {} slot:{}",
                visible(file.title()),
                holder.slots.0,
                shown(holder),
                owner_of(holder),
                word(file.title()),
                holder.slots.0,
            ));
            return Vec::new();
        }
        let is_by_user = is_by_user(self.policy, file);
        found.each().filter(|one| !is_by_user || named.contains(&one.holder.uid)).collect()
    }

    /// Whether a proved holder of a file, or one that is ended together with it, has started this command.
    fn is_above(&self, found: &Overdue) -> bool {
        found.all().any(|one| one.job.is_ok_and(|job| self.lineage.contains(&job)))
    }

    /// The agent lets root end every holder, and other users their own.
    fn permitted(&self, overdue: Overdue) -> Overdue {
        let may_be_signalled = self.uid() == 0 || overdue.holder.uid == Some(self.uid());
        let with = overdue.with.into_iter().map(|other| self.permitted(other)).collect();
        Overdue { may_be_signalled, with, ..overdue }
    }

    /// Lists the holders and asks whether to end them.
    fn ask(&self, title: &str, all: &[EvictionPlan<'_>], count: usize) -> Result<(), Error> {
        let holders = if count == 1 { "1 holder".to_owned() } else { format!("{count} holders") };
        if !question::is_there_anybody() {
            let given = self.arguments.repository.iter().chain(&self.arguments.holders);
            let words = given.map(word).collect::<Vec<_>>().join(" ");
            let text = format!("{title}: {holders} would end, and there is no terminal to confirm that");
            let advice =
                format!("To see them: rungate end --dry-run {words}\nTo end them: rungate end --yes {words}");
            return Err(Error::new(ExitStatus::Usage, text).advise(advice));
        }
        let names = NameCache::new();
        let mut table = Table::new(&[">SLOT", ">PID", "USER", "HOST", ">AGE", "COMMAND"]);
        for Overdue { holder, pid, .. } in all.iter().flat_map(|of| &of.holders) {
            let unknown = || "?".to_owned();
            table.row([
                holder.slots.0.to_string(),
                pid.to_string(),
                holder.uid.map_or_else(unknown, |uid| visible(names.user(uid))),
                holder.host.as_ref().map_or_else(unknown, visible),
                holder.age(SystemTime::now()).map_or_else(unknown, age),
                holder.command.as_ref().map_or_else(unknown, visible),
            ]);
        }
        stream::complain(table.render().trim_end());
        match question::ask(&format!("End {holders} of {title}? [y/n] "), &[('y', true), ('n', false)]) {
            Some(true) => Ok(()),
            Some(false) | None => {
                Err(Error::new(ExitStatus::Failure, format!("{title}: no holder was ended")))
            }
        }
    }

    /// Ends them, or says which it would end. The graces of all files run at the same time.
    fn carry_out(&mut self, all: Vec<EvictionPlan<'_>>) {
        if self.arguments.dry_run {
            for EvictionPlan { file, holders, .. } in &all {
                for holder in holders {
                    drop(print(&would_end(file, holder)));
                }
            }
            return;
        }
        let (of_files, of_agent): (Vec<_>, Vec<_>) = all.into_iter().partition(|of| of.open.is_some());
        let expiry = |file: &ListedFile| self.expiry(&file.name).unwrap_or(Expiry::AT_REQUEST);
        let to_end = |of: &EvictionPlan<'_>| (of.holders.clone(), expiry(of.file));
        let to_end: Vec<(Vec<Overdue>, Expiry)> = of_files.iter().map(to_end).collect();
        let open = of_files.iter().filter_map(|of| of.open.as_ref());
        expiry::end_all(open.zip(to_end), |number, holder, fate| match fate {
            Ok(fate) => self.tell(of_files[number].file, holder, fate),
            Err(error) => self.complain(of_files[number].file, &error.into()),
        });
        for EvictionPlan { file, holders, .. } in of_agent {
            if let Err(error) = self.carry_out_by_agent(file, &holders) {
                self.complain(file, &error);
            }
        }
    }

    fn carry_out_by_agent(&mut self, file: &ListedFile, holders: &[Overdue]) -> Result<(), KeeperError> {
        let expiry = self.expiry(&file.name).unwrap_or(Expiry::AT_REQUEST);
        let Some(table) = file.table() else { return Ok(()) };
        for holders in holders.chunks(MOST_CHOSEN) {
            let chosen = holders.iter().filter_map(|Overdue { holder, pid, .. }| {
                Some(Chosen { slot: holder.slots.0, pid: *pid, since: holder.since? })
            });
            let told = self.evict(file, table, Which::These(chosen.collect()), &expiry)?;
            // Holders that the agent does not know any more have ended.
            for holder in holders.iter().filter(|holder| !told.contains(&(holder.pid, holder.holder.since))) {
                self.tell(file, holder, EvictionOutcome::HadLeft);
            }
        }
        Ok(())
    }

    /// Makes the agent end holders. Returns the process and the start of each that it reported.
    fn evict(
        &mut self,
        file: &ListedFile,
        table: &str,
        which: Which,
        expiry: &Expiry,
    ) -> Result<Vec<(i32, Option<SystemTime>)>, KeeperError> {
        let mut told = Vec::new();
        let evict = Evict { table: table.to_owned(), which, grace: expiry.grace, kill: expiry.kill };
        Client::connect()?.evict(evict, &mut |holder, fate| {
            told.push((holder.pid, holder.holder.since));
            self.tell(file, holder, fate);
        })?;
        Ok(told)
    }

    /// Reports the outcome for a holder, and logs it.
    fn tell(&mut self, file: &ListedFile, holder: &Overdue, fate: EvictionOutcome) {
        if !fate.has_left() {
            self.status = ExitStatus::System;
        }
        stream::complain(&journal::describe(&file.title(), file.path(), holder, fate));
        let event = if holder.by.is_some() {
            Event::now(Kind::Expired, "end", self.uid(), &self.situation.host)
        } else {
            let command = holder.holder.command.as_deref().unwrap_or_default();
            let event = Event::now(Kind::Evicted, command, self.uid(), &self.situation.host);
            Event { holder_uid: holder.holder.uid, ..event }
        };
        let event = journal::expired(event, &file.title(), holder, fate);
        for sink in journal::sinks(self.policy, &self.situation.host) {
            let _ = sink.write(&event);
        }
    }

    fn complain(&mut self, file: &ListedFile, error: &KeeperError) {
        let advice = error.advice().map_or_else(String::new, |advice| format!("\n{advice}"));
        stream::complain(&format!("rungate: {}: {error}{advice}", visible(file.title())));
        self.status = ExitStatus::Repository;
    }
}

/// The holders that a word of the command line names.
enum Target {
    Pid(i32),
    /// The slot with this number.
    Slot(u64),
    /// The slot with this name, which may be the number of another one.
    Name(String),
    User(u32),
}

/// Whether launches of different users never share a slot of this file.
fn is_by_user(policy: &Policy, file: &ListedFile) -> bool {
    let mut repositories = policy.repositories().iter();
    repositories.any(|known| known.shown_name() == file.name && known.sharing.is_by_user())
}

impl Target {
    fn read(text: &OsStr, repository: &str) -> Result<Self, Error> {
        let list = || format!("To see who holds its slots: rungate list {}", word(repository));
        let unknown = || {
            let what = format!("\"{}\" is no PID, no user and no slot", visible(text));
            let how =
                "Name a holder by its PID, its user, or its slot by number (slot:3) or name (name:gpu3)";
            Error::new(ExitStatus::Usage, what).advise(format!("{how}.\n{}", list()))
        };
        let name = text.to_str().ok_or_else(unknown)?;
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            return name.parse().map(Self::Pid).map_err(|_| unknown());
        }
        if let Some(slot) = name.strip_prefix("slot:").filter(|slot| !slot.is_empty()) {
            return slot.parse().map(Self::Slot).map_err(|_| {
                let slot = visible(slot);
                let what = format!("\"{slot}\" is not the number of a slot");
                let advice = format!("If it is the name of a slot, write: name:{slot}\n{}", list());
                Error::new(ExitStatus::Usage, what).advise(advice)
            });
        }
        if let Some(called) = name.strip_prefix("name:").filter(|called| !called.is_empty()) {
            return Ok(Self::Name(called.to_owned()));
        }
        match accounts::account_of_name(name) {
            Ok(Some(account)) => Ok(Self::User(account.uid)),
            Ok(None) => Err(unknown()),
            Err(failure) => Err(Error::new(ExitStatus::System, failure.to_string())),
        }
    }

    /// Whether it names a slot of this holder.
    fn is_slot_of(&self, row: &Row<'_>) -> bool {
        matches!(self, Self::Slot(_) | Self::Name(_)) && self.means(row)
    }

    /// Whether a holder is the process or the user named, as the kernel knows it. A record says which process
    /// of a supervisor is its program; an ended one is at least of the same user.
    fn proves(&self, one: &Overdue, records: &[Holder]) -> bool {
        let Ok(job) = one.job else { return true };
        match self {
            Self::Slot(_) | Self::Name(_) => false,
            Self::User(uid) => one.holder.uid == Some(*uid),
            Self::Pid(pid) if *pid == job => true,
            Self::Pid(pid) => match Process::find(*pid) {
                Some(process) => process.parent == job,
                None => records.iter().any(|record| record.pid == Some(*pid) && record.uid == one.holder.uid),
            },
        }
    }

    fn means(&self, Row { file, holder }: &Row<'_>) -> bool {
        match self {
            // A group ends as a whole, whichever of it is named.
            Self::Pid(pid) => holder.all().any(|holder| holder.pid == Some(*pid)),
            Self::Slot(slot) => (holder.slots.0..=holder.slots.1).contains(slot),
            Self::Name(name) => file.names_of(holder.slots).contains(&name.as_str()),
            Self::User(uid) => holder.all().any(|holder| holder.uid == Some(*uid)),
        }
    }
}

fn has_started_this(title: &str, holder: &Holder) -> Error {
    let text = format!("{title}: {} has started this command", shown(holder));
    Error::new(ExitStatus::Denied, text).advise("Start rungate end from another terminal.".to_owned())
}

/// `PID 4711 (matlab)`, or its slot.
fn shown(holder: &Holder) -> String {
    match (holder.pid, &holder.command) {
        (Some(pid), Some(command)) => format!("PID {pid} ({})", visible(command)),
        (Some(pid), None) => format!("PID {pid}"),
        (None, _) => format!("the holder of slot {}", holder.slots.0),
    }
}

/// Its user, for people.
fn owner_of(holder: &Holder) -> String {
    let unknown = || "a user who cannot be seen from here".to_owned();
    holder.uid.map_or_else(unknown, |uid| visible(NameCache::new().user(uid)))
}

fn would_end(file: &ListedFile, overdue: &Overdue) -> String {
    let repository = visible(file.title());
    let who = journal::who(overdue);
    if overdue.holder.lingers_until.is_some() {
        return format!("{repository}: would free slot {} of {who}\n", overdue.holder.slots.0);
    }
    match overdue.job {
        Ok(_) if overdue.may_be_signalled => format!("{repository}: would end {who}\n"),
        Ok(_) => format!("{repository}: could not end {who}, which belongs to another user\n"),
        Err(doubt) => format!("{repository}: would not end {who}: {}\n", journal::why_not(doubt)),
    }
}
