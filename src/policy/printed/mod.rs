//! The policy in force, printed as one file for each layer: drop-ins merged, aliases replaced, defaults
//! written out. The printed policy decides as the original does; comments, spelling and `[[test]]` tables are
//! not kept. Before it becomes text it consists of tables, which are used to compare two policies.

mod layer;
#[cfg(test)]
mod tests;

pub(super) use self::layer::Part;
pub use self::layer::PartKind;
use self::layer::{Printing, RepositoryNames};
use super::{
    ExpectedClaim, Held, Holder, LayerKind, Person, Policy, Rule, Scenario, Table, Users, Waiting,
    rule::Slots,
    toml_text::{inline_table, key, list, string},
};
use crate::judge::terms::Keyword;

impl Policy {
    /// The text of every layer, the system's first.
    pub fn print(&self) -> Vec<(LayerKind, String)> {
        let parts = self.parts().into_iter().zip(&self.layers);
        parts.map(|(parts, layer)| (layer.kind, text(&parts))).collect()
    }

    /// The tables of every layer.
    pub(super) fn parts(&self) -> Vec<Vec<Part<'_>>> {
        let names = RepositoryNames::new(self);
        let layers = self.layers.iter().enumerate();
        layers.map(|(index, layer)| Printing { policy: self, names: &names, index }.parts(layer)).collect()
    }

    /// The families of a layer, each with the order of its rules.
    pub(super) fn families(&self, layer: usize) -> Vec<Part<'_>> {
        let mut families: Vec<(&str, Vec<&Rule>)> = Vec::new();
        for rule in self.sequence.iter().map(|rule| &self.rules[*rule]).filter(|rule| rule.layer == layer) {
            let Some(name) = &rule.first_of else { continue };
            match families.iter_mut().find(|(known, _)| known == name) {
                Some((_, rules)) => rules.push(rule),
                None => families.push((name, vec![rule])),
            }
        }
        families.into_iter().map(|(name, rules)| family(name, &rules)).collect()
    }

    /// The tests, as tables.
    pub(super) fn test_parts(&self) -> Vec<Part<'_>> {
        let names = RepositoryNames::new(self);
        self.scenarios.iter().map(|scenario| part(scenario, &names)).collect()
    }
}

fn family<'p>(name: &str, rules: &[&Rule]) -> Part<'p> {
    let mut keys = Table::default();
    keys.set("order", list(rules.iter().map(|rule| string(rule.shown_name()))));
    Part { name: name.to_owned(), ..Part::only(PartKind::Family, keys) }
}

fn text(parts: &[Part<'_>]) -> String {
    parts.iter().fold("version = 1\n".to_owned(), |text, part| text + &part.to_string())
}

// A test, printed as a table.

fn part<'p>(scenario: &'p Scenario, names: &RepositoryNames) -> Part<'p> {
    let Scenario {
        name,
        place,
        person,
        command,
        path,
        arguments,
        host,
        directory,
        environment,
        time,
        cpus,
        held,
        waiting,
        expect,
        by,
        claims,
        wait,
        hold,
    } = scenario;
    let mut keys = Table::default();
    for (key, value) in print_person(person) {
        keys.set(key, value);
    }
    keys.set("command", string(&command.to_string_lossy()));
    keys.set("path", string(&path.to_string_lossy()));
    keys.set("arguments", list(arguments.iter().map(|argument| string(&argument.to_string_lossy()))));
    keys.set("host", string(&host.to_string_lossy()));
    keys.set("directory", string(&directory.to_string_lossy()));
    let variables = environment.iter().map(|(name, value)| (key(name), string(&value.to_string_lossy())));
    keys.set("environment", inline_table(variables));
    keys.set_some("time", time.map(|time| string(&time.to_string())));
    keys.set("cpus", cpus);
    keys.set("use", inline_table(held.iter().map(|held| print_held(held, names))));
    let waiting = waiting.iter().map(|Waiting { repository, member, by }| {
        let by = print_users(by, |person| inline_table(print_person(person)));
        (key(&table_of(*repository, member.as_deref(), names)), by)
    });
    keys.set("waiting", inline_table(waiting));
    keys.set("expect", string(expect.word()));
    keys.set_some("by", by.as_deref().map(string));
    let claims = claims.as_ref().map(|claims| list(claims.iter().map(|claim| print_claim(claim, names))));
    keys.set_some("claims", claims);
    keys.set_some("wait", wait.map(|wait| string(&wait.to_string())));
    keys.set_some("hold", hold.map(|hold| string(hold.word())));
    Part { kind: PartKind::Test, name: name.clone(), place: Some(place), keys }
}

fn print_person(person: &Person) -> Vec<(&'static str, String)> {
    let Person { user, uid, groups, netgroups } = person;
    let is_usual = *uid == if user == "root" { 0 } else { 1000 };
    let user = if is_usual { string(user) } else { uid.to_string() };
    vec![("user", user), ("groups", list(groups.iter().chain(netgroups).map(|group| string(group))))]
}

fn print_held(Held { repository, member, by }: &Held, names: &RepositoryNames) -> (String, String) {
    let holder = |Holder { person, slots }: &Holder| {
        inline_table(print_person(person).into_iter().chain([("slots", slots.to_string())]))
    };
    (key(&table_of(*repository, member.as_deref(), names)), print_users(by, holder))
}

fn print_users<T>(users: &Users<T>, one: impl Fn(&T) -> String) -> String {
    match users {
        Users::Alike(number) => number.to_string(),
        Users::These(listed) => list(listed.iter().map(one)),
    }
}

/// `matlab`, or `matlab-per-user [ann]`.
fn table_of(repository: usize, member: Option<&str>, names: &RepositoryNames) -> String {
    let name = names.of(repository);
    member.map_or_else(|| name.to_owned(), |member| format!("{name} [{member}]"))
}

fn print_claim(claim: &ExpectedClaim, names: &RepositoryNames) -> String {
    let ExpectedClaim { repository, member, slots, limit } = claim;
    let slots = slots.map(|slots| match slots {
        Slots::Number(number) => number.to_string(),
        Slots::All => string("all"),
    });
    let keys = [
        ("repository", Some(string(&table_of(*repository, member.as_deref(), names)))),
        ("slots", slots),
        ("limit", limit.map(|limit| limit.to_string())),
    ];
    inline_table(keys.into_iter().filter_map(|(key, value)| Some((key, value?))))
}
