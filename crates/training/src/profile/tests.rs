//! Every setting with a limited choice is refused under its own key.

use serde_json::Value;

use super::*;

/// A chess profile in which every optional setting is there.
const WHOLE: &str = r#"
game = "chess"
corpus.adjudicate = { score = 900, plies = 6 }
corpus.soft = { multipv = 4, temperature = 0.05 }
net.se = 4
search.playout_cap = { full = 0.25, simulations = 20 }
pretrain.init = "data/other/pretrain"
pretrain.optimizer = "muon"
pretrain.policy = "visits"
train.optimizer = "muon"
relabel.limit = { nodes = 100 }
eval.movetime_ms = 100
results.elo = 1500
results.limit = { nodes = 100 }
policy.games.soft = { multipv = 4, temperature = 0.05 }
policy.games.adjudicate = { score = 900, plies = 6 }
policy.labels.engine = { path = "stockfish" }
"#;

/// Texts of which any is possible, as far as a profile knows: names of files and engines, SQL.
const FREE: [&str; 13] = [
    "data",
    "engine.path",
    "corpus.book",
    "eval.book",
    "eval.network",
    "pretrain.init",
    "pretrain.where",
    "policy.where",
    "policy.engine.path",
    "policy.engine.options.Policy",
    "policy.games.book",
    "policy.labels.engine.path",
    "policy.labels.engine.options.Policy",
];
/// Words or a checkpoint folder: known where the stage looks for the folder. `tests/it/bad_input.rs` holds these to it.
const AT_USE: [&str; 2] = ["refine.init", "eval.opponent"];

fn read(set: &[String]) -> std::result::Result<Profile, String> {
    let profile: Profile = pipeline::parse_config(WHOLE, "x.toml", set).map_err(|e| e.to_string())?;
    profile.check().map_err(|e| e.to_string())?;
    Ok(profile)
}

/// The full keys of the values below `value`.
fn leaves(key: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                leaves(&if key.is_empty() { name.clone() } else { format!("{key}.{name}") }, value, found);
            }
        }
        other => found.push((key.to_owned(), other.clone())),
    }
}

#[test]
fn a_wrong_word_is_refused_under_its_own_key() {
    let mut settings = Vec::new();
    leaves("", &serde_json::to_value(read(&[]).unwrap()).unwrap(), &mut settings);
    let limited: Vec<_> =
        settings.iter().filter(|(key, _)| !FREE.contains(&&**key) && !AT_USE.contains(&&**key)).collect();
    assert!(limited.len() > 100, "{}", limited.len());
    for key in
        ["game", "device", "on_bad_shard", "net.value", "gate.on_reject", "pretrain.optimizer", "pretrain.policy"]
    {
        assert!(limited.iter().any(|(limited, _)| limited == key), "{key} is not among the settings that are tried");
    }
    for (key, value) in limited {
        let error = read(&[format!("{key}=no-such-choice")]).expect_err(key);
        // A list or a limit is one value: what is wrong in it is told of the whole.
        let owner = key.rsplit_once('.').map_or(&**key, |(table, _)| table);
        assert!(
            error.contains(&format!("`{key}`")) || error.contains(&format!("`{owner}`")),
            "{key} = {value}: {error}"
        );
    }
}

#[test]
fn a_number_out_of_range_is_refused_under_its_own_key() {
    for (key, value) in [
        ("corpus.games_per_shard", "0"),
        ("policy.games.games_per_shard", "0"),
        ("selfplay.games_per_shard", "0"),
        ("selfplay.simulations", "0"),
        ("gate.simulations", "0"),
        ("gate.games", "5"),
        ("eval.games", "0"),
        ("net.blocks", "0"),
        ("net.channels", "0"),
        ("pretrain.batch", "0"),
        ("train.batch", "0"),
        ("pretrain.holdout", "1.5"),
        ("train.teacher_share", "-0.5"),
        ("search.leaves", "0"),
        ("search.c_puct", "-1.0"),
        ("search.policy_temperature", "0.0"),
        ("search.playout_cap.full", "2.0"),
        ("selfplay.noise_weight", "1.5"),
        ("engine.answer_seconds", "-1.0"),
        ("results.shares", "[0]"),
    ] {
        let error = read(&[format!("{key}={value}")]).expect_err(key);
        assert!(error.starts_with(&format!("`{key}` = ")), "{key} = {value}: {error}");
    }
}

#[test]
fn a_time_for_a_network_that_does_not_search_is_refused() {
    let error = read(&["eval.simulations=0".to_owned()]).unwrap_err();
    assert!(error.contains("eval.movetime_ms") && error.contains("eval.simulations"), "{error}");
    read(&["eval.simulations=0".to_owned(), "eval.movetime_ms=0".to_owned()]).unwrap();
}

#[test]
fn an_address_is_no_folder() {
    for address in ["s3://bucket/x", "gs://bucket", "file:///data/x", "https://host/x"] {
        let error = read(&[format!("data={address}")]).unwrap_err();
        assert!(error.contains("data") && error.contains(address) && error.contains("expected a folder"), "{error}");
    }
}
