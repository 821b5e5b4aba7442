//! Games on clocks: a time for the whole game and an increment a move.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use games::Color;
use search::Clocks;
use serde::{Deserialize, Serialize};

/// A base time and what is added after each move. In a config, both in seconds: `"10+0.1"`, or `"60"` without increment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeControl {
    /// What a side begins the game with.
    pub base: Duration,
    /// What is added after each of its moves.
    pub increment: Duration,
}

impl FromStr for TimeControl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (base, increment) = text.split_once('+').unwrap_or((text, "0"));
        let read = |part: &str| part.trim().parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
        match (read(base), read(increment)) {
            (Some(base), Some(increment)) if base >= Duration::from_millis(1) => Ok(TimeControl { base, increment }),
            _ => Err(format!("expected seconds and seconds a move, such as \"10+0.1\", got \"{text}\"")),
        }
    }
}

impl TryFrom<String> for TimeControl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TimeControl> for String {
    fn from(control: TimeControl) -> Self {
        control.to_string()
    }
}

impl fmt::Display for TimeControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base.as_secs_f64())?;
        if self.increment.is_zero() { Ok(()) } else { write!(f, "+{}", self.increment.as_secs_f64()) }
    }
}

/// The clocks of one game; a side without a time control has none.
pub(crate) struct GameClocks {
    controls: [Option<TimeControl>; 2],
    left: [Duration; 2],
    margin: Duration,
}

impl GameClocks {
    /// Clocks for White and Black. An overstepping of up to `margin` is forgiven.
    pub(crate) fn new(controls: [Option<TimeControl>; 2], margin: Duration) -> Self {
        GameClocks { controls, left: controls.map(|c| c.map_or(Duration::ZERO, |c| c.base)), margin }
    }

    /// What they show; `None` if nobody plays on a clock.
    pub(crate) fn shown(&self) -> Option<Clocks> {
        let side = |i: usize| self.controls[i].map(|_| self.left[i]);
        let increment = self.controls.map(|c| c.map_or(Duration::ZERO, |c| c.increment));
        self.controls.iter().any(Option::is_some).then(|| Clocks { left: [side(0), side(1)], increment })
    }

    /// What a side has left, if it plays on a clock.
    pub(crate) fn left(&self, color: Color) -> Option<Duration> {
        let side = usize::from(color == Color::Black);
        self.controls[side].map(|_| self.left[side])
    }

    /// A move of `color` that took `taken`; if the flag fell, what happened.
    pub(crate) fn press(&mut self, color: Color, taken: Duration) -> Result<(), String> {
        let side = usize::from(color == Color::Black);
        let Some(control) = self.controls[side] else { return Ok(()) };
        let (left, margin) = (self.left[side], self.margin);
        if taken > left + margin {
            return Err(format!("moved after {taken:?} with {left:?} on its clock of {control} (margin {margin:?})"));
        }
        self.left[side] = left.saturating_sub(taken) + control.increment;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_controls_are_seconds_and_read_back() {
        let control: TimeControl = "10+0.1".parse().unwrap();
        assert_eq!((control.base, control.increment), (Duration::from_secs(10), Duration::from_millis(100)));
        for text in ["10+0.1", "60", "0.5+0.02"] {
            let json = serde_json::to_string(&text.parse::<TimeControl>().unwrap()).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<TimeControl>(&json).unwrap(), text.parse().unwrap());
        }
        for text in ["", "0+1", "-3", "ten", "1+", "1+x", "40/60", "inf"] {
            assert!(text.parse::<TimeControl>().unwrap_err().contains("10+0.1"), "{text}");
        }
    }

    #[test]
    fn a_clock_runs_down_grows_by_the_increment_and_forgives_the_margin() {
        let ms = Duration::from_millis;
        let control = Some("1+0.1".parse().unwrap());
        let mut clocks = GameClocks::new([control, None], ms(20));
        clocks.press(Color::White, ms(300)).unwrap();
        let shown = clocks.shown().unwrap();
        assert_eq!((shown.left, shown.increment), ([Some(ms(800)), None], [ms(100), ms(0)]));
        clocks.press(Color::Black, ms(9000)).unwrap();
        clocks.press(Color::White, ms(815)).unwrap();
        assert_eq!(clocks.shown().unwrap().left[0], Some(ms(100)), "what the margin forgives is not owed");
        let fallen = clocks.press(Color::White, ms(121)).unwrap_err();
        assert!(fallen.contains("121ms") && fallen.contains("1+0.1"), "{fallen}");
        assert_eq!(GameClocks::new([None, None], ms(0)).shown(), None);
    }
}
