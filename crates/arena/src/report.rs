//! What a match says: results, Elo with its uncertainty, how the games ended, and between whom.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use dataset::GameRecord;
use games::{Color, GameResult, Termination};
use serde::{Deserialize, Serialize};

use crate::{Elo, MatchSpec, NormalizedElo, Pentanomial, Scores, SprtReport, Thinking, Wdl};

/// The result of a match, from the view of player A. Every number is finite, in JSON too.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MatchReport {
    /// The match's label.
    pub label: String,
    /// The game's name.
    pub game: String,
    /// Player A, with version, strength options and limits.
    pub player_a: String,
    /// Player B, with version, strength options and limits. An Elo means nothing without it.
    pub player_b: String,
    /// Games played, capped ones included.
    pub games: u64,
    /// Games that were asked for, where the match was stopped before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished_of: Option<u64>,
    /// Instruction set of the machine that counted, which decides how much is searched in a time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instruction_set: String,
    /// Decided games.
    pub total: Wdl,
    /// Decided games in which A had White, or moved first.
    pub as_white: Wdl,
    /// Decided games in which A had Black.
    pub as_black: Wdl,
    /// Games that the ply cap ended without a result.
    pub capped: u64,
    /// Points of A a decided game, 0..1; `None` without decided games.
    pub score: Option<f64>,
    /// Pairs with both games decided: what the Elo is measured on.
    pub pairs: Pentanomial,
    /// Pairs left out of the Elo because the ply cap ended a game of theirs.
    pub pairs_left_out: u64,
    /// Elo of A minus Elo of B.
    pub elo: Elo,
    /// Probability that A is the stronger.
    pub los: Option<f64>,
    /// The difference in units of a game's standard deviation.
    pub normalized_elo: Option<NormalizedElo>,
    /// The sequential test, where one was asked for.
    pub sprt: Option<SprtReport>,
    /// Games by the `termination` column.
    pub terminations: BTreeMap<String, u64>,
    /// Games that A lost by stall, disconnect, illegal move or time.
    pub faults_a: BTreeMap<String, u64>,
    /// The same for B.
    pub faults_b: BTreeMap<String, u64>,
    /// How long A and B thought a move; of games of older builds nothing is known.
    #[serde(default)]
    pub thinking: [Thinking; 2],
    /// Remarks without which the numbers would mislead.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Games that are no copy of another one of the match.
    pub distinct_games: u64,
    /// Mean length of a game, the opening included.
    pub mean_plies: f64,
    /// Wall time of play over all runs of the match.
    pub seconds: f64,
}

/// Which colour A has in a game: opening `i` is game `2i` with White and `2i + 1` with Black.
pub(crate) fn color_of_a(game_id: u64) -> Color {
    if game_id.is_multiple_of(2) { Color::White } else { Color::Black }
}

/// The points of A in a decided game.
pub(crate) fn points_of_a(record: &GameRecord) -> Option<f64> {
    record.result.map(|result| result.points(color_of_a(record.game_id)))
}

/// The points of A in a pair; `None` if a game has no result.
pub(crate) fn points_of_pair(first: &GameRecord, second: &GameRecord) -> Option<f64> {
    Some(points_of_a(first)? + points_of_a(second)?)
}

impl MatchReport {
    /// Counts `records`, in the order of their numbers. Both games of a pair that is to count have to be there.
    pub(crate) fn new(
        spec: &MatchSpec,
        game: &str,
        names: &[String; 2],
        records: &[GameRecord],
        thinking: [Thinking; 2],
        seconds: f64,
    ) -> Self {
        let [player_a, player_b] = names.clone();
        let mut report = MatchReport {
            label: spec.label.clone(),
            game: game.to_owned(),
            player_a,
            player_b,
            games: records.len() as u64,
            unfinished_of: None,
            instruction_set: pipeline::instruction_set().to_owned(),
            total: Wdl::default(),
            as_white: Wdl::default(),
            as_black: Wdl::default(),
            capped: 0,
            score: None,
            pairs: Pentanomial::default(),
            pairs_left_out: 0,
            elo: Elo::Unknown,
            los: None,
            normalized_elo: None,
            sprt: None,
            terminations: BTreeMap::new(),
            faults_a: BTreeMap::new(),
            faults_b: BTreeMap::new(),
            thinking,
            notes: spec.notes.clone(),
            distinct_games: 0,
            mean_plies: 0.0,
            seconds,
        };
        records.iter().for_each(|record| report.count(record));
        let mut paired = Wdl::default();
        for pair in records.chunk_by(|a, b| a.game_id / 2 == b.game_id / 2) {
            // The other game of the pair is still to be played.
            let [first, second] = pair else { continue };
            match points_of_pair(first, second) {
                Some(points) => {
                    report.pairs.add(points);
                    pair.iter().filter_map(points_of_a).for_each(|points| paired.add(points));
                }
                None => report.pairs_left_out += 1,
            }
        }
        let scores = Scores::of_pairs(report.pairs, paired);
        report.score = report.total.score();
        report.elo = scores.elo();
        report.los = scores.los();
        report.normalized_elo = scores.normalized_elo();
        report.sprt = spec.sprt.map(|sprt| sprt.test(&scores));
        report.distinct_games = records.iter().map(|r| (&r.start_fen, &r.moves)).collect::<HashSet<_>>().len() as u64;
        let plies: usize = records.iter().map(|r| r.moves.len()).sum();
        report.mean_plies = plies as f64 / records.len().max(1) as f64;
        report
    }

