//! A launch's question, judged and carried out: slots, a place in line, or a refusal.

use std::{sync::Arc, time::Instant};

use super::{
    judge::{Case, Judgement, Outcome, Question},
    look::{Looked, Stands},
    order::Order,
    quota::Quota,
    reception::session_answer,
    service::Service,
    session::{Session, Stage},
    site,
};
use crate::keeper::agent::message::{Answer, Granted, Obstacle, Refused, Take, Unwaited, Waits};

impl Service {
    /// A launch asks for slots. What it got before and has not used goes back, but to nobody else before it
    /// was judged.
    pub(super) fn ask(&mut self, number: u64, take: Take) {
        let served_as = self.take_up_unused(number, &take);
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let mut left = Vec::new();
        if let Some(before) = &session.take {
            // Whoever has waited for something else would come before others who wait for this.
            if !take.is_of_same_launch(before) {
                left = session.place.line.tables();
                session.place.line.give_up();
            }
            session.answer(&Answer::Anew, None);
        }
        session.place.is_owed = true;
        session.take = Some(Arc::new(take));
        session.tried.clear();
        session.notices.clear();
        session.noticed.clear();
        let uid = session.peer.uid;
        self.come_back(number);
        // It was its turn, and is.
        if let Some(session) = self.sessions.get_mut(&number)
            && let Some(served_as) = served_as
        {
            session.place.line.come_as(served_as);
        }
        let _ = self.recount(number);
        match self.connections.quotas.may_ask(uid) {
            Ok(()) => self.judge(number),
            Err(quota) => self.refuse_to_judge(number, quota),
        }
        if !left.is_empty() {
            self.write_place(number);
            self.write_tickets(number);
            self.serve(&left);
        }
    }

    /// Whoever asks for so much at once gets nothing, and what is asked is forgotten.
    fn refuse_to_judge(&mut self, number: u64, quota: Quota) {
        let freed = self.free_unused(number);
        self.fail(number, quota.to_string());
        if let Some(session) = self.sessions.get_mut(&number) {
            session.take = None;
        }
        self.are_free(&freed);
    }

    /// Has a launch judged, or judged again.
    fn judge(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.question += 1;
        session.fifos = None;
        session.stage = Stage::Judged;
        self.questions.wait(session.peer.uid, number);
    }

    /// Gives the judges as much as they can do. Where they do nothing, one is judged here, if that takes no
    /// waiting: to wake a judge, and to be woken, takes longer than to judge.
    pub(super) fn have_judged(&mut self) {
        if self.questions.are_at_rest()
            && let Some((uid, number)) = self.questions.next()
        {
            match self.judge_at_once(number) {
                Some(judgement) => {
                    self.questions.is_judged(judgement.uid);
                    self.judged(judgement);
                }
                None => self.give_to_judges(uid, number),
            }
        }
        while let Some((uid, number)) = self.questions.next() {
            self.give_to_judges(uid, number);
        }
    }

    fn judge_at_once(&self, number: u64) -> Option<Judgement> {
        let Session { take, question, peer, .. } = self.sessions.get(&number)?;
        let outcome = self.judge.judge_at_once(take.as_ref()?, peer.uid, peer.groups.as_ref()?)?;
        Some(Judgement { uid: peer.uid, session: number, question: *question, outcome })
    }

    fn give_to_judges(&mut self, uid: u32, number: u64) {
        let Some(Session { take: Some(take), question, peer, .. }) = self.sessions.get(&number) else {
            return self.questions.is_judged(uid);
        };
        let (take, groups) = (Arc::clone(take), peer.groups.clone());
        let case = Case { session: number, question: *question, take, uid: peer.uid, groups };
        if self.cases.send(Question::Launch(case)).is_err() {
            session_answer(&mut self.sessions, number, &Answer::Failed("its judges are gone".to_owned()));
        }
    }

    /// A judge has judged. Whoever asks something else by now is not concerned.
    pub(super) fn judged(&mut self, Judgement { session: number, question, outcome, .. }: Judgement) {
        match self.sessions.get_mut(&number) {
            Some(session) if session.question == question && matches!(session.stage, Stage::Judged) => {}
            _ => return,
        }
        let freed = self.free_unused(number);
        match outcome {
            Outcome::Needs(order) => self.carry_out(number, order, true),
            Outcome::Differs(why) => self.refuse(number, &Answer::Differs(why)),
            Outcome::Failed(why) => self.refuse(number, &Answer::Failed(why)),
            Outcome::Faulty(why) => self.refuse(number, &Answer::Faulty(why)),
            Outcome::TooCostly(rule) => {
                let why = format!(
                    "{rule} has too many patterns for this number of arguments: use fewer arguments, or ask whose file it is for fewer patterns"
                );
                self.refuse(number, &Answer::Failed(why));
            }
        }
        self.are_free(&freed);
        self.flush(number);
    }

