//! How etcd is reached: its addresses, and the agent's credentials. Certificates are renewed in their place.
//! So after an error that the former ones may have caused, files that were replaced are read again.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::text::visible;
use rustls::{crypto::CryptoProvider, pki_types::PrivateKeyDer, sign::CertifiedKey};
use ureq::{
    Agent,
    tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem},
};

/// The addresses of etcd, and the agent's credentials.
#[derive(Clone, Debug, Default)]
pub(in crate::agent::site) struct Access {
    /// The members, as `https://HOST:PORT`.
    pub(in crate::agent::site) endpoints: Vec<String>,
    /// The authority that signed the members' certificates.
    pub(in crate::agent::site) ca: Option<PathBuf>,
    /// The certificate of this host.
    pub(in crate::agent::site) certificate: Option<PathBuf>,
    pub(in crate::agent::site) key: Option<PathBuf>,
    pub(in crate::agent::site) user: Option<String>,
    pub(in crate::agent::site) password_file: Option<PathBuf>,
    /// How long one member may take for an answer.
    pub(in crate::agent::site) patience: Duration,
}

/// What distinguishes a file from the one that it replaces: its number, its size, and when it was written.
type Stamp = (u64, u64, i64, i64);

/// Those of the authority, the certificate and its key.
type Stamps = [Option<Stamp>; 3];

/// Makes connections with the certificates of some files.
#[derive(Debug)]
pub(super) struct Connector {
    agent: Agent,
    /// These files: they may have been replaced since.
    stamps: Stamps,
    /// What is wrong with those that replaced them.
    trouble: Option<String>,
}

impl Connector {
    /// Reads the files that [`Access`] names, or says what is wrong with them.
    pub(super) fn new(access: &Access) -> Result<Self, String> {
        let stamps = stamps(access);
        let config = Agent::config_builder()
            .tls_config(config(access)?)
            .http_status_as_error(false)
            .max_redirects(0)
            // The environment of the agent does not matter.
            .proxy(None)
            .timeout_resolve(Some(access.patience))
            .timeout_connect(Some(access.patience))
            .timeout_send_request(Some(access.patience))
            .timeout_send_body(Some(access.patience))
            .timeout_recv_response(Some(access.patience))
            .build();
        Ok(Self { agent: Agent::new_with_config(config), stamps, trouble: None })
    }

    pub(super) fn agent(&self) -> Agent {
        self.agent.clone()
    }

    /// Reads files that were replaced. If they cannot be used, such as a certificate whose key is not written
    /// yet, the former certificates stay, and the result says once what is wrong. They are read again the
    /// next time, because nothing of a file may have to change until it can be read.
    pub(super) fn renew(&mut self, access: &Access) -> Result<(), String> {
        if stamps(access) == self.stamps {
            self.trouble = None;
            return Ok(());
        }
        match Self::new(access) {
            Ok(renewed) => *self = renewed,
            Err(why) if self.trouble.as_ref() == Some(&why) => {}
            Err(why) => {
                self.trouble = Some(why.clone());
                return Err(why);
            }
        }
        Ok(())
    }
}

fn stamps(access: &Access) -> Stamps {
    [&access.ca, &access.certificate, &access.key].map(|path| {
        let found = fs::metadata(path.as_ref()?).ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    })
}

fn config(access: &Access) -> Result<TlsConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = TlsConfig::builder().unversioned_rustls_crypto_provider(Arc::clone(&provider));
    let authorities = match &access.ca {
        Some(path) => certificates(path)?,
        // Without an authority no member is trusted, which is right for everything but plain http.
        None => Vec::new(),
    };
    config = config.root_certs(RootCerts::Specific(Arc::new(authorities)));
    if let (Some(certificate), Some(key)) = (&access.certificate, &access.key) {
        let (chain, private) = (certificates(certificate)?, private_key(key)?);
        check_pair(&chain, &private, &provider)
            .map_err(|why| format!("{} is not the key of {}: {why}", visible(key), visible(certificate)))?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&chain, private)));
    }
    Ok(config.build())
}

