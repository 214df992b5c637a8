//! Errors of a call, and whether it is certain that the call was not carried out.

use std::{error::Error, fmt, io, time::Duration};

use rustls::CertificateError;

use crate::text::Show;

/// Why there is no answer, or not the expected one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::agent::site) struct EtcdError {
    /// The address that was tried.
    pub(in crate::agent::site) endpoint: String,
    pub(in crate::agent::site) kind: Kind,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::agent::site) enum Kind {
    /// Nobody was reached.
    NotReached(String),
    /// The member's certificate is not trusted.
    Distrusted(String),
    /// The member does not accept the certificate of this host.
    Unwelcome(String),
    /// The request was sent, and no answer came.
    Silent(Duration),
    /// The connection broke before the answer.
    Broken(String),
    /// The same, if the other end closed a connection with certificates.
    HungUp(String),
    /// The token is not valid, or no longer.
    TokenExpired,
    LeaseGone,
    /// The watch's first revision was compacted.
    Compacted,
    /// The member refuses permanently: nothing was done.
    Refused(String),
    /// The member cannot do it now: nothing was done.
    NotNow(String),
    /// The member reports an error, but not whether it was done.
    Unclear(String),
    /// The answer is from another etcd than intended, or of older data.
    Replaced,
    /// The answer is invalid.
    Senseless(String),
}

impl EtcdError {
    /// Whether it is certain that nothing was done.
    pub(in crate::agent::site) fn is_definite(&self) -> bool {
        match &self.kind {
            Kind::NotReached(_)
            | Kind::Distrusted(_)
            | Kind::Unwelcome(_)
            | Kind::TokenExpired
            | Kind::LeaseGone
            | Kind::Compacted
            | Kind::Refused(_)
            | Kind::NotNow(_) => true,
            Kind::Silent(_)
            | Kind::Broken(_)
            | Kind::HungUp(_)
            | Kind::Unclear(_)
            | Kind::Replaced
            | Kind::Senseless(_) => false,
        }
    }

    /// Another etcd answered than intended.
    pub(in crate::agent::site) fn replaced() -> Self {
        Self { endpoint: String::new(), kind: Kind::Replaced }
    }

    /// Whether the requested revision was compacted.
    pub(in crate::agent::site) fn is_compacted(&self) -> bool {
        self.kind == Kind::Compacted
    }

    /// Whether the lease is dead.
    pub(in crate::agent::site) fn is_lease_gone(&self) -> bool {
        self.kind == Kind::LeaseGone
    }

    /// Whether other certificates may help.
    pub(super) fn may_be_of_certificates(&self) -> bool {
        matches!(self.kind, Kind::Distrusted(_) | Kind::Unwelcome(_) | Kind::HungUp(_))
    }

    /// Whether another member may answer, although this one did not.
    pub(super) fn is_of_member(&self) -> bool {
        !matches!(self.kind, Kind::Refused(_) | Kind::LeaseGone | Kind::Compacted | Kind::TokenExpired)
    }

