//! `policy compile`: with the parts that a command needs, a policy says of it what the whole says.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use proptest::{collection::vec, prelude::*};
use rungate::policy::{Compilation, Opened, Policy, Sources};
use tempfile::TempDir;

use super::{printing::policies, request::launches};

/// More of what a file can hold besides, and what only looks like a table.
const BESIDES: &str = "[[test]]\nname = \"any\"\ncommand = \"matlab\"\nexpect = \"start\"\n[[rule]]\nname = \"looks\"\ncommands = [\"m*\"]\nmessage = '''\n[[rule]]\n[repository.a]\n'''\n\
                       acquire = [\n  \"each\",\n]\n[[rule.except]]\nusers = [\"bob\"]\n";

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parts_of_a_policy_decide_as_the_whole_does(texts in policies(), launches in vec(launches(), 8)) {
        let folder = TempDir::new().expect("a temporary directory");
        let system = folder.path().join("policy.toml");
        let drop_ins = folder.path().join("policy.d");
        fs::create_dir(&drop_ins).expect("a directory");
        fs::set_permissions(&drop_ins, PermissionsExt::from_mode(0o755)).expect("chmod");
        for (path, text) in [(&system, &texts[0]), (&drop_ins.join("1.toml"), &texts[1])] {
            fs::write(path, format!("{text}{BESIDES}")).expect("a file");
            fs::set_permissions(path, PermissionsExt::from_mode(0o644)).expect("chmod");
        }
        let caller = fs::metadata(folder.path()).expect("the folder").uid();
        let sources = Sources { system, given: None, own: None, caller };
        let whole = Policy::load(&sources).map_err(|faults| TestCaseError::fail(faults.to_string()))?;
        let compilation = Compilation::of(&sources).expect("a policy without faults");
        fs::write(&compilation.path, &compilation.content).expect("a file");
        for launch in launches {
            let program = launch.program();
            let opened = Opened::open(&sources).expect("a policy without faults");
            prop_assert!(opened.is_compiled());
            let parts = opened.policy_for(&launch.invocation(&program)).expect("a policy without faults");
            prop_assert_eq!(launch.told_by(&whole), launch.told_by(&parts));
            prop_assert!(parts.rules().len() <= whole.rules().len());
        }
    }
}
