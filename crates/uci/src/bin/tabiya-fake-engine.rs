//! A fake UCI engine for tests: it plays legal chess quickly, and it fails when it is told to.
//!
//! It looks one move ahead and one capture back, counts material, and takes one of the best moves by a hash of the
//! position: the same position, seed and strength always give the same move and score. Its options are those of
//! Stockfish 15.1, and like Stockfish it drops a move list in silence from the first move that it dislikes.
//!
//! ```text
//! --name NAME         what it calls itself                     --seed N            another choice among equals
//! --hang PHASE        falls silent at id|uciok|isready|go      --die-at PHASE      exits with status 3 there
//! --die-every N       exits with status 3 at every Nth go      --illegal-every N   answers a1a1
//! --none-every N      answers (none)                           --no-info           answers without info lines
//! --late MS           answers MS after the move time           --slow MS           thinks for MS
//! --stderr-flood B    writes B bytes to stderr before uciok and before every move
//! --odd-spacing       noise and odd spacing around the protocol
//! --other-pv          its last exact score belongs to another move
//! --lacks NAME        has no option NAME, and exits with status 4 when it is set (may be repeated)
//! --plain             has no options of strength (Skill Level, UCI_LimitStrength, UCI_Elo)
//! --ignore-quit       ignores quit, SIGTERM and the end of its input (for 30 s)
//! --strict            exits with status 4 when a position command holds an illegal move
//! --state FILE        counts the moves for --*-every across restarts (one engine at a time)
//! ```
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::process::exit;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use games::{Chess, Game, Move, Rng, Score};
use nix::sys::signal::{SigSet, Signal};
use shakmaty::{Position, Role};

const OPTIONS: &str = "\
option name Debug Log File type string default
option name Threads type spin default 1 min 1 max 1024
option name Hash type spin default 16 min 1 max 33554432
option name Clear Hash type button
option name Ponder type check default false
option name MultiPV type spin default 1 min 1 max 500
option name Skill Level type spin default 20 min 0 max 20
option name Move Overhead type spin default 10 min 0 max 5000
option name UCI_Chess960 type check default false
option name UCI_LimitStrength type check default false
option name UCI_Elo type spin default 1350 min 1350 max 2850
option name UCI_ShowWDL type check default false
option name SyzygyPath type string default <empty>
";

const USAGE: &str = "tabiya-fake-engine: see the head of its source for the flags";

#[derive(Default)]
struct Config {
    name: Option<String>,
    seed: u64,
    hang: Option<String>,
    die_at: Option<String>,
    die_every: u64,
    illegal_every: u64,
    none_every: u64,
    late: Option<u64>,
    slow: u64,
    stderr_flood: usize,
    odd_spacing: bool,
    ignore_quit: bool,
    no_info: bool,
    other_pv: bool,
    strict: bool,
    plain: bool,
    lacks: Vec<String>,
    state: Option<String>,
}

