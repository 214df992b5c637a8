//! The ways by which people and programs reach commands, and whether each leads to the shims. Those with the
//! same fix are one finding.

use super::{
    context::Context,
    finding::{Finding, Health, Section},
    shims,
};
use crate::{
    cli::Topic,
    launch::{
        program::{Search, directory_of},
        shim::Shim,
    },
    sys::executable,
    text::escape::Show,
    tools::shared::ways_in::{Reach, Way, WayIn, ways_in},
};

/// A way that misses a shim, or for which that is unknown.
struct Missed<'a> {
    way: &'a WayIn,
    shim: &'a Shim,
    reach: Reach,
}

pub(super) fn look(examination: &Context) -> Section {
    let shims = shims::all();
    if shims.is_empty() {
        return Section::new(Topic::Ways, "no shims are installed", Vec::new());
    }
    let ways = ways_in();
    let missed: Vec<Missed<'_>> = ways.iter().filter_map(|way| missed(way, &shims)).collect();
    let mut findings: Vec<Finding> = by_remedy(&missed);
    let is_served = |way: &&WayIn| missed.iter().all(|missed| missed.way.way != way.way);
    let served: Vec<String> = ways.iter().filter(is_served).map(|way| way.way.name()).collect();
    if !served.is_empty() {
        findings.push(Finding::fine("way", format!("the shims work: {}", served.join("; "))));
    }
    if !examination.is_root() {
        findings.push(of_session(&shims));
    }
    Section::new(Topic::Ways, format!("the shims work on {} of {}", served.len(), ways.len()), findings)
}

/// Of the shims that a way misses, those with a program come before dangling ones.
fn missed<'a>(way: &'a WayIn, shims: &'a [Shim]) -> Option<Missed<'a>> {
    let reached = shims.iter().map(|shim| Missed { way, shim, reach: way.reach(shim) });
    reached.filter(|missed| missed.reach != Reach::Shim).min_by_key(|missed| match missed.reach {
        Reach::Other(_) => 0,
        Reach::Nothing => 1,
        Reach::Unknown | Reach::Shim => 2,
    })
}

/// Ways with one fix are one finding, as grave as the gravest of them, even if they lead elsewhere: a line
/// must not be added to a file twice.
fn by_remedy(missed: &[Missed<'_>]) -> Vec<Finding> {
    let mut remedies: Vec<(String, Vec<&Missed<'_>>)> = Vec::new();
    for missed in missed {
        let remedy = missed.way.way.remedy(directory_of(&missed.shim.path));
        match remedies.iter_mut().find(|(known, _)| *known == remedy) {
            Some((_, alike)) => alike.push(missed),
            None => remedies.push((remedy, vec![missed])),
        }
    }
    let finding = |(remedy, alike): (String, Vec<&Missed<'_>>)| {
        let gravest = alike.iter().max_by_key(|missed| missed.health())?;
        let plain = Finding::fine(gravest.code(), told(&alike));
        Some(Finding { health: gravest.health(), ..plain }.mend(remedy))
    };
    remedies.into_iter().filter_map(finding).collect()
}

/// The result of a name on these ways: `sh, logged in; bash, logged in: matlab is not found`.
fn told(missed: &[&Missed<'_>]) -> String {
    let mut ends: Vec<(String, Vec<String>)> = Vec::new();
    for missed in missed {
        let (what, way) = (missed.what(), missed.way.way.name());
        match ends.iter_mut().find(|(known, _)| *known == what) {
            Some((_, ways)) => ways.push(way),
            None => ends.push((what, vec![way])),
        }
    }
    let ends = ends.into_iter().map(|(what, ways)| format!("{}: {what}", ways.join("; ")));
    ends.collect::<Vec<String>>().join("; ")
}

impl Missed<'_> {
    /// A user who types a name and finds nothing misses the shim; a job that finds nothing names its program
    /// differently.
    fn health(&self) -> Health {
        let is_typed = matches!(self.way.way, Way::Login(_) | Way::Ssh(_) | Way::Su | Way::Desktop);
        match self.reach {
            Reach::Other(_) => Health::Warning,
            Reach::Nothing if is_typed => Health::Warning,
            Reach::Nothing | Reach::Unknown | Reach::Shim => Health::Note,
        }
    }

    fn code(&self) -> &'static str {
        match self.reach {
            Reach::Other(_) => "way-past-shims",
            Reach::Nothing => "way-without-shims",
            Reach::Unknown | Reach::Shim => "way-unknown",
        }
    }

    fn what(&self) -> String {
        let name = self.shim.name.shown();
        match &self.reach {
            Reach::Other(program) => format!("{name} is {}, and not its shim", program.shown()),
            Reach::Nothing => format!("{name} is not found"),
            Reach::Unknown | Reach::Shim => self.way.way.unknown().to_owned(),
        }
    }
}

/// The session of the caller: the search path of this process.
fn of_session(shims: &[Shim]) -> Finding {
    let search = Search::of_environment();
    let found = |shim: &Shim| {
        let mut places = search.entries().iter().map(|entry| entry.join(&shim.name));
        places.find(|path| executable::check(path).is_ok())
    };
    let missed = shims.iter().find(|shim| {
        found(shim).is_none_or(|found| executable::identity(&found) != executable::identity(&shim.path))
    });
    let Some(shim) = missed else {
        return Finding::fine("way", "this session: the shims come first");
    };
    let what = match found(shim) {
        Some(program) => format!("{} is {}, and not its shim", shim.name.shown(), program.shown()),
        None => format!("{} is not found", shim.name.shown()),
    };
    Finding::warning("way-past-shims", format!("this session: {what}"))
        .mend(format!("PATH={}:$PATH", directory_of(&shim.path).shown()))
}
