//! Reads plainly written TOML: bare keys, one-line strings without escapes, whole numbers, lists and inline
//! tables of them. `None` always means "not plain", never "wrong": the caller leaves such a text to the
//! parser. What is plain here is TOML to the last byte, so that text that was read to its end needs no
//! parser.

/// A part of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Piece {
    start: u32,
    end: u32,
    /// The kinds of its bytes that a caller may want to know without another look.
    has: u8,
}

impl Piece {
    pub(super) fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Whether it has to be taken apart as a pattern to know that it is one, or may give a part of what it
    /// matches a name.
    pub(super) fn is_special(self) -> bool {
        self.has & SPECIAL != 0
    }

    pub(super) fn has_slash(self) -> bool {
        self.has & SLASH != 0
    }

    /// The same as the name of a repository that leaves less room.
    pub(super) fn lowering(self) -> Self {
        Self { has: self.has | LOWERS, ..self }
    }

    pub(super) fn lowers(self) -> bool {
        self.has & LOWERS != 0
    }
}

/// A text, and how far it has been read.
pub(super) struct Cursor<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    /// A text from its beginning; offsets in it fit into 32 bits.
    pub(super) fn new(text: &'t str) -> Option<Self> {
        u32::try_from(text.len()).ok().map(|_| Cursor { text, at: 0 })
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// What has not been read yet.
    #[inline]
    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    pub(super) fn is_before(&self, word: &str) -> bool {
        self.rest().starts_with(word.as_bytes())
    }

    /// Whether it is at a header with this many brackets whose name begins so.
    pub(super) fn is_header_of(&self, brackets: usize, name: &str) -> bool {
        let rest = self.rest();
        rest.iter().take(brackets).all(|byte| *byte == b'[')
            && rest.get(brackets..).is_some_and(|rest| rest.starts_with(name.as_bytes()))
    }

    /// Passes a byte, where it is the next one.
    #[inline]
    pub(super) fn pass(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Option<()> {
        self.pass(byte).then_some(())
    }

    fn pass_word(&mut self, word: &str) -> bool {
        let is_next = self.is_before(word);
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    /// Passes bytes as long as they are of a kind.
    #[inline]
    fn pass_while(&mut self, mut is_of_it: impl FnMut(u8, u8) -> bool) {
        let rest = self.rest();
        let end = rest.iter().position(|byte| !is_of_it(*byte, KINDS[usize::from(*byte)]));
        self.at += end.unwrap_or(rest.len());
    }

    #[inline]
    pub(super) fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Passes the rest of a line on which nothing is left but a comment.
    pub(super) fn line_end(&mut self) -> Option<()> {
        self.blanks();
        if self.pass(b'#') {
            self.comment();
        }
        match self.peek() {
            None => Some(()),
            Some(b'\r') => {
                self.at += 1;
                self.expect(b'\n')
            }
            _ => self.expect(b'\n'),
        }
    }

    /// Passes a comment up to the end of its line; one with a control character ends before that.
    pub(super) fn comment(&mut self) {
        self.pass_while(|_, kind| kind & ENDS_COMMENT == 0);
    }

    /// Passes lines with nothing but comments; those are no end of the text.
    #[inline]
    pub(super) fn empty_lines(&mut self) -> Option<()> {
        // Within a list there is mostly nothing to pass.
        if self.peek().is_some_and(|byte| byte > b'#') {
            return Some(());
        }
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n' | b'\r' | b'#') => self.line_end()?,
                _ => return Some(()),
            }
        }
    }

    /// A bare key; an empty one is none.
    pub(super) fn key(&mut self) -> Option<&'t str> {
        let start = self.at;
        self.pass_while(|_, kind| kind & OF_KEYS != 0);
        self.text.get(start..self.at).filter(|key| !key.is_empty())
    }

    /// A bare key, or one in quotes.
    pub(super) fn name(&mut self) -> Option<Piece> {
        if matches!(self.peek(), Some(b'"' | b'\'')) {
            return self.string();
        }
        let start = self.at;
        self.key()?;
        self.since(start, 0)
    }

    #[inline]
    fn since(&self, start: usize, has: u8) -> Option<Piece> {
        Some(Piece { start: u32::try_from(start).ok()?, end: u32::try_from(self.at).ok()?, has })
    }

    /// The sign between a key and its value; a dotted key has another one.
    pub(super) fn equals(&mut self) -> Option<()> {
        self.blanks();
        self.expect(b'=')?;
        self.blanks();
        Some(())
    }

    /// A string on one line, as written.
    pub(super) fn string(&mut self) -> Option<Piece> {
        let quote = self.peek().filter(|byte| matches!(byte, b'"' | b'\''))?;
        self.at += 1;
        let start = self.at;
        let mut has = 0;
        self.pass_while(|byte, kind| {
            let is_in = byte != quote && kind & ENDS_STRING == 0;
            has |= kind;
            is_in
        });
        let piece = self.since(start, has)?;
        self.expect(quote)?;
        // Three quotes begin a string of several lines.
        (piece.start != piece.end || self.peek() != Some(quote)).then_some(piece)
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.peek()? {
            b't' => self.pass_word("true").then_some(true),
            _ => self.pass_word("false").then_some(false),
        }
    }

    /// A whole number, as it is mostly written.
    pub(super) fn number(&mut self) -> Option<i64> {
        let is_negative = self.pass(b'-');
        let start = self.at;
        self.pass_while(|byte, _| byte.is_ascii_digit());
        let digits = self.text.get(start..self.at)?;
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        let number: i64 = digits.parse().ok()?;
        Some(if is_negative { -number } else { number })
    }

    /// A list on any number of lines; how many elements it has.
    pub(super) fn list(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<usize> {
        self.expect(b'[')?;
        let mut count = 0;
        loop {
            self.empty_lines()?;
            if self.pass(b']') {
                return Some(count);
            }
            element(self)?;
            count += 1;
            self.empty_lines()?;
            if !self.pass(b',') {
                self.expect(b']')?;
                return Some(count);
            }
        }
    }

    /// A table in braces, on one line, with a key before each value; how many keys it has.
    pub(super) fn table(&mut self, mut value: impl FnMut(&mut Self, Piece) -> Option<()>) -> Option<usize> {
        self.expect(b'{')?;
        self.blanks();
        if self.pass(b'}') {
            return Some(0);
        }
        let mut keys: Vec<&str> = Vec::new();
        loop {
            self.blanks();
            let key = self.name()?;
            if keys.contains(&key.of(self.text)) {
                return None;
            }
            keys.push(key.of(self.text));
            self.equals()?;
            value(self, key)?;
            self.blanks();
            if !self.pass(b',') {
                self.expect(b'}')?;
                return Some(keys.len());
            }
        }
    }

    /// Passes a table, from its header up to the next line that can open one. `None` if that cannot be
    /// determined.
    pub(super) fn section(&mut self) -> Option<()> {
        self.expect(b'[')?;
        self.pass_until(1, |byte, is_line_start| byte == b'[' && is_line_start)
    }

    /// Passes what is left of a key with its value, however many lines they take.
    pub(super) fn statement(&mut self) -> Option<()> {
        self.pass_until(0, |byte, _| byte == b'\n')
    }

    /// Passes everything up to a closing byte outside of strings and brackets, or up to the end of the text.
    fn pass_until(&mut self, brackets: usize, ends: impl Fn(u8, bool) -> bool) -> Option<()> {
        let (mut depth, mut is_line_start) = (brackets, false);
        while let Some(byte) = self.peek() {
            match byte {
                byte if depth == 0 && ends(byte, is_line_start) => return Some(()),
                b'"' | b'\'' => self.any_string(byte)?,
                b'#' => self.comment(),
                b'\n' => self.at += 1,
                b'\r' => {
                    self.at += 1;
                    self.peek().filter(|byte| *byte == b'\n')?;
                }
                byte if byte.is_ascii_control() && byte != b'\t' => return None,
                byte => {
                    self.at += 1;
                    match byte {
                        b'[' | b'{' => depth += 1,
                        b']' | b'}' => depth = depth.checked_sub(1)?,
                        _ => {}
                    }
                }
            }
            is_line_start = byte == b'\n' || is_line_start && matches!(byte, b' ' | b'\t');
        }
        (depth == 0).then_some(())
    }

    /// Passes a string of any kind.
    fn any_string(&mut self, quote: u8) -> Option<()> {
        let three = [quote; 3];
        let is_long = self.rest().starts_with(&three);
        self.at += if is_long { 3 } else { 1 };
        loop {
            let byte = self.peek()?;
            match byte {
                b'\\' if quote == b'"' => {
                    self.at += 1;
                    self.peek().filter(|byte| is_long || *byte != b'\n')?;
                    // What is escaped may have several bytes; the others are no quotes.
                    self.at += 1;
                }
                b'\n' if !is_long => return None,
                _ if is_long && self.rest().starts_with(&three) => {
                    self.at += 3;
                    // Up to two quotes may stand at the end of what is quoted.
                    let _ = self.pass(quote) && self.pass(quote);
                    return Some(());
                }
                byte if byte == quote && !is_long => {
                    self.at += 1;
                    return Some(());
                }
                _ => self.at += 1,
            }
        }
    }
}

