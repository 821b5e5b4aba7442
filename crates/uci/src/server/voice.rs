//! What an engine says.

use std::fmt;
use std::io::{self, Write};

use games::Score;

use super::command::shortened;

/// Longest message for people, in characters.
const LONGEST_MESSAGE: usize = 400;

/// The output. Every failure to write is the caller's: a chess program may go away at any moment.
pub struct Voice<W> {
    output: W,
}

impl<W: Write> Voice<W> {
    /// Speaks to `output`.
    pub fn new(output: W) -> Self {
        Voice { output }
    }

    /// Says a line, or several.
    ///
    /// # Errors
    /// Nobody takes it.
    pub fn say(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        // One write, so that no reader sees half a line.
        let text = format!("{text}\n");
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }

    /// Says something for people.
    ///
    /// # Errors
    /// Nobody takes it.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        self.say(format_args!("info string {}", shortened(text, LONGEST_MESSAGE)))
    }
}

/// A score as the protocol writes it.
pub fn score_text(score: Score) -> String {
    match score {
        Score::Cp(n) => format!("cp {n}"),
        Score::Mate(n) => format!("mate {n}"),
    }
}

#[cfg(test)]
mod tests {
    use games::Score;

    use super::{Voice, score_text};

    #[test]
    fn remarks_are_one_line_and_not_long() {
        let mut said = Vec::new();
        let mut voice = Voice::new(&mut said);
        voice.say(format_args!("readyok")).unwrap();
        voice.remark(&format!("a\nb{}", "x".repeat(1000))).unwrap();
        let said = String::from_utf8(said).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.len() == 2 && lines[0] == "readyok" && lines[1].starts_with("info string a bxx"), "{said}");
        assert!(lines[1].len() < 450);
    }

    #[test]
    fn scores_have_their_unit() {
        assert_eq!([Score::Cp(-3), Score::Mate(0), Score::Mate(-4)].map(score_text), ["cp -3", "mate 0", "mate -4"]);
    }
}
