//! The claims of a launch, in the types that judge and keepers share. A claim says where slots are kept, how
//! many may be held and when, and which rules ask for it. This is plain data: nothing here knows a policy, a
//! lock or a process.

pub mod claim;
pub mod group;
pub mod keyword;
pub mod location;
pub mod outside;
pub mod provenance;
pub mod runs;
pub mod slots_wanted;
pub mod span_of_time;

pub(crate) use self::keyword::Keyword;
pub use self::{
    claim::{
        Claim, Demand, ElapsedFrom, ExpireKill, Expiry, LAST_SLOT, Launch, LookupError, Member, Names, Pace,
        Pause, Reserved, Setting, Terms, TooSoon, common,
    },
    group::{Group, MOST_SHARED, Seats},
    keyword::{Admit, Hold, Keeper, Nested, OnLost, Queue, Unreachable},
    location::{AgentLocation, Creation, FileLocation, Location, MOST_AT_SITE, name_on_site, table_of_site},
    outside::{Counts, Of, Outside, SAMPLES, SharedBy, WhenStale},
    provenance::{Kept, Origin, Place, Provenance, is_number, rule_title},
    runs::Runs,
    slots_wanted::{Amount, NamedSlots, Slots, Unclear, WhyUnclear},
    span_of_time::{Wait, parse_duration, show_duration},
};
