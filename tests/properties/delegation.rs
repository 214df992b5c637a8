//! Delegation: whatever a department writes into its file, it decides nothing for a launch that is not
//! delegated to it, and lets none off for which it is.

use proptest::{collection::vec, prelude::*, sample::select};
use rungate::{
    policy::{LayerKind, LayerText, Policy},
    text::diagnostic::SourceText,
};

use super::{
    printing::{once, policies, selectors_of_a_rule},
    request::{Launch, launches},
};

const DELEGATION: &str = "[delegate.\"20-cad.toml\"]\nowner = 1\nusers = [\"%cad\"]\ncommands = [\"ma*\"]\n";

/// A file of a department: rules that deny, take what is its own, or lower what is the site's.
fn delegated() -> impl Strategy<Value = String> {
    let actions = [
        "action = \"deny\"",
        "acquire = [\"own\"]",
        "acquire = [\"a\"]",
        "acquire = [{ repository = \"each\", ceiling = 1 }]",
        "acquire = [{ repository = \"env\", ceiling = 1 }, \"own\"]\nwait = \"forever\"",
        "acquire = [{ any_of = [\"own\", { repository = \"a\", slots = 2 }] }]\nhold = \"tree\"",
        "acquire = [{ any_of = [[\"own\", \"device\"], { repository = \"device\", slots = \"all\" }] }]",
        "acquire = [\"job\"]\narguments = { all = [\"-np\", \"{job}\"] }",
        "acquire = [{ repository = \"matlab\", ceiling = \"50%\" }, { repository = \"own\", wait = \"0s\" }]",
    ];
    let rule = (select(actions.to_vec()), selectors_of_a_rule());
    let rule = rule.prop_map(|(action, selectors)| once(&format!("[[rule]]\n{action}\n{selectors}")));
    let head = "[alias]\ntools = [\"mex\"]\n[repository.own]\nlimit = 1\n[repository.a]\nlimit = 2\n\
                [repository.job]\nper = [\"{job}\", \"user\"]\nlimit = 1\n[repository.matlab]\nlimit = 3\nqueue = 1\n\
                [repository.device]\nnames = [\"x\", \"y\"]\nout_of_order = { lab = [\"y\"] }\n";
    vec(rule, 0..5).prop_map(move |rules| format!("{head}{}", rules.concat()))
}

fn read(main: &str, delegated: Option<&str>) -> Policy {
    let main = SourceText::new("/etc/p/policy.toml", format!("{DELEGATION}{main}"));
    let mut layers = vec![LayerText { kind: LayerKind::System, files: vec![main] }];
    layers.extend(delegated.map(|text| LayerText {
        kind: LayerKind::Delegated,
        files: vec![SourceText::new("/etc/p/policy.d/20-cad.toml", text)],
    }));
    Policy::of_layers(layers, false).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The claims of a decision as text, or that it is refused.
fn is_refused(launch: &Launch, policy: &Policy) -> bool {
    let judged = launch.judged_by(policy);
    judged.starts_with("denied") || judged.starts_with("unmatched")
}

proptest! {
    #![proptest_config(super::cases(100))]

    #[test]
    fn nobody_notices_what_is_delegated_to_others([main, _] in policies(), text in delegated(), launches in vec(launches(), 8)) {
        let (without, with) = (read(&main, None), read(&main, Some(&text)));
        for launch in launches {
            if launch.is_of("ma", "cad") {
                prop_assert!(!is_refused(&launch, &without) || is_refused(&launch, &with), "{main}{text}");
            } else {
                // What becomes of the rules of the file stands at the end.
                let (without, with) = (launch.judged_by(&without), launch.judged_by(&with));
                prop_assert!(with.starts_with(&without), "{without}\n{with}\n{main}{text}");
            }
        }
    }
}