/// Checks whether the key is that of the certificate. A connection with another one would panic.
fn check_pair(
    chain: &[Certificate<'static>],
    key: &PrivateKey<'static>,
    provider: &CryptoProvider,
) -> Result<(), String> {
    let chain = chain.iter().map(|certificate| certificate.der().to_vec().into()).collect();
    let key = PrivateKeyDer::try_from(key.der().to_vec())?;
    CertifiedKey::from_der(chain, key, provider).map(drop).map_err(|error| error.to_string())
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let certificate = |item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    };
    let found: Vec<_> = items(path)?.into_iter().filter_map(certificate).collect();
    if found.is_empty() {
        return Err(format!("{} contains no certificate", visible(path)));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKey<'static>, String> {
    let key = |item| match item {
        PemItem::PrivateKey(key) => Some(key),
        _ => None,
    };
    let found = items(path)?.into_iter().find_map(key);
    found.ok_or_else(|| format!("{} contains no private key", visible(path)))
}

fn items(path: &Path) -> Result<Vec<PemItem<'static>>, String> {
    let bytes = fs::read(path).map_err(|error| format!("cannot read {}: {error}", visible(path)))?;
    let items: Result<Vec<_>, _> = parse_pem(&bytes).collect();
    items.map_err(|error| format!("{} is not a PEM file: {error}", visible(path)))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n";

    fn of_authority(ca: PathBuf) -> Access {
        Access { ca: Some(ca), ..Access::default() }
    }

    /// A file without a certificate names no authority.
    #[test]
    fn a_file_without_a_certificate_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ca.pem");
        fs::write(&path, "no certificate\n").expect("a new file");
        let error = Connector::new(&of_authority(path)).expect_err("no authority");
        assert!(error.ends_with(" contains no certificate"), "{error}");
    }

    /// A file is read again if it was replaced, and counts if it can be used. If not, that is an error once.
    #[test]
    fn a_file_that_was_replaced_is_read_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ca.pem");
        let access = of_authority(path.clone());
        fs::write(&path, CERTIFICATE).expect("a new file");
        let mut connector = Connector::new(&access).expect("an authority");
        let mut renew = || (connector.renew(&access).err(), connector.stamps == stamps(&access));
        assert_eq!(renew(), (None, true), "it is the same file");
        fs::write(&path, "no certificate\n").expect("the file");
        let (error, is_used) = renew();
        assert!(error.is_some_and(|why| why.ends_with(" contains no certificate")) && !is_used);
        assert_eq!(renew(), (None, false), "it was told");
        fs::write(&path, CERTIFICATE.repeat(2)).expect("the file");
        assert_eq!(renew(), (None, true));
        fs::remove_file(&path).expect("the file");
        let (error, is_used) = renew();
        assert!(error.is_some_and(|why| why.starts_with("cannot read ")) && !is_used);
        // Another file of the same size may be renamed to its name.
        let renamed = directory.path().join("new.pem");
        fs::write(&renamed, CERTIFICATE.repeat(2)).expect("a new file");
        fs::rename(&renamed, &path).expect("the file");
        assert_eq!(renew(), (None, true));
    }

    /// A file that could not be used is read again, although it looks the same: the cause may have been
    /// elsewhere. As long as the same is wrong, that is an error once.
    #[test]
    fn a_file_that_could_not_be_used_is_read_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ca.pem");
        let access = of_authority(path.clone());
        fs::write(&path, CERTIFICATE).expect("a new file");
        let mut connector = Connector::new(&access).expect("an authority");
        let usable = CERTIFICATE.repeat(2);
        let written = fs::metadata(&path).and_then(|known| known.modified()).expect("a time");
        // The same file, as long and as old each time.
        let write = |text: &str| {
            assert_eq!(text.len(), usable.len());
            fs::write(&path, text).expect("the file");
            let file = fs::File::options().write(true).open(&path).expect("the file");
            file.set_modified(written).expect("it is ours");
            stamps(&access)
        };
        let mut renew = || (connector.renew(&access).err(), connector.stamps == stamps(&access));
        let unreadable = write(&" ".repeat(usable.len()));
        let (error, is_used) = renew();
        assert!(error.is_some_and(|why| why.ends_with(" contains no certificate")) && !is_used);
        assert_eq!(renew(), (None, false), "it was told");
        assert_eq!(write(&usable), unreadable, "it looks the same");
        assert_eq!(renew(), (None, true));
        // After that, it is another error.
        fs::write(&path, "no certificate\n").expect("the file");
        let (error, is_used) = renew();
        assert!(error.is_some() && !is_used);
    }

    /// A certificate is not used without its key.
    #[test]
    fn a_key_that_is_not_that_of_the_certificate_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let [certificate, key] = ["host.pem", "host.key"].map(|name| directory.path().join(name));
        fs::write(&certificate, CERTIFICATE).expect("a new file");
        fs::write(&key, CERTIFICATE.replace("CERTIFICATE", "PRIVATE KEY")).expect("a new file");
        let access = Access { certificate: Some(certificate), key: Some(key), ..Access::default() };
        let error = Connector::new(&access).expect_err("no pair");
        assert!(error.contains("host.key is not the key of "), "{error}");
    }
}
