//! An authority that signs certificates, made with openssl(1) as `docs/site.md` tells it.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// An authority. What it signed goes with it.
pub(crate) struct Authority(TempDir);

/// A certificate and its key.
pub(crate) struct Certificate {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    /// A new one.
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("rungate-ca-").tempdir().expect("a directory");
        let authority = Self(directory);
        let (key, certificate) = (authority.path("ca.key"), authority.certificate());
        let (key, certificate) = (key.to_string_lossy(), certificate.to_string_lossy());
        let of_it = ["-subj", "/CN=an authority", "-keyout", &key, "-out", &certificate];
        openssl(&[&["req", "-x509", "-days", "30"][..], &NEW_KEY, &of_it].concat());
        authority
    }

    /// Its own certificate.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// A certificate for whoever has this subject and this other name, for so many days from now on.
    pub(crate) fn sign(&self, name: &str, subject: &str, other_name: &str, days: i32) -> Certificate {
        let [key, request, extensions, certificate] =
            ["key", "csr", "ext", "pem"].map(|ending| self.path(&format!("{name}.{ending}")));
        std::fs::write(
            &extensions,
            format!("subjectAltName={other_name}\nextendedKeyUsage=serverAuth,clientAuth\n"),
        )
        .expect("write what the certificate is for");
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let asked = ["-subj", subject, "-keyout", &text(&key), "-out", &text(&request)];
        openssl(&[&["req"][..], &NEW_KEY, &asked].concat());
        openssl(&[
            "x509",
            "-req",
            "-in",
            &text(&request),
            "-CA",
            &text(&self.certificate()),
            "-CAkey",
            &text(&self.path("ca.key")),
            "-CAcreateserial",
            "-days",
            &days.to_string(),
            "-extfile",
            &text(&extensions),
            "-out",
            &text(&certificate),
        ]);
        Certificate { certificate, key }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

fn openssl(words: &[&str]) {
    let output = Command::new("openssl").args(words).output().expect("openssl(1)");
    assert!(output.status.success(), "openssl {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}
