//! Certificates, passwords and tokens: whatever is wrong with them is told in a sentence, with what to do.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::{TTL, seats};
use crate::support::{
    Authority, Certificate, Ending, Etcd, Host, eventually, needs_etcd, needs_openssl, set_mode,
};

/// `[site]` with these lines.
fn settings(endpoint: &str, prefix: &str, ttl: &str, more: &str) -> String {
    format!(
        "version = 1\n[site]\nendpoints = [\"{endpoint}\"]\nprefix = \"{prefix}\"\nttl = \"{ttl}\"\n{more}"
    )
}

fn ca(authority: &Authority) -> String {
    format!("ca = \"{}\"\n", authority.certificate().display())
}

fn shows(certificate: &Certificate) -> String {
    let Certificate { certificate, key } = certificate;
    format!("certificate = \"{}\"\nkey = \"{}\"\n", certificate.display(), key.display())
}

/// A launch on a host with these settings is told all of this; sooner or later, for before an agent has tried
/// it cannot say what is wrong.
#[track_caller]
fn is_told(settings: &str, parts: &[&str]) {
    let host = Host::new("lab1", &seats(1, ""), settings);
    let mut last = String::new();
    let told = catch_unwind(AssertUnwindSafe(|| {
        eventually("it is told", || {
            let outcome = host.test().args(["run", "--", "matlab"]).outcome();
            last = outcome.stderr;
            assert_eq!(outcome.ending, Ending::Status(74), "{last}");
            parts.iter().all(|part| last.contains(part)).then_some(())
        });
    }));
    assert!(told.is_ok(), "{parts:?} are not in\n{last}");
}

/// A launch starts, sooner or later: agents are connected when they answer, but not always to etcd.
#[track_caller]
fn starts(host: &Host) {
    eventually("a launch starts", || {
        let outcome = host.test().args(["run", "-q", "--", "matlab"]).outcome();
        (outcome.ending == Ending::Status(0)).then_some(())
    });
}

/// Certificates: wrong CA, expired, of another host.
#[test]
fn a_member_with_a_wrong_certificate_is_not_trusted() {
    needs_etcd!();
    needs_openssl!();
    let authority = Authority::new();
    let good = authority.sign("good", "/O=our site", "IP:127.0.0.1", 30);
    let expired = authority.sign("expired", "/O=our site", "IP:127.0.0.1", -1);
    let other = authority.sign("other", "/O=our site", "DNS:etcd1", 30);
    let etcd = Etcd::secure(&authority, &[&good, &expired, &other], &[]);
    let endpoints: Vec<String> = etcd.endpoints().collect();
    let prefix = Etcd::prefix();
    let of = |member: usize, more: &str| settings(&endpoints[member], &prefix, TTL, more);
    starts(&Host::new("lab1", &seats(1, ""), &of(0, &ca(&authority))));
    let advice = "compare it with \"ca\" and \"endpoints\" of [site] in /etc/rungate/agent.toml";
    let stranger = Authority::new();
    is_told(
        &of(0, &ca(&stranger)),
        &["its certificate is not trusted", "another authority than that in \"ca\" signed it", advice],
    );
    is_told(&of(1, &ca(&authority)), &["its certificate is not trusted", "it has expired", advice]);
    is_told(
        &of(2, &ca(&authority)),
        &["its certificate is not trusted", "it is not for the name that \"endpoints\" has", advice],
    );
}

/// With authentication on, a client certificate that has a CN is refused by the gateway.
#[test]
fn what_is_wrong_with_the_host_is_told() {
    needs_etcd!();
    needs_openssl!();
    let authority = Authority::new();
    let good = authority.sign("good", "/O=our site", "IP:127.0.0.1", 30);
    let named = authority.sign("named", "/O=our site/CN=lab1", "DNS:lab1", 30);
    let options =
        ["--client-cert-auth".to_owned(), format!("--trusted-ca-file={}", authority.certificate().display())];
    let etcd = Etcd::secure(&authority, &[&good, &good, &good], &options);
    let endpoint = etcd.endpoints().next().expect("a member");
    let prefix = Etcd::prefix();
    let of = |more: &str| settings(&endpoint, &prefix, TTL, &(ca(&authority) + more));
    is_told(
        &of(""),
        // Whether the member's word arrives before its end is a matter of chance.
        &["\"certificate\" and \"key\" of [site]", "--trusted-ca-file"],
    );
    // Where the end comes before the word, it is told what that may mean. Nobody reads of a broken pipe alone.
    let stranger = Authority::new();
    let foreign = stranger.sign("foreign", "/O=another site", "DNS:lab1", 30);
    let of_host = "it may not accept the certificate of this host";
    let is_told_so = |stderr: &str| {
        stderr.contains(of_host) || stderr.contains("it does not accept the certificate of this host")
    };
    let host = Host::new("lab1", &seats(1, ""), &of(&shows(&foreign)));
    for _ in 0..3 {
        let outcome = eventually("a member is tried", || {
            let outcome = host.test().args(["run", "--", "matlab"]).outcome();
            let silent = ["the site is overloaded", "has not answered for"];
            let was_tried = !silent.iter().any(|words| outcome.stderr.contains(words));
            was_tried.then_some(outcome)
        });
        assert!(is_told_so(&outcome.stderr), "{outcome:?}");
    }
    // Nothing is wrong with a CN before authentication is on.
    starts(&Host::new("lab1", &seats(1, ""), &of(&shows(&named))));
    admit(&etcd, "rungate", &prefix);
    is_told(&of(&shows(&named)), &["CommonName", "create one without"]);
    is_told(&of(&shows(&good)), &["\"user\" and \"password_file\" of [site]"]);
    let password = authority.certificate().with_file_name("password");
    let with_password = shows(&good) + &user("rungate", &password);
    is_told(&of(&with_password), &["cannot read the password in", "No such file"]);
    write_password(&password, "wrong");
    is_told(&of(&with_password), &["authentication failed", "\"user\" and \"password_file\" of [site]"]);
    write_password(&password, "secret");
    starts(&Host::new("lab1", &seats(1, ""), &of(&with_password)));
    let elsewhere = settings(&endpoint, "/elsewhere/", TTL, &(ca(&authority) + &with_password));
    is_told(&elsewhere, &["permission denied", "etcdctl role grant-permission"]);
}