    fn count(&mut self, record: &GameRecord) {
        let reason = record.termination.as_str();
        *self.terminations.entry(reason.to_owned()).or_default() += 1;
        let Some(points) = points_of_a(record) else {
            self.capped += 1;
            return;
        };
        self.total.add(points);
        match color_of_a(record.game_id) {
            Color::White => self.as_white.add(points),
            Color::Black => self.as_black.add(points),
        }
        if is_fault(record.termination) && record.result != Some(GameResult::Draw) {
            let faults = if points < 0.5 { &mut self.faults_a } else { &mut self.faults_b };
            *faults.entry(reason.to_owned()).or_default() += 1;
        }
    }
}

fn is_fault(termination: Termination) -> bool {
    matches!(termination, Termination::Stall | Termination::Disconnect | Termination::IllegalMove | Termination::Time)
}

fn list(counts: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<_> = counts.iter().collect();
    counts.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), (*name).clone()));
    counts.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for MatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |p: f64| format!("{:.1} %", p * 100.0);
        writeln!(f, "{} ({})", self.label, self.game)?;
        writeln!(f, "  A               {}", self.player_a)?;
        writeln!(f, "  B               {}", self.player_b)?;
        if let Some(asked) = self.unfinished_of {
            writeln!(f, "  unfinished      {} of {asked} games: the same command goes on", self.games)?;
        }
        writeln!(
            f,
            "  games of A      {} ({}), as White {}, as Black {}",
            self.total,
            self.score.map_or_else(|| "no decided game".to_owned(), percent),
            self.as_white,
            self.as_black
        )?;
        if self.capped > 0 {
            writeln!(
                f,
                "  without result  {} at the ply cap; {} pairs are left out of the Elo",
                self.capped, self.pairs_left_out
            )?;
        }
        writeln!(f, "  pairs           {} ({})", self.pairs.pairs(), self.pairs)?;
        writeln!(f, "  Elo             {} against {}", self.elo, self.player_b)?;
        if let Some(los) = self.los {
            writeln!(f, "  A is stronger   with probability {} (LOS)", percent(los))?;
        }
        if let Some(NormalizedElo { nelo, error }) = self.normalized_elo {
            writeln!(f, "  normalised Elo  {nelo:+.1} ± {error:.1}")?;
        }
        if let Some(sprt) = self.sprt {
            writeln!(f, "  SPRT            {sprt}")?;
        }
        writeln!(f, "  endings         {}", list(&self.terminations))?;
        let faults = |faults: &BTreeMap<String, u64>| if faults.is_empty() { "none".to_owned() } else { list(faults) };
        writeln!(f, "  lost by fault   A: {}; B: {}", faults(&self.faults_a), faults(&self.faults_b))?;
        if self.thinking.iter().any(|t| t.moves > 0) {
            let [a, b] = self.thinking.map(|t| format!("{:.1} ms (longest {:.1} ms)", t.mean_ms, t.longest_ms));
            writeln!(f, "  time a move     A: {a}; B: {b}")?;
        }
        if self.thinking.iter().any(|t| t.median_nodes.is_some()) {
            let [a, b] = self.thinking.map(|t| t.median_nodes.map_or_else(|| "unknown".to_owned(), |n| n.to_string()));
            writeln!(f, "  nodes a move    A: {a}; B: {b} (medians; of a network, simulations)")?;
        }
        writeln!(
            f,
            "  length          {:.1} plies; {} of {} games are distinct",
            self.mean_plies, self.distinct_games, self.games
        )?;
        write!(f, "  time            {:.1} s", self.seconds)?;
        match self.instruction_set.as_str() {
            "" => writeln!(f)?,
            set => writeln!(f, " on {set}")?,
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  note            {note}"))
    }
}

#[cfg(test)]
mod tests {
    use games::Move;

    use super::*;
    use crate::SprtSpec;

    fn record(game_id: u64, result: Option<GameResult>, termination: Termination) -> GameRecord {
        let mut record = GameRecord::new("tictactoe", game_id);
        record.moves = vec![Move(game_id as u16); 4];
        (record.result, record.termination) = (result, termination);
        record
    }

    fn names() -> [String; 2] {
        ["net".to_owned(), "Stockfish 15.1 UCI_Elo=1500 nodes=5000".to_owned()]
    }

