//! Keys as a raw terminal sends them: one byte, a character of several, or an escape sequence (ECMA-48, and what xterm made
//! of it).

/// A key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Key {
    /// A character.
    Character(char),
    /// One step up.
    Up,
    /// One step down.
    Down,
    /// One screen up.
    PageUp,
    /// One screen down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Return.
    Enter,
    /// Escape.
    Escape,
    /// Delete the last character.
    Backspace,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Stop,
    /// Ctrl-L.
    Redraw,
    /// Anything else.
    Other,
}

/// The keys behind bytes that came together.
pub fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    let mut keys = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (key, length) = match first {
            '\x1b' => sequence(rest),
            '\r' | '\n' => (Key::Enter, 1),
            '\x03' => (Key::Interrupt, 1),
            '\x1a' => (Key::Stop, 1),
            '\x0c' => (Key::Redraw, 1),
            '\x7f' | '\x08' => (Key::Backspace, 1),
            character if character.is_control() => (Key::Other, character.len_utf8()),
            character => (Key::Character(character), character.len_utf8()),
        };
        keys.push(key);
        rest = &rest[length..];
    }
    keys
}

/// `ESC [ parameters letter` and `ESC O letter`; an escape by itself is the key.
fn sequence(text: &str) -> (Key, usize) {
    let Some(body) = text.get(1..).filter(|body| body.starts_with(['[', 'O'])) else {
        return (Key::Escape, 1);
    };
    let Some(end) = body[1..].find(|character: char| ('@'..='~').contains(&character)) else {
        return (Key::Other, text.len());
    };
    let sequence = &body[1..end + 2];
    let key = match sequence {
        "A" => Key::Up,
        "B" => Key::Down,
        "H" | "1~" | "7~" => Key::Home,
        "F" | "4~" | "8~" => Key::End,
        "5~" => Key::PageUp,
        "6~" => Key::PageDown,
        _ => Key::Other,
    };
    (key, 2 + sequence.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(bytes: &[u8], expected: &[Key]) {
        assert_eq!(keys(bytes), expected);
    }

    #[test]
    fn keys_are_told_apart() {
        case(b"q", &[Key::Character('q')]);
        case(b"\x1b", &[Key::Escape]);
        case(b"\x1b[Bj\x1bOA", &[Key::Down, Key::Character('j'), Key::Up]);
        case(b"\x1b[5~\x1b[6~\x1b[1;5C", &[Key::PageUp, Key::PageDown, Key::Other]);
        case("ä\x7f\r".as_bytes(), &[Key::Character('ä'), Key::Backspace, Key::Enter]);
        case(b"\x03\x1a\x0c", &[Key::Interrupt, Key::Stop, Key::Redraw]);
        case(b"\x1b[", &[Key::Other]);
        case("\u{1b}ä".as_bytes(), &[Key::Escape, Key::Character('ä')]);
    }
}