    /// What to do about it, as a sentence; none if unknown.
    pub(in crate::agent::site) fn advice(&self) -> Option<&'static str> {
        Some(match &self.kind {
            Kind::Distrusted(_) => {
                "check what the member presents (openssl s_client -connect HOST:PORT -showcerts), and \
                    compare it with \"ca\" \
                 and \"endpoints\" of [site] in /etc/rungate/agent.toml, and with the clock"
            }
            Kind::Unwelcome(_) => {
                "\"certificate\" and \"key\" of [site] in /etc/rungate/agent.toml have to be signed by an authority that \
                 etcd trusts (--trusted-ca-file), and must not have expired"
            }
            Kind::Refused(why) if why.contains("CommonName") => {
                "with authentication on, etcd's gateway accepts no client certificate with a CN: create one \
                    without"
            }
            Kind::Refused(why) if why.contains("authentication failed") => {
                "compare \"user\" and \"password_file\" of [site] in /etc/rungate/agent.toml with etcd's: etcdctl user get"
            }
            Kind::Refused(why) if why.contains("user name is empty") => {
                "etcd has authentication on: \"user\" and \"password_file\" of [site] in /etc/rungate/agent.toml are needed"
            }
            Kind::Refused(why) if why.contains("permission denied") => {
                "grant the role of the user read and write permission for the prefix: etcdctl role \
                    grant-permission ROLE readwrite \
                 --prefix=true PREFIX, which is \"prefix\" of [site]"
            }
            Kind::Refused(why) if why.contains("database space exceeded") => {
                "etcd is full: compact and defragment it, then etcdctl alarm disarm; and let it compact by itself \
                 (--auto-compaction-retention)"
            }
            // A member that gets no certificate, or a wrong one, may close the connection without a message.
            Kind::HungUp(_) => {
                "check that a majority of the members runs: etcdctl endpoint health --cluster. Where they \
                    ask for a \
                 certificate of this host (--client-cert-auth), \"certificate\" and \"key\" of [site] in \
                 /etc/rungate/agent.toml have to be signed by an authority that they trust (--trusted-ca-file)"
            }
            Kind::NotReached(_) | Kind::Silent(_) | Kind::NotNow(_) | Kind::Unclear(_) | Kind::Broken(_) => {
                "check that a majority of the members runs: etcdctl endpoint health --cluster"
            }
            Kind::TokenExpired
            | Kind::LeaseGone
            | Kind::Compacted
            | Kind::Refused(_)
            | Kind::Replaced
            | Kind::Senseless(_) => {
                return None;
            }
        })
    }

    /// The error of a member, by its text: the gateway's status numbers do not distinguish errors.
    pub(super) fn said(endpoint: &str, status: u16, text: &str) -> Self {
        let is = |part: &str| text.contains(part);
        // A token of the kind JWT becomes old with every change of etcd's users and roles.
        let kind = if is("invalid auth token") || is("revision of auth store is old") {
            Kind::TokenExpired
        } else if is("requested lease not found") {
            Kind::LeaseGone
        } else if is("required revision has been compacted") {
            Kind::Compacted
        } else if is("no leader") || is("too many requests") || is("not capable") || is("learner") {
            Kind::NotNow(text.to_owned())
        } else if is("database space exceeded") || matches!(status, 400 | 401 | 403 | 404 | 412) {
            Kind::Refused(text.to_owned())
        } else {
            Kind::Unclear(text.to_owned())
        };
        Self { endpoint: endpoint.to_owned(), kind }
    }

    /// What ureq says.
    pub(super) fn of(endpoint: &str, patience: Duration, error: &ureq::Error) -> Self {
        let kind = match error {
            ureq::Error::HostNotFound => Kind::NotReached("no such host".to_owned()),
            ureq::Error::ConnectionFailed => Kind::NotReached("no connection".to_owned()),
            ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
                Kind::NotReached(format!("no connection within {} s", patience.as_secs_f32()))
            }
            ureq::Error::Timeout(_) => Kind::Silent(patience),
            ureq::Error::Rustls(error) => of_tls(error),
            ureq::Error::Io(error) => of_io(error),
            ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::Tls(_) => {
                Kind::NotReached(error.to_string())
            }
            error => Kind::Broken(error.to_string()),
        };
        let kind = match kind {
            Kind::Broken(why) if endpoint.starts_with("https:") => Kind::HungUp(why),
            kind => kind,
        };
        Self { endpoint: endpoint.to_owned(), kind }
    }
}

fn of_io(error: &io::Error) -> Kind {
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return of_tls(tls);
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable => Kind::NotReached(error.to_string()),
        _ => Kind::Broken(error.to_string()),
    }
}

fn of_tls(error: &rustls::Error) -> Kind {
    match error {
        rustls::Error::InvalidCertificate(why) => {
            Kind::Distrusted(what_is_wrong(why).map_or_else(|| error.to_string(), str::to_owned))
        }
        rustls::Error::NoCertificatesPresented => Kind::Distrusted(error.to_string()),
        // A member that refuses a certificate has read nothing that came after it.
        rustls::Error::AlertReceived(_) => Kind::Unwelcome(error.to_string()),
        error => Kind::Broken(error.to_string()),
    }
}

/// The message for a common problem of a certificate.
fn what_is_wrong(why: &CertificateError) -> Option<&'static str> {
    Some(match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "another authority than that in \"ca\" signed it"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is not for the name that \"endpoints\" has"
        }
        _ => return None,
    })
}