    fn spent() -> [Thinking; 2] {
        let b = Thinking { moves: 2, mean_ms: 30.0, longest_ms: 40.0, median_nodes: Some(812) };
        [Thinking::default(), b]
    }

    #[test]
    fn counts_are_from_the_view_of_a() {
        use GameResult::{BlackWins, Draw, WhiteWins};
        let records = [
            record(0, Some(WhiteWins), Termination::Line),
            record(1, Some(BlackWins), Termination::Line),
            record(2, Some(Draw), Termination::BoardFull),
            record(3, Some(WhiteWins), Termination::Stall),
            record(4, None, Termination::MaxPlies),
            record(5, Some(WhiteWins), Termination::Line),
        ];
        let spec = MatchSpec::new("m", 6, 1);
        let report = MatchReport::new(&spec, "tictactoe", &names(), &records, spent(), 1.5);
        assert_eq!(report.total, Wdl { wins: 2, draws: 1, losses: 2 });
        assert_eq!(report.as_white, Wdl { wins: 1, draws: 1, losses: 0 });
        assert_eq!(report.as_black, Wdl { wins: 1, draws: 0, losses: 2 });
        assert_eq!(report.pairs, Pentanomial([0, 1, 0, 0, 1]));
        assert_eq!((report.games, report.capped, report.pairs_left_out), (6, 1, 1));
        assert_eq!(report.faults_a.get("stall"), Some(&1));
        assert!(report.faults_b.is_empty());
        assert_eq!(report.distinct_games, 6);
    }

    #[test]
    fn u18_capped_games_are_no_draws() {
        let records: Vec<GameRecord> = (0..4).map(|i| record(i, None, Termination::MaxPlies)).collect();
        let report = MatchReport::new(&MatchSpec::new("m", 4, 1), "chess", &names(), &records, spent(), 1.0);
        assert_eq!((report.total.games(), report.score, report.elo), (0, None, Elo::Unknown));
        let fifty: Vec<GameRecord> =
            (0..4).map(|i| record(i, Some(GameResult::Draw), Termination::FiftyMoves)).collect();
        let report = MatchReport::new(&MatchSpec::new("m", 4, 1), "chess", &names(), &fifty, spent(), 1.0);
        assert_eq!((report.total.draws, report.score, report.elo.value()), (4, Some(0.5), Some(0.0)));
    }

    #[test]
    fn e1_the_text_and_the_json_of_a_lost_match() {
        let records: Vec<GameRecord> =
            (0..20).map(|i| record(i, Some(GameResult::win(color_of_a(i).other())), Termination::Checkmate)).collect();
        let sprt = Some(SprtSpec { elo0: 0.0, elo1: 10.0, alpha: 0.05, beta: 0.05, model: Default::default() });
        let notes = vec!["B is not rated".to_owned()];
        let spec = MatchSpec { sprt, notes, ..MatchSpec::new("eval", 20, 1) };
        let report = MatchReport::new(&spec, "chess", &names(), &records, spent(), 3.0);
        let text = report.to_string();
        let elo = text.lines().find(|l| l.trim_start().starts_with("Elo")).unwrap();
        let nodes = "nodes a move    A: unknown; B: 812 (medians";
        for line in ["lost by fault   A: none; B: none", "B: 30.0 ms (longest 40.0 ms)", nodes] {
            assert!(text.contains(line), "{text}");
        }
        assert!(elo.contains("below -645 (0.5 smoothing) against Stockfish 15.1 UCI_Elo=1500 nodes=5000"), "{text}");
        let json = serde_json::to_string(&report).unwrap();
        assert!(!json.contains("NaN") && !json.contains("inf"));
        assert_eq!(serde_json::from_str::<MatchReport>(&json).unwrap().to_string(), text);
        assert!(text.ends_with("  note            B is not rated\n"), "{text}");
    }

    #[test]
    fn pairs_are_told_by_number_where_games_are_missing() {
        let win = |id| record(id, Some(GameResult::win(color_of_a(id))), Termination::Line);
        let lost = |id| record(id, Some(GameResult::win(color_of_a(id).other())), Termination::Line);
        let records = [win(0), lost(3), win(4), win(5), lost(8)];
        let mut report = MatchReport::new(&MatchSpec::new("m", 10, 1), "chess", &names(), &records, spent(), 1.0);
        report.unfinished_of = Some(10);
        assert_eq!((report.pairs, report.pairs_left_out), (Pentanomial([0, 0, 0, 0, 1]), 0));
        assert_eq!(report.total, Wdl { wins: 3, draws: 0, losses: 2 });
        assert!(report.to_string().contains("unfinished      5 of 10 games"), "{report}");
    }

    #[test]
    fn an_empty_match_is_finite() {
        let report = MatchReport::new(&MatchSpec::new("m", 2, 1), "chess", &names(), &[], Default::default(), 0.0);
        assert_eq!((report.mean_plies, report.score, report.los), (0.0, None, None));
        assert!(report.to_string().contains("no decided game"));
    }
}
