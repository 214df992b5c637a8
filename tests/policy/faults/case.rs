//! One case: the files of a policy, and everything that is said about them, to the letter.

use rungate::{
    judge::terms::claim::{LookupError, Names},
    policy::{LayerKind, LayerText, Policy},
    text::diagnostic::SourceText,
};

/// A policy with something wrong, and what is shown of it.
pub(crate) struct Case {
    pub(crate) about: String,
    /// Paths and texts, in the order in which they count. What lies below `/home` is the caller's own.
    pub(crate) files: Vec<(String, String)>,
}

/// What a text has, and what stands for it in a file of cases.
const PICTURES: [(&str, &str); 4] = [("\u{1b}", "␛"), ("\0", "␀"), ("\r", "␍"), ("", "␄\n")];

impl Case {
    pub(super) fn parse(text: &str) -> Self {
        let (files, _) = text.split_once("\n>>>\n").expect("what is shown");
        let mut files = files.split("\n--- ");
        let about = files.next().expect("a title").to_owned();
        let file = |file: &str| {
            let (path, text) = file.split_once('\n').expect("a path and a text");
            let text = PICTURES.iter().fold(format!("{text}\n"), |text, (is, shown)| text.replace(shown, is));
            (path.to_owned(), text)
        };
        Self { about, files: files.map(file).collect() }
    }

    /// The case as it stands in its file, if this is shown.
    pub(super) fn with(&self, shown: &str) -> String {
        let mut all = format!("=== {}\n", self.about);
        for (path, text) in &self.files {
            let ended = if text.ends_with('\n') { text.clone() } else { format!("{text}␄\n") };
            let pictured = PICTURES[..3].iter().fold(ended, |text, (is, shown)| text.replace(is, shown));
            all += &format!("--- {path}\n{pictured}");
        }
        format!("{all}>>>\n{shown}\n")
    }

    /// What is shown, and the codes of it.
    pub(crate) fn check(&self) -> (String, Vec<&'static str>) {
        let layer = |kind, own: bool| {
            let files = self.files.iter().filter(|(path, _)| path.starts_with("/home") == own);
            let text = |(path, text): &(String, String)| SourceText::new(path, text);
            LayerText { kind, files: files.map(text).collect() }
        };
        let mut layers = vec![layer(LayerKind::System, false), layer(LayerKind::Own, true)];
        // A drop-in that the main file delegates is a layer of its own.
        let main = layers[0].files.first().map_or(String::new(), |main| main.text().to_owned());
        let is_delegated = |file: &mut SourceText| {
            let name = file.path().file_name().expect("a name").to_string_lossy();
            main.contains(&format!("[delegate.\"{name}\"]"))
        };
        let delegated = layers[0].files.extract_if(.., is_delegated).collect::<Vec<_>>();
        let delegated =
            delegated.into_iter().map(|file| LayerText { kind: LayerKind::Delegated, files: vec![file] });
        layers.splice(1..1, delegated);
        layers.retain(|layer| !layer.files.is_empty());
        let diagnostics = match Policy::check_layers(layers, false, &Databases) {
            Ok(policy) => policy.warnings().to_vec(),
            Err(faults) => faults.iter().cloned().collect(),
        };
        let shown: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        (shown.join("\n\n"), diagnostics.iter().map(|diagnostic| diagnostic.code).collect())
    }
}

/// A site with two users and two groups, and a group whose database does not answer.
pub(crate) struct Databases;

impl Names for Databases {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        Ok((uid == 4712).then(|| "zoe".to_owned()))
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        if name == "Zoe" {
            return Ok(Some(4712));
        }
        Ok(["ann", "bob"].contains(&name).then_some(4711))
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        match name {
            "broken" => {
                let error = "Connection timed out".into();
                Err(LookupError { call: "getgrnam(\"broken\")".into(), error })
            }
            name => Ok(["cad", "sim"].contains(&name).then_some(201)),
        }
    }

    fn group_name(&self, _: u32) -> Result<Option<String>, LookupError> {
        Ok(None)
    }

    fn in_netgroup(&self, _: &str, _: &str, _: &str) -> Result<bool, LookupError> {
        Ok(false)
    }
}
