//! PGN text to tokens. Variations, comments, glyphs and move numbers are passed over here.

/// What matters in a PGN file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// `[Name "value"]`, quotes unescaped.
    Tag(&'a str, String),
    /// A move of the main line, as it is written.
    Move(&'a str),
    /// `1-0`, `0-1`, `1/2-1/2` or `*`.
    Result(&'a str),
    /// A brace or parenthesis that does not close.
    Unclosed(char),
}

/// Walks over a PGN text.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Scanner { text, at: 0, line: 1, depth: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Passes over `bytes` bytes, and gives them.
    fn take(&mut self, bytes: usize) -> &'a str {
        let taken = &self.rest()[..bytes];
        self.at += bytes;
        self.line += taken.matches('\n').count();
        taken
    }

    /// Passes over everything up to `end` and `end` itself; false if there is none (all the rest is passed over).
    fn take_through(&mut self, end: char) -> bool {
        let found = self.rest().find(end);
        self.take(found.map_or(self.rest().len(), |n| n + end.len_utf8()));
        found.is_some()
    }

    fn line_begins_here(&self) -> bool {
        self.text[..self.at]
            .rsplit('\n')
            .next()
            .is_none_or(|before| before.trim().is_empty() || before.trim_end().ends_with(']'))
    }

    /// The next token and its line.
    pub(super) fn next(&mut self) -> Option<(usize, Token<'a>)> {
        loop {
            self.take(self.rest().len() - self.rest().trim_start().len());
            let (rest, line) = (self.rest(), self.line);
            let Some(first) = rest.chars().next() else {
                return (std::mem::take(&mut self.depth) > 0).then_some((line, Token::Unclosed('(')));
            };
            match first {
                '%' if self.line_begins_here() => {
                    self.take_through('\n');
                }
                // A tag at the beginning of a line ends whatever was left open before it.
                '[' if self.line_begins_here() => {
                    if std::mem::take(&mut self.depth) > 0 {
                        return Some((line, Token::Unclosed('(')));
                    }
                    if let Some((name, value)) = self.tag() {
                        return Some((line, Token::Tag(name, value)));
                    }
                }
                '{' => {
                    if !self.take_through('}') {
                        return Some((line, Token::Unclosed('{')));
                    }
                }
                ';' => {
                    self.take_through('\n');
                }
                '(' | ')' => {
                    self.take(1);
                    self.depth = if first == '(' { self.depth + 1 } else { self.depth.saturating_sub(1) };
                }
                _ => {
                    if let Some(token) = self.word().filter(|_| self.depth == 0) {
                        return Some((line, token));
                    }
                }
            }
        }
    }

    /// `[Name "value"]`; a line that begins with `[` and is nothing of the kind is passed over.
    fn tag(&mut self) -> Option<(&'a str, String)> {
        let whole = self.rest().split('\n').next().unwrap_or_default();
        let parsed = parse_tag(whole);
        self.take(parsed.as_ref().map_or(whole.len(), |(_, _, length)| *length));
        parsed.map(|(name, value, _)| (name, value))
    }

    /// A result, a move, or something to pass over.
    fn word(&mut self) -> Option<Token<'a>> {
        let rest = self.rest();
        if let Some(result) = ["1-0", "0-1", "1/2-1/2", "1/2", "½-½", "*"].into_iter().find(|r| {
            rest.strip_prefix(r).is_some_and(|after| !after.starts_with(|c: char| c == '-' || c.is_alphanumeric()))
        }) {
            return Some(Token::Result(self.take(result.len())));
        }
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let numbered = rest[digits..].starts_with(|c: char| c == '.' || c.is_whitespace());
        if digits > 0 && (numbered || digits == rest.len()) {
            self.take(digits);
            return None;
        }
        if rest.starts_with("e.p") {
            self.take(rest.find(char::is_whitespace).unwrap_or(rest.len()));
            return None;
        }
        let ends = |c: char| c.is_whitespace() || "{}()[];!?$.*".contains(c);
        let length = rest.find(ends).unwrap_or(rest.len());
        if length == 0 {
            // A glyph, a dot or a stray sign; `$5` is passed over whole.
            let sign = self.take(rest.chars().next().map_or(0, char::len_utf8));
            if sign == "$" {
                self.take(self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len());
            }
            return None;
        }
        let word = self.take(length);
        // Signs of evaluation (`+-`, `=`), diagrams, novelties and the bare mark of an en-passant capture.
        let ignored = ["ep", "N", "D"].contains(&word) || word.starts_with(['+', '=', '±', '∓', '∞', '⩲', '⩱']);
        (!ignored && word != "-+" && word != "-/+").then_some(Token::Move(word))
    }
}

fn parse_tag(line: &str) -> Option<(&str, String, usize)> {
    let quote = line.find('"')?;
    let name = line[1..quote].trim();
    let mut value = String::new();
    let mut chars = line[quote + 1..].char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => {
                let end = quote + 1 + i + 1;
                let close = line[end..].find(']').map_or(line.len(), |n| end + n + 1);
                return (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, value, close));
            }
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    None
}
