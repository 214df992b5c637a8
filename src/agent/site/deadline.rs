//! Until when the programs of this host may run, over the death of its agent. The agent writes down when the
//! host's key was confirmed last, and gives no slot before it has. An agent that starts while etcd cannot be
//! reached counts on from there, as if its predecessor had lived.

use crate::agent::service::Service;

impl Service {
    /// Writes down when the host's key was confirmed, ten times in a ttl at most. What was written before is
    /// earlier, so that no program runs for too long by it.
    pub(super) fn save_confirmation(&mut self) {
        let Some(site) = &mut self.site else { return };
        let Some(confirmed) = site.confirmed else { return };
        if site.saved.is_none_or(|saved| confirmed.saturating_sub(saved) > site.ttl / 10)
            && self.ledger.state().write_confirmation(confirmed).is_ok()
        {
            site.saved = Some(confirmed);
        }
    }

    /// Counts on from what was written down. Where nothing was, this agent kept the site's tables alone.
    pub(super) fn restore_confirmation(&mut self) {
        let Some(site) = &mut self.site else { return };
        site.saved = self.ledger.state().confirmation();
        site.confirmed = site.saved;
    }
}