/// Certificates are renewed in their place, even by another authority: the agent needs no restart. A
/// certificate whose key is not there yet is not used.
#[test]
fn renewed_certificates_need_no_restart() {
    needs_etcd!();
    needs_openssl!();
    let (authority, next) = (Authority::new(), Authority::new());
    let [(member, of_host), (next_member, next_of_host)] = [&authority, &next].map(|authority| {
        let sign = |name: &str, other: &str| authority.sign(name, "/O=our site", other, 30);
        (sign("member", "IP:127.0.0.1"), sign("host", "DNS:lab1"))
    });
    let options =
        ["--client-cert-auth".to_owned(), format!("--trusted-ca-file={}", authority.certificate().display())];
    let etcd = Etcd::secure(&authority, &[&member, &member, &member], &options);
    let endpoint = etcd.endpoints().next().expect("a member");
    let more = ca(&authority) + &shows(&of_host);
    let host = Host::new("lab1", &seats(1, ""), &settings(&endpoint, &Etcd::prefix(), TTL, &more));
    starts(&host);
    let renew = |from: &Path, to: &Path| {
        fs::copy(from, to).expect("it is renewed");
    };
    // From now on none of them is used, whenever the agent reads them.
    renew(&next_of_host.certificate, &of_host.certificate);
    renew(&next.certificate(), &authority.certificate());
    renew(&next_member.certificate, &member.certificate);
    renew(&next_member.key, &member.key);
    etcd.restart();
    eventually("the certificate is not used without its key", || {
        let outcome = host.test().args(["run", "--", "matlab"]).outcome();
        assert_eq!(outcome.ending, Ending::Status(74), "{outcome:?}");
        outcome.stderr.contains("its certificate is not trusted").then_some(())
    });
    renew(&next_of_host.key, &of_host.key);
    starts(&host);
}

/// Tokens run out and must be renewed, and a password that was changed counts without a restart.
#[test]
fn a_token_that_runs_out_is_renewed() {
    needs_etcd!();
    let etcd = Etcd::with(&["--auth-token-ttl=1".to_owned()]);
    let prefix = Etcd::prefix();
    admit(&etcd, "rungate", &prefix);
    let endpoint = etcd.endpoints().next().expect("a member");
    let directory = tempfile::tempdir().expect("a directory");
    let password = directory.path().join("password");
    write_password(&password, "secret");
    // It is asked for nothing for longer than a token lives.
    let host =
        Host::new("lab1", &seats(1, ""), &settings(&endpoint, &prefix, "9s", &user("rungate", &password)));
    starts(&host);
    std::thread::sleep(std::time::Duration::from_millis(2500));
    starts(&host);
    write_password(&password, "another");
    let by_root = ["--user=root:secret", "--interactive=false", "user", "passwd", "rungate"];
    etcd.control_with(&by_root, "another\n").expect("it is changed");
    starts(&host);
}

/// Tokens that are signed (JWT) become old with every change of etcd's users, and are renewed.
#[test]
fn a_change_of_the_users_makes_no_difference() {
    needs_etcd!();
    let directory = tempfile::tempdir().expect("a directory");
    let [key, password] = ["key", "password"].map(|name| directory.path().join(name));
    write_password(&key, "a key by which tokens are signed");
    write_password(&password, "secret");
    let token = format!("--auth-token=jwt,priv-key={},sign-method=HS256,ttl=1h", key.display());
    let etcd = Etcd::with(&[token]);
    let prefix = Etcd::prefix();
    admit(&etcd, "rungate", &prefix);
    let endpoint = etcd.endpoints().next().expect("a member");
    let host = Host::new(
        "lab1",
        &seats(1, ""),
        &settings(&endpoint, &prefix, super::LASTING, &user("rungate", &password)),
    );
    starts(&host);
    assert!(etcd.control(&["--user=root:secret", "user", "add", "another:secret"]).is_some());
    starts(&host);
}

fn user(name: &str, password: &Path) -> String {
    format!("user = \"{name}\"\npassword_file = \"{}\"\n", password.display())
}

fn write_password(path: &Path, password: &str) {
    fs::write(path, format!("{password}\n")).expect("write the password");
    set_mode(path, 0o600);
}

/// Turns authentication on, with a user who has this prefix.
#[track_caller]
fn admit(etcd: &Etcd, name: &str, prefix: &str) {
    // Not every version makes the role of root by itself.
    let _ = etcd.control(&["role", "add", "root"]);
    for words in [
        &["user", "add", "root:secret"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", name],
        &["role", "grant-permission", name, "--prefix=true", "readwrite", prefix],
        &["user", "add", &format!("{name}:secret")],
        &["user", "grant-role", name, name],
        &["auth", "enable"],
    ] {
        assert!(etcd.control(words).is_some(), "etcdctl {words:?}");
    }
}