impl fmt::Display for EtcdError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.endpoint.is_empty() {
            write!(formatter, "{}: ", self.endpoint.shown())?;
        }
        match &self.kind {
            Kind::NotReached(why) | Kind::Broken(why) => write!(formatter, "{}", why.shown()),
            Kind::Distrusted(why) => write!(formatter, "its certificate is not trusted: {}", why.shown()),
            Kind::Unwelcome(why) => {
                write!(formatter, "it does not accept the certificate of this host: {}", why.shown())
            }
            Kind::HungUp(why) => {
                write!(
                    formatter,
                    "it closed the connection ({}): it may not accept the certificate of this host",
                    why.shown()
                )
            }
            Kind::Silent(waited) => write!(formatter, "no answer for {} s", waited.as_secs_f32()),
            Kind::Replaced => {
                write!(formatter, "a different etcd answers, or one whose data were restored")
            }
            Kind::TokenExpired => write!(formatter, "the token has expired"),
            Kind::LeaseGone => write!(formatter, "the lease of this host is gone"),
            Kind::Compacted => write!(formatter, "what happened meanwhile was compacted away"),
            Kind::Refused(why) => write!(formatter, "it refuses: {}", why.shown()),
            Kind::NotNow(why) | Kind::Unclear(why) => write!(formatter, "it cannot: {}", why.shown()),
            Kind::Senseless(why) => write!(formatter, "invalid answer: {}", why.shown()),
        }
    }
}

impl Error for EtcdError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launch may be tried again if it is certain that nothing was done, and another member is asked if it
    /// may do what this one cannot. Both follow from the text of the error.
    #[test]
    fn what_a_member_says_tells_whether_it_was_done() {
        let said = |status: u16, text: &str| EtcdError::said("http://etcd1", status, text);
        for (text, kind) in [
            ("etcdserver: invalid auth token", Kind::TokenExpired),
            ("etcdserver: revision of auth store is old", Kind::TokenExpired),
            ("etcdserver: requested lease not found", Kind::LeaseGone),
            ("etcdserver: mvcc: required revision has been compacted", Kind::Compacted),
        ] {
            let error = said(500, text);
            assert_eq!((error.is_definite(), error.is_of_member()), (true, false), "{text}");
            assert_eq!(error.kind, kind, "{text}");
        }
        for text in ["no leader", "too many requests", "not capable", "rpc not supported for learner"] {
            let error = said(500, text);
            assert_eq!((error.is_definite(), error.is_of_member()), (true, true), "{text}");
            assert_eq!(error.kind, Kind::NotNow(text.to_owned()));
        }
        for (status, text) in
            [(500, "database space exceeded"), (400, "x"), (401, "x"), (403, "x"), (404, "x"), (412, "x")]
        {
            let error = said(status, text);
            assert_eq!((error.is_definite(), error.is_of_member()), (true, false), "{status} {text}");
            assert_eq!(error.kind, Kind::Refused(text.to_owned()));
        }
        for (status, text) in [(503, "etcdserver: request timed out"), (500, ""), (405, "x")] {
            let error = said(status, text);
            assert_eq!((error.is_definite(), error.is_of_member()), (false, true), "{status} {text}");
            assert_eq!(error.kind, Kind::Unclear(text.to_owned()));
        }
        assert!(!EtcdError::replaced().is_definite());
    }

    /// What is to be done depends on the error. No advice is better than a wrong one.
    #[test]
    fn each_error_has_its_own_advice() {
        let advice = |text: &str| EtcdError::said("http://etcd1", 400, text).advice().unwrap_or_default();
        for (text, part) in [
            ("etcdserver: CommonName of client sending a request against gateway", "no client certificate"),
            ("etcdserver: authentication failed, invalid user ID or password", "etcdctl user get"),
            ("etcdserver: user name is empty", "are needed"),
            ("etcdserver: permission denied", "grant-permission"),
            ("etcdserver: mvcc: database space exceeded", "compact and defragment"),
        ] {
            assert!(advice(text).contains(part), "{text}: {}", advice(text));
        }
        assert_eq!(advice("etcdserver: key is not provided"), "");
    }

    /// A message names the member that it is about, if there is one.
    #[test]
    fn an_error_names_its_member() {
        let refused = EtcdError::said("http://etcd1:2379", 400, "no");
        assert_eq!(refused.to_string(), "http://etcd1:2379: it refuses: no");
        let replaced = "a different etcd answers, or one whose data were restored";
        assert_eq!(EtcdError::replaced().to_string(), replaced);
    }

    /// A member that gets no certificate may close the connection without a word. Without certificates that
    /// means nothing.
    #[test]
    fn a_broken_connection_with_certificates_is_another_error() {
        let error = ureq::Error::Io(io::Error::from(io::ErrorKind::BrokenPipe));
        let kind = |endpoint: &str| EtcdError::of(endpoint, Duration::from_secs(1), &error).kind;
        assert!(matches!(kind("http://etcd1:2379"), Kind::Broken(_)));
        assert!(matches!(kind("https://etcd1:2379"), Kind::HungUp(_)));
    }
}