    /// Answers that there is nothing, and lets others go on who stood behind this launch.
    pub(super) fn refuse(&mut self, number: u64, answer: &Answer) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.stage = Stage::Idle;
        session.answer(answer, None);
        session.endings.clear();
        session.notices.clear();
        self.stand_down(number);
    }

    /// A launch that wants nothing now stands in no line: it would keep those behind it from what it does not
    /// take.
    pub(super) fn stand_down(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let tables = session.place.line.tables();
        session.place.line.give_up();
        session.place.begun = None;
        session.place.resting = None;
        session.place.begins.answer = None;
        self.write_place(number);
        self.write_tickets(number);
        self.serve(&tables);
    }

    /// The same, for this reason.
    pub(super) fn fail(&mut self, number: u64, why: String) {
        self.refuse(number, &Answer::Failed(why));
    }

    /// Looks whether a launch can have what it needs. `is_asked` where it waits for the answer: one that
    /// stands in line hears only of its turn otherwise.
    pub(super) fn carry_out(&mut self, number: u64, order: Order, is_asked: bool) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        if order.is_empty() {
            let without = order.without.clone();
            let granted = Granted { slots: Vec::new(), without, hold: order.hold, has_waited: false };
            session.stage = Stage::Idle;
            session.answer(&Answer::Granted(granted), None);
            return self.stand_down(number);
        }
        if let Err(quota) = self.has_quota_for(number, &order) {
            return self.refuse(number, &Answer::Failed(quota.to_string()));
        }
        if let Some(name) = order.tables_of_site().next()
            && self.site.is_none()
            && !std::mem::replace(&mut self.has_said_alone, true)
        {
            site::say_alone(name);
        }
        if order.tables_of_site().next().is_some() {
            if !self.is_site_open() {
                return self.rest_without(number, order);
            }
            self.prepare_for_site(number, &order);
        }
        match self.look_once_or_twice(number, &order, is_asked) {
            Looked::Granted(holding) if self.site.is_some() && holding.is_of_site() => {
                self.prove(number, order, *holding);
            }
            Looked::Granted(holding) => self.grant(number, *holding),
            Looked::Failed(why) => self.refuse(number, &Answer::Failed(why)),
            Looked::Stale => self.judge(number),
            Looked::Blocked(stands) => {
                self.begin_endings(number, &stands.to_end);
                if !stands.waits && self.may_change_soon(&order) {
                    return self.rest_without(number, order);
                }
                if !stands.waits {
                    return self.end_or_refuse(number, order, stands.refused, is_asked);
                }
                if let Err(quota) = self.recount(number) {
                    return self.refuse(number, &Answer::Failed(quota.to_string()));
                }
                let has_begun = self.has_begun_to_wait(number);
                let Some(session) = self.sessions.get_mut(&number) else { return };
                session.stage = Stage::Waits(order);
                session.place.next = stands.next;
                let Stands { refused, ahead, .. } = stands;
                let answer = is_asked.then_some(Waits { refused, ahead });
                session.place.begins.answer = answer.or(session.place.begins.answer.take());
                if has_begun {
                    session.begins_to_wait();
                } else {
                    session.place.resting.get_or_insert_with(Instant::now);
                }
                self.write_place(number);
                self.write_tickets(number);
                self.set_due(number);
            }
        }
    }

    /// A launch that may not wait: as long as somebody is being ended for it, it is not refused.
    fn end_or_refuse(&mut self, number: u64, order: Order, refused: Refused, is_asked: bool) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let is_empty = session.endings.is_empty() && session.notices.is_empty();
        if is_empty || session.place.has_waited {
            return self.refuse(number, &Answer::Refused(refused));
        }
        session.stage = Stage::Ends(order);
        if is_asked {
            session.answer(&Answer::Ends(refused), None);
        }
    }

    /// One look; another where the launch finds a queue at its end, and somebody in that does not answer.
    fn look_once_or_twice(&mut self, number: u64, order: &Order, is_asked: bool) -> Looked {
        let looked = self.look(number, order);
        match &looked {
            Looked::Blocked(stands) if is_asked && !stands.waits && self.finds_absent(&stands.refused) => {
                self.look(number, order)
            }
            _ => looked,
        }
    }

    /// Whether somebody in a queue that is at its end does not answer who did when that was last looked at.
    fn finds_absent(&mut self, refused: &Refused) -> bool {
        let ends = |obstacle: &&Obstacle| matches!(obstacle.unwaited, Some(Unwaited::Queue(_)));
        let ended = refused.obstacles.iter().filter(ends);
        let tables = ended.filter_map(|obstacle| self.ledger.store.known(&obstacle.table));
        let mut found = false;
        for number in tables.flat_map(|table| table.sessions()).collect::<Vec<_>>() {
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            found |= !session.place.was_away && session.see_whether_away();
        }
        found
    }

    /// A waiting launch is alive. It looks for itself, and hears how it stands.
    pub(super) fn beat(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.place.beaten = Some(Instant::now());
        session.place.is_owed = true;
        session.place.was_away = false;
        session.place.line.set_away(false);
        match std::mem::replace(&mut session.stage, Stage::Idle) {
            Stage::Waits(order) | Stage::Ends(order) => self.carry_out(number, order, true),
            stage => session.stage = stage,
        }
    }

    /// A launch waits no longer.
    pub(super) fn leave(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        match std::mem::replace(&mut session.stage, Stage::Idle) {
            // What it got meanwhile was told already.
            stage @ (Stage::Has(_) | Stage::Idle | Stage::Proved | Stage::Sweeps(_)) => {
                session.stage = stage;
            }
            Stage::Judged | Stage::Waits(_) | Stage::Ends(_) => self.refuse(number, &Answer::Done(true)),
        }
    }
}
