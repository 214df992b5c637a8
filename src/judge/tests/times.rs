//! `when`: local time of the policy's zone.

use super::site::under;

fn day() -> String {
    "[defaults]\ntime_zone = \"Europe/Berlin\"\n[[rule]]\naction = \"deny\"\nwhen = [\"Mon-Fri 08:00-18:00\"]\n".into()
}

#[test]
fn when_is_local_time_of_the_zone_in_the_defaults() {
    // Berlin is one hour ahead in winter, two in summer.
    under(&day()).at("2026-11-20T07:00:00Z").gives("denied by rule 1: command \"matlab\"");
    under(&day()).at("2026-11-20T06:59:00Z").gives("free").traces(["no: when (Mon-Fri 08:00-18:00)"]);
    under(&day()).at("2026-07-20T06:00:00Z").gives("denied by rule 1: command \"matlab\"");
    under(&day()).at("2026-07-20T16:00:00Z").gives("free");
    under(&day()).at("2026-11-22T12:00:00Z").gives("free");
}

/// The time is known wherever a policy asks for it, also if it does so in one place alone and names no zone.
#[test]
fn a_time_counts_in_each_place_alone() {
    let deny = "[[rule]]\nname = \"no\"\naction = \"deny\"\n";
    let denied = "denied by no: command \"matlab\"";
    let always = "when = [\"00:00-24:00\"]";
    under(&format!("[[rule]]\nacquire = []\n{deny}{always}\n")).gives(denied);
    under(&format!("{deny}except = [{{ users = [\"bob\"] }}]\n")).gives(denied);
    under(&format!("{deny}except = [{{ users = [\"bob\"] }}, {{ {always} }}]\n")).gives("free");
    let all = "[delegate.\"20-cad.toml\"]\nowner = \"tutor1\"\nusers = [\"*\"]\ncommands = [\"*\"]\n";
    under(all).delegated("20-cad.toml", &format!("{deny}{always}\n")).gives(denied);
    let repositories = "[repository.b]\nlimit = 1\n[repository.a]\nper = \"user\"\nlimit = 9\n";
    let rule = "[[rule]]\nacquire = [\"a\"]\n";
    let limits = format!("limits = [{{ users = [\"bob\"], limit = 2 }}, {{ {always}, limit = 3 }}]\n");
    under(&format!("{repositories}{limits}{rule}")).gives("1 of 3 a [ann]");
    let of_cad = "users = [\"%cad\"], slots = 2";
    let reserve = format!("reserve = [{{ {of_cad} }}, {{ {of_cad}, {always} }}]\n");
    under(&format!("{repositories}{reserve}{rule}")).claims(|claims| assert_eq!(claims[0].kept.len(), 2));
}

/// What a listing says of members without a limit of their own is the limit of this hour.
#[test]
fn the_limit_of_most_is_that_of_the_hour() {
    let policy = r#"
        [defaults]
        time_zone = "Europe/Berlin"
        [repository.a]
        per = "user"
        limit = 1
        limits = [{ users = ["ann"], limit = 9 }, { when = ["Mon-Fri 08:00-18:00"], limit = 3 }]
    "#;
    let at = |instant: &str| under(policy).at(instant).limits_of_most();
    assert_eq!(at("2026-11-20T06:59:00Z"), [1]);
    assert_eq!(at("2026-11-20T07:00:00Z"), [3]);
}