impl Config {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Config, String> {
        fn number<T: std::str::FromStr>(flag: &str, text: Option<String>) -> Result<T, String> {
            text.and_then(|t| t.parse().ok()).ok_or_else(|| format!("{flag} needs a number"))
        }
        let mut config = Config::default();
        while let Some(flag) = args.next() {
            match flag.as_str() {
                "--name" => config.name = args.next(),
                "--hang" | "--die-at" => {
                    let phase = args.next().filter(|p| ["id", "uciok", "isready", "go"].contains(&p.as_str()));
                    let phase = phase.ok_or_else(|| format!("{flag} needs id, uciok, isready or go"))?;
                    *(if flag == "--hang" { &mut config.hang } else { &mut config.die_at }) = Some(phase);
                }
                "--lacks" => config.lacks.extend(args.next()),
                "--seed" => config.seed = number(&flag, args.next())?,
                "--die-every" => config.die_every = number(&flag, args.next())?,
                "--illegal-every" => config.illegal_every = number(&flag, args.next())?,
                "--none-every" => config.none_every = number(&flag, args.next())?,
                "--late" => config.late = Some(number(&flag, args.next())?),
                "--slow" => config.slow = number(&flag, args.next())?,
                "--stderr-flood" => config.stderr_flood = number(&flag, args.next())?,
                "--state" => config.state = args.next(),
                "--odd-spacing" => config.odd_spacing = true,
                "--ignore-quit" => config.ignore_quit = true,
                "--no-info" => config.no_info = true,
                "--other-pv" => config.other_pv = true,
                "--strict" => config.strict = true,
                "--plain" => config.plain = true,
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(config)
    }
}

struct Fake {
    config: Config,
    input: Receiver<String>,
    /// Lines that came while it was thinking.
    pending: VecDeque<String>,
    game: Chess,
    limit_strength: bool,
    elo: u64,
    skill: u64,
    multipv: usize,
    moves: u64,
}

fn main() {
    let config = match Config::parse(std::env::args().skip(1)) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{USAGE}: {error}");
            exit(2);
        }
    };
    if config.ignore_quit {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGTERM);
        if let Err(error) = mask.thread_block() {
            eprintln!("cannot ignore SIGTERM: {error}");
            exit(2);
        }
    }
    let (sender, input) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let mut fake = Fake {
        config,
        input,
        pending: VecDeque::new(),
        game: Chess::start(),
        limit_strength: false,
        elo: 2850,
        skill: 20,
        multipv: 1,
        moves: 0,
    };
    fake.run();
}

impl Fake {
    fn run(&mut self) {
        loop {
            let Some(line) = self.pending.pop_front().or_else(|| self.input.recv().ok()) else { self.end_of_input() };
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words.as_slice() {
                ["uci", ..] => self.handshake(),
                ["isready", ..] => {
                    self.fault("isready");
                    self.say("readyok\n");
                }
                ["setoption", "name", rest @ ..] => self.set_option(&rest.join(" ")),
                ["ucinewgame", ..] => self.game = Chess::start(),
                ["position", rest @ ..] => self.position(rest),
                ["go", rest @ ..] => self.go(rest),
                ["quit", ..] if !self.config.ignore_quit => exit(0),
                _ => {}
            }
        }
    }

    fn end_of_input(&self) -> ! {
        if self.config.ignore_quit {
            std::thread::sleep(Duration::from_secs(30));
        }
        exit(0)
    }

