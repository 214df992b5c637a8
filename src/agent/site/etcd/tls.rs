//! Certificates: the authority that the agent trusts, and its own certificate.

use std::{fs, path::Path, sync::Arc};

use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::Access;
use crate::text::escape::visible;

/// From the files that [`Access`] names; or what is wrong with them.
pub(super) fn config(access: &Access) -> Result<TlsConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    let authorities = match &access.ca {
        Some(path) => certificates(path)?,
        // Without an authority no member is trusted, which is right for everything but plain http.
        None => Vec::new(),
    };
    config = config.root_certs(RootCerts::Specific(Arc::new(authorities)));
    if let (Some(certificate), Some(key)) = (&access.certificate, &access.key) {
        let chain = certificates(certificate)?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&chain, private_key(key)?)));
    }
    Ok(config.build())
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
