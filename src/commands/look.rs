//! A claim of a decision beside its repository as it is now: what `explain` shows of both.

use crate::{
    commands::{claims::Claims, names::SystemNames, situation::Situation},
    decision::{self, Claim, Decision, Verdict},
    output::visible::visible,
    repository::{claim::Claim as Wanted, claim::Demand, survey::Survey},
};

/// A claim, and how its repository looks now.
pub(super) struct Look<'d, 'p> {
    pub(super) claim: &'d Claim<'p>,
    pub(super) wanted: u64,
    pub(super) survey: Result<Survey, String>,
}

/// Looks at the repositories of every claim of a decision.
pub(super) fn looks_of<'d, 'p>(decision: &'d Decision<'p>, situation: &Situation) -> Vec<Look<'d, 'p>> {
    let Verdict::Start(terms) = &decision.verdict else { return Vec::new() };
    let claims = Claims::of(&terms.demands, &situation.runtime);
    let wanted: Vec<&Wanted> = claims.demands.iter().flat_map(Demand::options).collect();
    let judged = terms.demands.iter().flat_map(decision::Demand::claims);
    judged
        .zip(wanted)
        .map(|(claim, wanted)| Look {
            claim,
            wanted: wanted.slots.under(wanted.limit),
            survey: Survey::of(&claim.path).map_err(|error| error.to_string()),
        })
        .collect()
}

impl Look<'_, '_> {
    /// `seats-per-user [ann]`
    pub(super) fn title(&self) -> String {
        let member = self.claim.member_name(&SystemNames).map(|member| format!(" [{member}]"));
        visible(format!("{}{}", self.claim.repository.shown_name(), member.unwrap_or_default()))
    }

    /// What is to be said of it.
    pub(super) fn verdict(&self) -> String {
        let limit = u64::from(self.claim.effective_limit());
        match &self.survey {
            Err(error) => visible(error),
            Ok(_) if limit == 0 => "CLOSED: its limit is 0".to_owned(),
            Ok(_) if self.wanted > limit => "NEVER: more than the limit".to_owned(),
            Ok(survey) if survey.used + self.wanted > limit => {
                let pids: Vec<String> = survey
                    .holders
                    .iter()
                    .take(4)
                    .map(|holder| holder.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string()))
                    .collect();
                let more = if survey.holders.len() > 4 { " …" } else { "" };
                format!("FULL: PID {}{more}", pids.join(" "))
            }
            Ok(_) => "ok".to_owned(),
        }
    }

    /// Whether the claim could be met now.
    pub(super) fn has_room(&self) -> bool {
        let limit = u64::from(self.claim.effective_limit());
        self.survey.as_ref().is_ok_and(|survey| survey.used + self.wanted <= limit)
    }
}