    /// Writes whole lines; a closed output is the end.
    fn say(&self, text: &str) {
        let text = if self.config.odd_spacing {
            let lines = text.lines().map(|l| format!(" {}\r\n", l.replacen(' ', "  ", 2)));
            format!("Fake banner, see AUTHORS\n\n{}", lines.collect::<String>())
        } else {
            text.to_owned()
        };
        let mut out = std::io::stdout().lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            exit(0);
        }
    }

    /// Hangs or dies if that is planned for this phase.
    fn fault(&mut self, phase: &str) {
        if self.config.die_at.as_deref() == Some(phase) {
            eprintln!("fake engine: dies at {phase}");
            self.say("info depth 1 sco");
            exit(3);
        }
        if self.config.hang.as_deref() == Some(phase) {
            while self.input.recv().is_ok() {}
            self.end_of_input();
        }
    }

    fn flood(&self) {
        let line = format!("{}\n", "x".repeat(99));
        let mut left = self.config.stderr_flood;
        let mut err = std::io::stderr().lock();
        while left > 0 {
            let n = left.min(line.len());
            if err.write_all(&line.as_bytes()[..n]).is_err() {
                break;
            }
            left -= n;
        }
    }

    fn handshake(&mut self) {
        self.flood();
        let name = self.config.name.as_deref().unwrap_or("Tabiya Fake 1.0");
        self.say(&format!("id name {name}\nid author Tabiya\n\n"));
        self.fault("id");
        let of_strength = |line: &&str| ["UCI_Elo", "UCI_LimitStrength", "Skill"].iter().any(|o| line.contains(o));
        let lacks = |line: &&str| self.config.lacks.iter().any(|name| line.contains(&format!("name {name} type")));
        let options = OPTIONS.lines().filter(|line| !(self.config.plain && of_strength(line) || lacks(line)));
        self.say(&options.map(|line| format!("{line}\n")).collect::<String>());
        self.say("uciok\n");
        self.fault("uciok");
    }

    /// Out-of-range values are ignored in silence, as Stockfish does.
    fn set_option(&mut self, text: &str) {
        let (name, value) = text.split_once(" value ").unwrap_or((text, ""));
        if self.config.lacks.iter().any(|lacking| lacking == name) {
            eprintln!("fake engine: {name} was set, which is not declared");
            exit(4);
        }
        let number = |range: std::ops::RangeInclusive<u64>| value.parse().ok().filter(|v| range.contains(v));
        match name.to_ascii_lowercase().as_str() {
            "uci_limitstrength" => self.limit_strength = value == "true",
            "uci_elo" => self.elo = number(1350..=2850).unwrap_or(self.elo),
            "multipv" => self.multipv = number(1..=500).map_or(self.multipv, |n| n as usize),
            "skill level" => self.skill = number(0..=20).unwrap_or(self.skill),
            lower if OPTIONS.to_ascii_lowercase().contains(&format!("option name {lower} type")) => {}
            _ => self.say(&format!("No such option: {name}\n")),
        }
    }

    fn position(&mut self, words: &[&str]) {
        let split = words.iter().position(|w| *w == "moves").unwrap_or(words.len());
        let (head, moves) = (&words[..split], words.get(split + 1..).unwrap_or(&[]));
        let start = match head {
            ["fen", fen @ ..] => Chess::from_fen(&fen.join(" ")),
            _ => Ok(Chess::start()),
        };
        let Ok(mut game) = start else {
            eprintln!("fake engine: illegal position {words:?}");
            exit(4);
        };
        for text in moves {
            match game.parse_move(text) {
                Ok(m) if game.move_text(m) == *text => game.play(m),
                _ if self.config.strict => {
                    eprintln!("fake engine: {text} is not legal in {}", game.fen());
                    exit(4);
                }
                _ => break,
            }
        }
        self.game = game;
    }

    /// Thinks until `stop`; lines that come meanwhile wait.
    fn think(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            match self.input.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line.trim() == "stop" => return,
                Ok(line) if line.trim() == "quit" && !self.config.ignore_quit => exit(0),
                Ok(line) => self.pending.push_back(line),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => self.end_of_input(),
            }
        }
    }

    /// Counts this `go`, across restarts if there is a state file.
    fn count(&mut self) -> u64 {
        if let Some(file) = &self.config.state {
            self.moves = std::fs::read_to_string(file).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0);
        }
        self.moves += 1;
        if let Some(file) = &self.config.state
            && let Err(error) = std::fs::write(file, self.moves.to_string())
        {
            eprintln!("fake engine: cannot write {file}: {error}");
            exit(2);
        }
        self.moves
    }

    fn go(&mut self, words: &[&str]) {
        let limit = |key: &str| words.windows(2).find(|w| w[0] == key).and_then(|w| w[1].parse::<u64>().ok());
        let count = self.count();
        let every = |n: u64| n > 0 && count.is_multiple_of(n);
        self.fault("go");
        if every(self.config.die_every) {
            eprintln!("fake engine: dies at move {count}");
            exit(3);
        }
        self.flood();
        if words.contains(&"infinite") {
            self.think(Duration::from_secs(3600));
        }
        let late = self.config.late.map(|late| late + limit("movetime").unwrap_or(0));
        if let Some(time) = late.or((self.config.slow > 0).then_some(self.config.slow)) {
            self.think(Duration::from_millis(time));
        }
        let Some(choice) = self.choose() else {
            let score = if self.game.is_check() { "mate 0" } else { "cp 0" };
            return self.say(&format!("info depth 0 score {score}\nbestmove (none)\n"));
        };
        let mut out = String::new();
        if !self.config.no_info {
            self.write_info(&mut out, &choice, limit("nodes").unwrap_or(1000));
        }
        let answer = if every(self.config.illegal_every) {
            "a1a1".to_owned()
        } else if every(self.config.none_every) {
            "(none)".to_owned()
        } else {
            self.game.move_text(choice.played)
        };
        out.push_str("bestmove ");
        out.push_str(&answer);
        out.push('\n');
        self.say(&out);
    }

    fn write_info(&self, out: &mut String, choice: &Choice, nodes: u64) {
        let score = score_text(choice.score);
        let best = self.game.move_text(choice.best);
        let pv = if self.config.other_pv {
            let other = self.game.legal_moves().into_iter().find(|m| *m != choice.played).unwrap_or(choice.best);
            self.game.move_text(other)
        } else {
            best.clone()
        };
        if self.config.odd_spacing {
            out.push_str("info string score cp 999 pv a1a1\ninfo depth 1 score cp 0 ebf 1.75 time 4 pv a2a3\n");
        }
        let wdl = if self.config.odd_spacing { " wdl 43 955 2" } else { "" };
        // A string takes it all, so writing cannot fail.
        let _ = writeln!(out, "info depth 1 seldepth 1 score {score} upperbound nodes {} time 0 pv {best}", nodes / 2);
        let _ = writeln!(out, "info depth 2 seldepth 3 multipv 1 score {score}{wdl} nodes {nodes} time 0 pv {pv}");
        if self.multipv > 1 {
            let others = self.game.legal_moves().into_iter().filter(|m| *m != choice.best);
            let mut others: Vec<_> = others.map(|m| (rate(&self.game, m), m)).collect();
            others.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
            for (rank, (score, m)) in (2..=self.multipv).zip(others) {
                let (score, pv) = (score_text(score), self.game.move_text(m));
                let _ = writeln!(out, "info depth 2 multipv {rank} score {score} nodes {nodes} time 0 pv {pv}");
            }
        }
    }

    /// The best move, the move played (another one at reduced strength), and the score; `None` without a legal move.
    fn choose(&self) -> Option<Choice> {
        let moves = self.game.legal_moves();
        let rated: Vec<(Score, Move)> = moves.iter().map(|m| (rate(&self.game, *m), *m)).collect();
        let score = rated.iter().map(|(score, _)| *score).max()?;
        let best: Vec<Move> = rated.iter().filter(|(s, _)| *s == score).map(|(_, m)| *m).collect();
        let clock = u64::from(self.game.halfmoves());
        let mut rng = Rng::from_parts(&[self.config.seed, self.game.hash(), clock]);
        let best = best[rng.below(best.len())];
        let mut blunder = (20 - self.skill) as f64 / 25.0;
        if self.limit_strength {
            blunder = (2850 - self.elo) as f64 / 1500.0;
        }
        let played = if rng.chance(blunder) { moves[rng.below(moves.len())] } else { best };
        Some(Choice { best, played, score })
    }
}

