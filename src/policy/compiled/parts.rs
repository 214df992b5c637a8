//! What is left of policy files for one command. It knows where everything stood, so that a rule that is left is named by
//! the line where its author finds it.

use std::ops::Range;

use crate::policy::shared_names::SharedNames;

/// Of all files.
#[derive(Debug)]
pub(in crate::policy) struct Parts {
    pub(in crate::policy) files: Vec<FileParts>,
    pub(in crate::policy) shared: SharedNames,
}

/// Of one file.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::policy) struct FileParts {
    pub(in crate::policy) text: String,
    /// The numbers in the file, counted from 0, of the rules that are left; all of them without it.
    pub(in crate::policy) rules: Option<Vec<usize>>,
    /// Where each part begins: here, and in the file.
    begins: Vec<(usize, usize)>,
}

impl FileParts {
    /// A text without these sections, which are in order; `None` where they are not sections of it.
    pub(super) fn without(text: &str, sections: &[Range<usize>], rules: Option<Vec<usize>>) -> Option<Self> {
        let mut left = String::new();
        let mut begins = Vec::new();
        let mut next = 0;
        let end = text.len()..text.len();
        for section in sections.iter().chain([&end]) {
            let part = text.get(next..section.start)?;
            if !part.is_empty() {
                begins.push((left.len(), next));
                left.push_str(part);
            }
            next = section.end;
        }
        Some(FileParts { text: left, rules, begins })
    }

    /// Where in the file an offset is.
    pub(in crate::policy) fn in_file(&self, offset: usize) -> usize {
        let part = self.begins.partition_point(|(here, _)| *here <= offset).checked_sub(1);
        part.map_or(offset, |part| offset - self.begins[part].0 + self.begins[part].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_knows_where_it_was() {
        let parts = FileParts::without("head [a] [b] [c]", &[5..9, 13..16], None).expect("sections");
        assert_eq!(parts.text, "head [b] ");
        assert_eq!([0, 4, 5, 8].map(|offset| parts.in_file(offset)), [0, 4, 9, 12]);
    }

    #[test]
    fn what_is_no_section_is_found_out() {
        let sections = [[0..3, 2..4], [0..9, 9..9], [2..3, 0..1]];
        assert!(sections.iter().all(|sections| FileParts::without("[ü]", sections, None).is_none()));
    }
}
