//! What an engine says.

use std::fmt;
use std::io::{self, IsTerminal, Write};

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

/// Tells a person who has started an engine in a terminal, where it says nothing by itself, what to do with it.
pub fn greet(program: &str) {
    if io::stdin().is_terminal() {
        let _ = writeln!(
            io::stderr(),
            "{program} waits for commands of the UCI protocol. Name it as an engine to a chess program that has a board,\n\
             or type here: position startpos moves e2e4, then: go movetime 1000, and at the end: quit"
        );
    }
}

/// A score as the protocol writes it.
pub fn score_text(score: Score) -> String {
    match score {
        Score::Cp(n) => format!("cp {n}"),
        Score::Mate(n) => format!("mate {n}"),
    }
}

/// Win, draw and loss in permille for `UCI_ShowWDL`, from a value in -1..1, all in the view of the side to move. Their
/// difference is the value. Where nobody knows how likely a draw is, it is taken as in two half games whose chances are
/// the value's: `2 p (1 - p)`.
pub fn wdl(value: f32, draw: Option<f32>) -> [u32; 3] {
    let value = value.clamp(-1.0, 1.0);
    let expected = (1.0 + value) / 2.0;
    let draw = draw.unwrap_or(2.0 * expected * (1.0 - expected)).clamp(0.0, 1.0 - value.abs());
    let win = (((1.0 - draw + value) * 500.0).round() as u32).min(1000);
    let loss = (((1.0 - draw - value) * 500.0).round() as u32).min(1000 - win);
    [win, 1000 - win - loss, loss]
}

#[cfg(test)]
mod tests {
    use games::Score;

    use super::{Voice, score_text, wdl};

    #[test]
    fn win_draw_and_loss_sum_to_a_thousand_and_differ_by_the_value() {
        for step in -1000..=1000 {
            let value = step as f32 / 1000.0;
            for draw in [None, Some(0.0), Some(0.0005), Some(0.333), Some(0.5), Some(1.0)] {
                let [win, d, loss] = wdl(value, draw);
                assert_eq!(win + d + loss, 1000, "{value} {draw:?}");
                assert!(
                    (win as f32 - loss as f32 - 1000.0 * value).abs() <= 1.51,
                    "{value} {draw:?}: {win} {d} {loss}"
                );
            }
        }
        assert_eq!([wdl(0.0, Some(0.6)), wdl(0.0, None)], [[200, 600, 200], [250, 500, 250]]);
        assert_eq!([wdl(1.0, None), wdl(-1.0, None)], [[1000, 0, 0], [0, 0, 1000]]);
    }

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
