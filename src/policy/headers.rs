//! Lines that open a table, told by how they begin: what is no TOML has no tree to ask.

/// Where the line begins that an offset lies in.
pub(super) fn line_start(text: &str, offset: usize) -> usize {
    text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// Whether an offset lies in a line that opens a table.
pub(super) fn is_header(text: &str, offset: usize) -> bool {
    text[line_start(text, offset)..].trim_start_matches([' ', '\t']).starts_with('[')
}

/// Where the next line begins that opens a table, or the text ends.
pub(super) fn next_header(text: &str, offset: usize) -> usize {
    let lines = text.match_indices('\n').map(|(newline, _)| newline + 1).filter(|line| *line > offset);
    let mut headers = lines.filter(|line| is_header(text, *line));
    headers.next().unwrap_or(text.len())
}
