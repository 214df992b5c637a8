//! What a launch got for a question of before and has not used: it goes back, and with it the number under
//! which the launch was served is its own again.

use super::{
    service::Service,
    session::{Session, Stage},
};
use crate::keeper::{Number, agent::message::Take, memory};

impl Service {
    /// Notes what goes back when this question of a launch is judged. Says under which number the launch
    /// comes again: as with a place, it is worth nothing for another launch, nothing once a program has used
    /// what was got by it, and nothing for two at a time.
    pub(super) fn take_up_unused(&mut self, number: u64, take: &Take) -> Option<Number> {
        let Session { stage, peer, .. } = self.sessions.get(&number)?;
        let whose = (peer.pid, peer.started);
        let unused: Vec<u64> = match stage {
            Stage::Has(holding) => vec![*holding],
            // An agent that has died since had given it slots, or the conversation broke off.
            _ if take.is_again => {
                let all = self.ledger.holdings.iter();
                let theirs = all.filter(|(_, holding)| (holding.saved.pid, holding.saved.start) == whose);
                theirs.map(|(number, _)| *number).collect()
            }
            _ => Vec::new(),
        };
        let is_unused =
            |of: &u64| self.ledger.holdings.get(of).is_some_and(|holding| !holding.saved.is_started);
        let unused: Vec<u64> = unused.into_iter().filter(is_unused).collect();
        if unused.is_empty() {
            return None;
        }
        let (mut stand, mut give_way) = (Vec::new(), Vec::new());
        for (other, session) in &mut self.sessions {
            if *other == number || (session.peer.pid, session.peer.started) != whose {
                continue;
            }
            // What is to go back is nobody's to use.
            if matches!(session.stage, Stage::Has(of) if unused.contains(&of)) {
                session.stage = Stage::Idle;
            }
            let is_asked_for = session.unused.extract_if(.., |of| unused.contains(of)).count() > 0;
            if is_asked_for {
                give_way.push(*other);
            } else {
                stand.extend(session.place.line.number());
            }
        }
        // Who asks last comes in its place.
        for other in give_way {
            self.stand_down(other);
        }
        let theirs = unused.iter().filter_map(|of| self.ledger.holdings.get(of)?.saved.served_as);
        let numbers = theirs.filter(|served| served.is_for(take)).map(|served| Number(served.number));
        let served_as = numbers.filter(|served| !stand.contains(served)).min();
        self.sessions.get_mut(&number)?.unused.extend(unused);
        served_as
    }

    /// Frees what a launch had got before and has not used.
    pub(super) fn free_unused(&mut self, number: u64) -> Vec<memory::Table> {
        let unused = self.sessions.get_mut(&number).map(|session| std::mem::take(&mut session.unused));
        let mut unused = unused.unwrap_or_default();
        unused.retain(|of| self.ledger.holdings.get(of).is_some_and(|holding| !holding.saved.is_started));
        unused.into_iter().flat_map(|holding| self.free(holding, false)).collect()
    }
}
