//! Table tests over `tests/fixtures/chess_cases.json` and the files that `CHESS_CASES` names (joined by `:`).

use games::{Chess, Game, Outcome, Rng};
use search::{Search, SearchConfig, UniformEvaluator, drive};
use serde_json::Value;
use shakmaty::{CastlingMode, EnPassantMode};

#[test]
fn chess_cases() {
    let mut files = vec![concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/chess_cases.json").to_owned()];
    files.extend(
        std::env::var("CHESS_CASES").iter().flat_map(|v| v.split(':')).filter(|f| !f.is_empty()).map(String::from),
    );
    let mut failures = Vec::new();
    let mut checked = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
        let cases: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
        for case in &cases {
            checked += 1;
            if let Err(why) = check(case) {
                failures.push(format!("{file} {}: {why}", case["id"]));
            }
        }
    }
    assert!(checked >= 32, "only {checked} cases");
    assert!(failures.is_empty(), "{} of {checked} cases fail:\n{}", failures.len(), failures.join("\n"));
}

fn check(case: &Value) -> Result<(), String> {
    match text(case, "kind")? {
        "termination" => termination(case),
        "insufficient" => {
            let got = position(case)?.is_insufficient_material();
            expect("insufficient", got, case["insufficient"].as_bool().ok_or("no `insufficient`")?)
        }
        "reject_fen" => match Chess::from_fen(text(case, "fen")?) {
            Err(_) => Ok(()),
            Ok(game) => Err(format!("accepted as {}", game.fen())),
        },
        "lenient_fen" => expect("fen", position(case)?.fen().as_str(), text(case, "canonical")?),
        "ep_field" => ep_field(case),
        "castle_text" => castle_text(case),
        "mate_in_one" => mate_in_one(case),
        "move_count" => {
            let game = position(case)?;
            let mut indices: Vec<u16> = game.legal_moves().iter().map(|m| game.index(*m)).collect();
            expect("moves", indices.len() as u64, case["count"].as_u64().ok_or("no `count`")?)?;
            indices.dedup();
            expect("distinct indices", indices.len() as u64, case["count"].as_u64().unwrap_or(0))
        }
        other => Err(format!("unknown kind `{other}`")),
    }
}

fn text<'a>(case: &'a Value, key: &str) -> Result<&'a str, String> {
    case[key].as_str().ok_or_else(|| format!("no text `{key}`"))
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: got {got:?}, expected {expected:?}")) }
}

fn position(case: &Value) -> Result<Chess, String> {
    match text(case, "fen")? {
        "startpos" => Ok(Chess::start()),
        fen => Chess::from_fen(fen).map_err(|e| e.to_string()),
    }
}

fn played(case: &Value) -> Result<Chess, String> {
    let mut game = position(case)?;
    for m in case["uci"].as_array().ok_or("no list `uci`")? {
        let m = game.parse_move(m.as_str().unwrap_or_default()).map_err(|e| e.to_string())?;
        game.try_play(m).map_err(|e| e.to_string())?;
    }
    Ok(game)
}

fn termination(case: &Value) -> Result<(), String> {
    let (result, reason) = match played(case)?.outcome() {
        Outcome::Ongoing => ("*", None),
        Outcome::Decided { result, reason } => (result.pgn(), Some(reason.as_str())),
    };
    expect("result", result, text(case, "result")?)?;
    expect("reason", reason, case["reason"].as_str())
}

fn ep_field(case: &Value) -> Result<(), String> {
    let game = played(case)?;
    let modes =
        [("legal", EnPassantMode::Legal), ("xfen", EnPassantMode::PseudoLegal), ("strict", EnPassantMode::Always)];
    for (key, mode) in modes {
        let fen = game.fen_with(mode);
        expect(key, fen.split(' ').nth(3).unwrap_or_default(), text(case, key)?)?;
        let again = Chess::from_fen(&fen).map_err(|e| e.to_string())?;
        expect("key of the position", again.hash(), game.hash())?;
    }
    Ok(())
}

fn castle_text(case: &Value) -> Result<(), String> {
    let game = position(case)?;
    let m = game.parse_move(text(case, "uci")?).map_err(|e| e.to_string())?;
    let is_castle = game.decode(m).is_some_and(|m| m.is_castle());
    expect("is_castle", is_castle, case["is_castle"].as_bool().unwrap_or(true))?;
    let mode = CastlingMode::from_chess960(case["chess960"].as_bool().unwrap_or(false));
    expect("text", game.uci_text(m, mode).as_str(), text(case, "uci")?)
}

fn mate_in_one(case: &Value) -> Result<(), String> {
    let game = position(case)?;
    let config = SearchConfig { simulations: 200, ..SearchConfig::default() };
    let mut searches = [Search::new(config, game.clone(), Rng::new(1))];
    drive(&mut searches, &mut UniformEvaluator).map_err(|e| e.to_string())?;
    let report = searches[0].root_report().map_err(|e| e.to_string())?;
    let most = report.visits.iter().max_by_key(|(_, n)| *n).ok_or("no visits")?.0;
    let mates: Vec<&str> = case["mates"].as_array().ok_or("no `mates`")?.iter().filter_map(Value::as_str).collect();
    if !mates.contains(&game.move_text(most).as_str()) {
        return Err(format!("most visited is {}, mates are {mates:?}", game.move_text(most)));
    }
    if report.value.0 <= 0.5 { Err(format!("root value {} for the mating side", report.value.0)) } else { Ok(()) }
}
