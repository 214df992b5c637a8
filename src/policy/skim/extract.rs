//! Parts of a text, one after the other, with the position of each, so that a rule is named by its line.

use std::ops::Range;

#[derive(Debug, Default)]
pub(in crate::policy) struct Extract {
    pub(in crate::policy) text: String,
    /// Where each part begins: here, and in the whole.
    begins: Vec<(usize, usize)>,
}

impl Extract {
    /// Adds a part of the whole; parts that touch each other are one.
    pub(super) fn add(&mut self, whole: &str, part: Range<usize>) {
        if self.begins.last().is_none_or(|(here, there)| part.start - there != self.text.len() - here) {
            self.begins.push((self.text.len(), part.start));
        }
        self.text.push_str(whole.get(part).unwrap_or_default());
    }

    /// Where in the whole an offset is.
    pub(in crate::policy) fn in_whole(&self, offset: usize) -> usize {
        let part = self.begins.partition_point(|(here, _)| *here <= offset).checked_sub(1);
        part.and_then(|part| self.begins.get(part)).map_or(offset, |(here, there)| offset - here + there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_knows_where_it_was() {
        let mut extract = Extract::default();
        for part in [0..5, 9..11, 11..13] {
            extract.add("head [a] [b] [c]", part);
        }
        assert_eq!(extract.text, "head [b] ");
        assert_eq!([0, 4, 5, 8].map(|offset| extract.in_whole(offset)), [0, 4, 9, 12]);
    }
}
