//! Which ways in lead to the listed shims, and what the others need.

use serde_json::{Map, Value};

use crate::{
    launch::{program::directory_of, shim::Shim},
    text::{escape::visible, table::Table},
    tools::shared::ways_in::{Reach, WayIn},
};

/// How many shims are named that a way does not lead to.
const NAMED: usize = 3;

/// A table of the ways, and below it what is to be done about those that miss a shim.
pub(super) fn to_text(shims: &[&Shim], ways: &[WayIn]) -> String {
    let mut table = Table::new(&["WAY IN", "SHIMS"]);
    let mut remedies: Vec<String> = Vec::new();
    for way in ways {
        let missed: Vec<&Shim> = shims.iter().copied().filter(|shim| misses(way, shim)).collect();
        table.row([way.way.name(), verdict(way, shims, &missed)]);
        let remedy = missed.first().map(|shim| way.way.remedy(directory_of(&shim.path)));
        remedies.extend(remedy.filter(|remedy| !remedies.contains(remedy)));
    }
    let advice = if remedies.is_empty() {
        String::new()
    } else {
        format!("To have them work on more ways, see rungate-shim(8), or:\n  {}\n", remedies.join("\n  "))
    };
    format!("{}{advice}", table.render())
}

fn misses(way: &WayIn, shim: &Shim) -> bool {
    matches!(way.reach(shim), Reach::Other(_) | Reach::Nothing)
}

fn verdict(way: &WayIn, shims: &[&Shim], missed: &[&Shim]) -> String {
    if shims.iter().any(|shim| way.reach(shim) == Reach::Unknown) {
        way.way.unknown().to_owned()
    } else if missed.is_empty() {
        "work".to_owned()
    } else if missed.len() == shims.len() {
        "do not work".to_owned()
    } else {
        let named: Vec<String> = missed.iter().take(NAMED).map(|shim| visible(&shim.name)).collect();
        let more = missed.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("work, except for {}{more}", named.join(", "))
    }
}

/// Each way by its name, with whether it leads to the shim; null if unknown.
pub(super) fn to_json(shim: &Shim, ways: &[WayIn]) -> Value {
    let reaches = |way: &WayIn| match way.reach(shim) {
        Reach::Shim => Value::Bool(true),
        Reach::Other(_) | Reach::Nothing => Value::Bool(false),
        Reach::Unknown => Value::Null,
    };
    Value::Object(ways.iter().map(|way| (way.way.key(), reaches(way))).collect::<Map<_, _>>())
}
