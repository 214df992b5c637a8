//! The client: it asks one member after the other until one answers, with a token if etcd requires one. It
//! never repeats a call that may have been carried out.

use std::{
    fs,
    io::Read,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde::{Serialize, de::DeserializeOwned};
use ureq::{Agent, Body, http::Response};

use super::{
    cluster_status::Generations,
    etcd_error::{EtcdError, Kind},
    message::{AuthenticateRequest, AuthenticateResponse, Failure},
    tls,
};
use crate::{keeper::agent::about::Latency, text::escape::visible};

/// A longer answer is not read to its end.
const LONGEST_ANSWER: u64 = 256 * 1024 * 1024;

const LONGEST_METRICS: u64 = 4 * 1024 * 1024;

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

/// Several threads may call at once.
#[derive(Clone, Debug)]
pub(in crate::agent::site) struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    access: Access,
    agent: Agent,
    /// The member that answered last.
    current: AtomicUsize,
    token: Mutex<Option<String>>,
    generations: Generations,
    latency: Mutex<Latency>,
}

impl Client {
    /// Reads the certificates, or says what is wrong with them.
    pub(in crate::agent::site) fn new(access: Access) -> Result<Self, String> {
        let config = Agent::config_builder()
            .tls_config(tls::config(&access)?)
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
        let agent = Agent::new_with_config(config);
        Ok(Self(Arc::new(Inner {
            access,
            agent,
            current: AtomicUsize::new(0),
            token: Mutex::new(None),
            generations: Generations::default(),
            latency: Mutex::default(),
        })))
    }

