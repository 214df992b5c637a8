//! Lets a text stand in the code around it, indented as that is.

/// A text that begins with a line break is a block: the break goes, the margin that all its lines share goes,
/// and so do the blanks before the closing quote. Any other text stays as it is.
pub(crate) fn unindent(text: &str) -> String {
    let Some(block) = text.strip_prefix('\n') else { return text.to_owned() };
    let block = block.trim_end_matches(' ');
    let margin = block
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start_matches(' ').len())
        .min()
        .unwrap_or(0);
    let lines: Vec<&str> = block.split('\n').map(|line| line.get(margin..).unwrap_or("")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::unindent;

    #[test]
    fn a_block_loses_its_margin_and_nothing_else() {
        assert_eq!(unindent("\n    a\n      b\n\n    c\n    "), "a\n  b\n\nc\n");
        assert_eq!(unindent("  a\n"), "  a\n");
        assert_eq!(unindent(""), "");
    }
}
