//! Metrics in the text format that Prometheus, and the text files of its `node_exporter`, are made of:
//! families with a name, a kind and a sentence, and samples with labels
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::fmt::{Display, Write as _};

use super::escape::visible;

/// What the values of a family are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A state: it goes up and down.
    Gauge,
    /// A count: it only goes up, or starts again.
    Counter,
    /// Counts of values by their size.
    Histogram,
}

/// The text, family by family.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a family. Its samples follow before the next one begins.
    pub(crate) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text: &mut self.text, name }
    }
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// A family whose samples are being written.
pub(crate) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    /// Adds a sample. A label without a value is one that the sample does not have.
    pub(crate) fn sample(&mut self, labels: &[(&str, Option<&str>)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}=\"{}\"", label(value.as_ref()?))))
            .collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{}{labels} {value}", self.name);
    }

    /// Adds the samples of a histogram: how many values exceed the bound before and not this one, how many
    /// exceed all bounds, and what all of them add up to.
    pub(crate) fn histogram(&mut self, counts: impl Iterator<Item = (f64, u64)>, longer: u64, sum: f64) {
        let (name, mut total) = (self.name, 0_u64);
        for (bound, count) in counts {
            total = total.saturating_add(count);
            let _ = writeln!(self.text, "{name}_bucket{{le=\"{bound}\"}} {total}");
        }
        total = total.saturating_add(longer);
        let _ = writeln!(
            self.text,
            "{name}_bucket{{le=\"+Inf\"}} {total}\n{name}_sum {sum}\n{name}_count {total}"
        );
    }
}

/// A value in quotes. Control characters are escaped first, so no newline is left.
fn label(value: &str) -> String {
    visible(value).replace('\\', r"\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use crate::text::exposition::*;

    #[test]
    fn a_label_cannot_end_its_sample() {
        let mut exposition = Exposition::default();
        let mut family = exposition.family("seats", Kind::Gauge, "Seats\\chairs.\nAll of them.");
        family.sample(&[], 1);
        family.sample(&[("member", None), ("repository", Some("a\"} 2\nb\\"))], 0.5);
        assert_eq!(
            exposition.into_text(),
            "# HELP seats Seats\\\\chairs.\\nAll of them.\n# TYPE seats gauge\nseats 1\n\
             seats{repository=\"a\\\"} 2\\\\nb\\\\\"} 0.5\n"
        );
    }
}