    /// How long its answers took.
    pub(in crate::agent::site) fn latency(&self) -> Latency {
        self.0.latency.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The etcd that answers.
    pub(super) fn generations(&self) -> &Generations {
        &self.0.generations
    }

    /// A change was received at this revision.
    pub(in crate::agent::site) fn has_heard(&self, generation: u64, revision: i64) {
        self.generations().heard(generation, revision);
    }

    /// Switches to the next member: the current one is not trusted.
    pub(in crate::agent::site) fn turn_to_next(&self) {
        self.0.current.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls, and waits for the whole answer. Tries another member if the previous one certainly did nothing,
    /// or if a repetition does no harm.
    pub(super) fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        question: &Q,
        is_harmless: bool,
    ) -> Result<A, EtcdError> {
        let (patience, asked) = (self.0.access.patience, Instant::now());
        let (endpoint, response) = self.call(path, question, is_harmless, Some(patience))?;
        let trouble = |kind| EtcdError { endpoint: endpoint.clone(), kind };
        let mut text = Vec::new();
        response
            .into_body()
            .into_reader()
            .take(LONGEST_ANSWER)
            .read_to_end(&mut text)
            .map_err(|error| trouble(Kind::Broken(error.to_string())))?;
        self.0.latency.lock().unwrap_or_else(PoisonError::into_inner).add(asked.elapsed());
        serde_json::from_slice(&text).map_err(|error| trouble(Kind::Senseless(error.to_string())))
    }

    /// Calls, and returns the unread answer; within `longest` if given.
    pub(super) fn call<Q: Serialize>(
        &self,
        path: &str,
        question: &Q,
        is_harmless: bool,
        longest: Option<Duration>,
    ) -> Result<(String, Response<Body>), EtcdError> {
        let question = serde_json::to_vec(question).unwrap_or_default();
        let mut renewed = false;
        let mut tried = 0;
        loop {
            let at = self.0.current.load(Ordering::Relaxed);
            let endpoint = self.endpoint(at);
            let trouble = match self.call_one(&endpoint, path, &question, longest) {
                Ok(response) => return Ok((endpoint, response)),
                Err(trouble) => trouble,
            };
            if self.has_no_token(&trouble) && !renewed {
                renewed = true;
                *self.token() = None;
                continue;
            }
            if !trouble.is_of_member() {
                return Err(trouble);
            }
            let _ =
                self.0.current.compare_exchange(at, at.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
            tried += 1;
            if tried >= self.0.access.endpoints.len() || !(trouble.is_definite() || is_harmless) {
                return Err(trouble);
            }
        }
    }

    /// Whether a new token could help: the old one has expired, or none was required before.
    fn has_no_token(&self, trouble: &EtcdError) -> bool {
        match &trouble.kind {
            Kind::TokenExpired => true,
            Kind::Refused(why) => self.0.access.user.is_some() && why.contains("user name is empty"),
            _ => false,
        }
    }

    fn endpoint(&self, at: usize) -> String {
        let endpoints = &self.0.access.endpoints;
        let at = at.checked_rem(endpoints.len()).unwrap_or(0);
        endpoints.get(at).cloned().unwrap_or_default()
    }

    fn call_one(
        &self,
        endpoint: &str,
        path: &str,
        question: &[u8],
        longest: Option<Duration>,
    ) -> Result<Response<Body>, EtcdError> {
        let token = self.token_for(endpoint)?;
        self.post(endpoint, path, question, token.as_deref(), longest)
    }

    fn post(
        &self,
        endpoint: &str,
        path: &str,
        question: &[u8],
        token: Option<&str>,
        longest: Option<Duration>,
    ) -> Result<Response<Body>, EtcdError> {
        let mut request = self
            .0
            .agent
            .post(format!("{}{path}", endpoint.trim_end_matches('/')))
            .config()
            .timeout_recv_body(longest)
            .build()
            .content_type("application/json")
            // Makes a member without a leader refuse at once; otherwise it would never answer.
            .header("Grpc-Metadata-hasleader", "true");
        if let Some(token) = token {
            request = request.header("Authorization", token);
        }
        let patience = self.0.access.patience;
        let response = request.send(question).map_err(|error| EtcdError::of(endpoint, patience, &error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let mut text = Vec::new();
        // If the body cannot be read, the status decides.
        let _ = response.into_body().into_reader().take(64 * 1024).read_to_end(&mut text);
        let text = match serde_json::from_slice::<Failure>(&text) {
            Ok(failure) => failure.text(),
            Err(_) => String::from_utf8_lossy(&text).trim().to_owned(),
        };
        Err(EtcdError::said(endpoint, status, &text))
    }

    /// Calls each member, and collects the answers.
    pub(super) fn ask_each<Q: Serialize, A: DeserializeOwned>(&self, path: &str, question: &Q) -> Vec<A> {
        let Access { endpoints, patience, .. } = &self.0.access;
        let question = serde_json::to_vec(question).unwrap_or_default();
        let ask = |endpoint: &String| {
            let response = self.call_one(endpoint, path, &question, Some(*patience)).ok()?;
            serde_json::from_reader(response.into_body().into_reader().take(64 * 1024)).ok()
        };
        endpoints.iter().filter_map(ask).collect()
    }

    /// The metrics of the member that answers, if it has them.
    pub(super) fn metrics(&self) -> Option<String> {
        let endpoint = self.endpoint(self.0.current.load(Ordering::Relaxed));
        let request = self.0.agent.get(format!("{}/metrics", endpoint.trim_end_matches('/')));
        let request = request.config().timeout_recv_body(Some(self.0.access.patience)).build();
        let response = request.call().ok().filter(|response| response.status().is_success())?;
        let mut text = String::new();
        response.into_body().into_reader().take(LONGEST_METRICS).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn token(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token, if one is needed; a new one if there is none.
    fn token_for(&self, endpoint: &str) -> Result<Option<String>, EtcdError> {
        let Access { user: Some(user), password_file, patience, .. } = &self.0.access else {
            return Ok(None);
        };
        if let Some(token) = self.token().clone() {
            return Ok(Some(token).filter(|token| !token.is_empty()));
        }
        let trouble = |kind| EtcdError { endpoint: endpoint.to_owned(), kind };
        // Read each time, so that a changed password needs no restart.
        let password = match password_file {
            Some(path) => fs::read_to_string(path).map_err(|error| {
                trouble(Kind::Refused(format!("cannot read the password in {}: {error}", visible(path))))
            })?,
            None => String::new(),
        };
        let password = password.strip_suffix('\n').unwrap_or(&password);
        let question = serde_json::to_vec(&AuthenticateRequest { name: user, password }).unwrap_or_default();
        let response = self.post(endpoint, "/v3/auth/authenticate", &question, None, Some(*patience));
        let response = match response {
            // Without authentication no token is needed, and none is requested again.
            Err(EtcdError { kind: Kind::Refused(why), .. })
                if why.contains("authentication is not enabled") =>
            {
                *self.token() = Some(String::new());
                return Ok(None);
            }
            // That does nothing of what was requested.
            Err(EtcdError { endpoint, kind }) => {
                let kind = match kind {
                    Kind::Unclear(why) | Kind::Senseless(why) | Kind::Broken(why) | Kind::HungUp(why) => {
                        Kind::NotNow(why)
                    }
                    Kind::Silent(_) => Kind::NotReached("no answer".to_owned()),
                    kind => kind,
                };
                return Err(EtcdError { endpoint, kind });
            }
            Ok(response) => response,
        };
        let answer: Result<AuthenticateResponse, _> =
            serde_json::from_reader(response.into_body().into_reader().take(64 * 1024));
        let answer = answer.map_err(|error| trouble(Kind::NotNow(error.to_string())))?;
        *self.token() = Some(answer.token.clone());
        Ok(Some(answer.token))
    }
}