fn score_text(score: Score) -> String {
    match score {
        Score::Cp(cp) => format!("cp {cp}"),
        Score::Mate(n) => format!("mate {n}"),
    }
}

struct Choice {
    best: Move,
    played: Move,
    score: Score,
}

fn worth(role: Role) -> i32 {
    match role {
        Role::Pawn => 100,
        Role::Knight => 300,
        Role::Bishop => 320,
        Role::Rook => 500,
        Role::Queen => 900,
        Role::King => 0,
    }
}

fn material(position: &shakmaty::Chess, color: shakmaty::Color) -> i32 {
    let count = |role: Role| position.board().by_piece(role.of(color)).count() as i32;
    Role::ALL.into_iter().map(|role| worth(role) * count(role)).sum()
}

/// Material after the move and after the opponent's most valuable capture, from the mover's view; mates are seen.
fn rate(game: &Chess, m: Move) -> Score {
    let mut next = game.position().clone();
    let Some(decoded) = game.decode(m) else { return Score::Cp(0) };
    next.play_unchecked(decoded);
    if next.is_checkmate() {
        return Score::Mate(1);
    }
    let lost = next.capture_moves().iter().filter_map(|c| c.capture()).map(worth).max().unwrap_or(0);
    Score::Cp(material(&next, next.turn().other()) - material(&next, next.turn()) - lost)
}
