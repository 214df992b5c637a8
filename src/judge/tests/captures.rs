//! What rules capture, and which file that leads to.

use super::site::{Launch, under};

/// A project for each launch that says one; `selectors` capture it.
fn project(selectors: &str) -> Launch {
    under(&format!(
        "[repository.project]\nper = \"{{project}}\"\nlimit = 0\nlimits = {{ apollo = 3 }}\n\
         [[rule]]\n{selectors}\nacquire = [\"project\"]\n"
    ))
}

#[test]
fn a_part_of_the_directory_is_captured_as_a_whole() {
    let at = |directory: &str| project("directories = [\"/proj/{project}/**\"]").directory(directory);
    at("/proj/apollo").gives("1 of 3 project [apollo]");
    at("/proj/apollo/run1/x").locks(["/run/rungate/project.apollo.lock"]);
    at("/proj/gemini").gives("1 of 0 project [gemini]");
    for elsewhere in ["/proj", "/proj/", "/proj//x", "/project/apollo", "/", "/x/proj/apollo"] {
        at(elsewhere).gives("free");
    }
    let below = |directory: &str| project("directories = [\"/proj/{project}/*/sim\"]").directory(directory);
    below("/proj/apollo/a/sim").gives("1 of 3 project [apollo]");
    below("/proj/apollo/sim").gives("free");
}

/// Of several entries the one that matches the directory captures its part.
#[test]
fn the_entry_that_matches_captures() {
    let at = |directory: &str| {
        project("directories = [\"/proj/{project}/**\", \"/scratch/site/{project}/**\"]").directory(directory)
    };
    at("/scratch/site/apollo/run1").gives("1 of 3 project [apollo]");
    at("/proj/apollo/site").gives("1 of 3 project [apollo]");
    at("/scratch/apollo").gives("free");
}

#[test]
fn an_argument_or_its_end_is_captured_where_it_first_stands() {
    let with = |arguments: &[&str]| {
        project("arguments = [[\"--project\", \"{project}\"], \"--project={project}\"]").arguments(arguments)
    };
    with(&["-v", "--project", "apollo"]).gives("1 of 3 project [apollo]");
    with(&["--project=apollo"]).gives("1 of 3 project [apollo]");
    with(&["--project", "", "--project", "apollo", "--project", "x"]).gives("1 of 3 project [apollo]");
    // The entries count in their order, as everywhere.
    with(&["--project=x", "--project", "apollo"]).gives("1 of 3 project [apollo]");
    for none in [&["--project="][..], &["--project", ""], &["--project"], &["--projects=apollo"], &[]] {
        with(none).gives("free");
    }
}

/// A wildcard for any number of arguments is tried again from each argument on. What an earlier try captured
/// does not count.
#[test]
fn of_exact_arguments_the_try_that_fits_captures() {
    let with = |arguments: &[&str]| {
        project("arguments = { exactly = [\"**\", \"-p\", \"{project}\"] }").arguments(arguments)
    };
    for others in 0..4 {
        let arguments = [&["-p", "x"][..], &["-v"; 4][..others], &["-p", "apollo"]].concat();
        with(&arguments).gives("1 of 3 project [apollo]");
    }
    with(&["-p", "apollo", "-v"]).gives("free");
}

#[test]
fn a_variable_is_captured_where_it_is_set_to_something() {
    let with = |value: &str| {
        project("environment = { PROJECT = [\"p-{project}\"], X = false }").variable("PROJECT", value)
    };
    with("p-apollo").gives("1 of 3 project [apollo]");
    with("p-").gives("free");
    with("apollo").gives("free");
    with("p-apollo").variable("X", "").gives("free");
}

#[test]
fn several_captures_lead_to_one_file_for_each_set_of_them() {
    let policy = "[repository.block]\nper = [\"{project}\", \"{block}\", \"user\"]\nlimit = 1\n\
                  [repository.job]\npath = \"jobs/{project}/{job}.lock\"\nlimit = 1\n\
                  [[rule]]\ndirectories = [\"/proj/{project}/{block}/**\"]\narguments = [\"{job}\"]\n\
                  acquire = [\"block\", \"job\"]\n";
    under(policy)
        .directory("/proj/apollo/alu/run")
        .arguments(["7"])
        .locks(["/run/rungate/block.apollo,alu,4711.lock", "/run/rungate/jobs/apollo/7.lock"]);
}

#[test]
fn what_is_captured_never_leads_elsewhere() {
    let with = |value: &str| project("arguments = [\"--project={project}\"]").arguments([value]).paths();
    let (hostile, others) = (with("--project=../../etc"), with("--project=.._.._etc"));
    assert!(hostile[0].starts_with("/run/rungate") && hostile != others);
}

#[test]
fn each_rule_claims_by_what_it_captured_itself() {
    let policy = "[repository.project]\nper = \"{project}\"\nlimit = 1\n\
                  [[rule]]\ndirectories = [\"/proj/{project}/**\"]\nacquire = [\"project\"]\n\
                  [[rule]]\nenvironment = { PROJECT = [\"{project}\"] }\nacquire = [\"project\"]\n";
    let at = |project: &str| under(policy).directory("/proj/apollo").variable("PROJECT", project);
    at("gemini").locks(["/run/rungate/project.apollo.lock", "/run/rungate/project.gemini.lock"]);
    at("apollo").locks(["/run/rungate/project.apollo.lock"]);
}

#[test]
fn braces_with_a_comma_stay_a_glob() {
    let at = |directory: &str| {
        under("[[rule]]\ndirectories = [\"/proj/{apollo,gemini}/**\"]\naction = \"deny\"\n")
            .directory(directory)
    };
    at("/proj/gemini/x").gives("denied by rule 1: command \"matlab\"");
    at("/proj/mercury").gives("free");
}

#[test]
fn the_trace_says_what_was_captured() {
    let family = "[repository.project]\nper = \"{project}\"\nlimit = 1\n\
                  [[rule]]\ndirectories = [\"/proj/{project}/**\"]\nfirst_of = \"f\"\nacquire = [\"project\"]\n\
                  [[rule]]\ndirectories = [\"/{project}/**\"]\nfirst_of = \"f\"\nacquire = [\"project\"]\n";
    under(family)
        .directory("/proj/apollo")
        .traces(["counts (first of 2), project = apollo", "shadowed by \"rule 1\""]);
    under(family).directory("/proj/apollo").with(|_, decision| {
        let captured: Vec<usize> = decision.trace.iter().map(|entry| entry.captured.len()).collect();
        assert_eq!(captured, [1, 0], "a rule without an effect captures nothing");
    });
    let odd = project("arguments = [\"--project={project}\"]").arguments(["--project=a\u{1b}b"]);
    odd.traces(["counts, project = a\\u{1b}b"]);
    project("directories = [\"/proj/{project}/**\"]").traces(["no: directories (/proj/{project}/**)"]);
}