// What somebody may want to know of a byte without looking at it again.

/// In bare keys.
pub(super) const OF_KEYS: u8 = 1;
/// What no string without escapes goes over: control characters and backslashes; quotes are looked at apart.
pub(super) const ENDS_STRING: u8 = 2;
/// What makes a pattern of a text beside stars and question marks, or names a part of it.
pub(super) const SPECIAL: u8 = 4;
pub(super) const SLASH: u8 = 8;
/// What no comment goes over.
pub(super) const ENDS_COMMENT: u8 = 16;

/// What a claim says beside the name of a repository: no byte is of this kind.
pub(super) const LOWERS: u8 = 32;

pub(super) static KINDS: [u8; 256] = kinds();

const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let mut byte = 0u8;
    loop {
        let mut kind = 0;
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            kind |= OF_KEYS;
        }
        if byte.is_ascii_control() && byte != b'\t' {
            kind |= ENDS_STRING | ENDS_COMMENT;
        }
        match byte {
            b'\\' => kind |= ENDS_STRING | SPECIAL,
            b'[' | b']' | b'{' | b'}' => kind |= SPECIAL,
            b'/' => kind |= SLASH,
            _ => {}
        }
        kinds[byte as usize] = kind;
        if byte == u8::MAX {
            return kinds;
        }
        byte += 1;
    }
}
