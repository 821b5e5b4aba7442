//! Measuring: the best network in a match against the engine, a reference player or another network.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arena::{MatchSpec, OpeningSource};
use games::{Chess, Game, Rng};
use pipeline::{Stage, StageSpec, Stop};
use uci::{Engine, FoundEngine};

use crate::engines::{named_option, say_unset, stand_in_note};
use crate::matches::{Contender, play};
use crate::profile::{EngineConfig, EvalConfig, Layout, Profile, SettingError, content};
use crate::refine::{best_network, untrained};
use crate::stages::{NetworkRef, Stages, file_hash, fingerprint, locked_stage, required, summary};
use crate::teacher::{book_hash, engine_spec};
use crate::{Error, Result};

/// What a match measured.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct EvalReport {
    /// Our score in 0..1 over the games with a result; 0 if there is none.
    pub score: f64,
    /// The report as text, with the opponent's version and both limits.
    pub text: String,
}

/// Plays the `eval` stage with `network`, or the one that `[eval]` names, or the run's best network.
///
/// # Errors
/// No network yet, an opponent that cannot play, an engine that refuses its `UCI_Elo` or has none, or a stop request.
pub fn evaluate<G: Game>(
    profile: &Profile,
    layout: &Layout,
    network: Option<&Path>,
    stop: &Stop,
) -> Result<EvalReport> {
    let stages = Stages { profile, layout, stop };
    let network = match network {
        Some(dir) => NetworkRef::at(dir)?,
        None if profile.eval.network.is_empty() => best_network::<G>(stages)?,
        None => NetworkRef::named("eval.network", profile.eval.network.as_ref())?,
    };
    run::<G>(stages, &network, "eval", layout.eval(), 0)
}

/// Plays or reads a match against the evaluation's opponent.
pub(crate) fn run<G: Game>(
    stages: Stages<'_>,
    network: &NetworkRef,
    name: &str,
    folder: PathBuf,
    generation: u32,
) -> Result<EvalReport> {
    let profile = stages.profile;
    let opponent = Opponent::find::<G>(stages)?;
    let spec = stage_spec::<G>(stages, network, &opponent, name, folder.clone())?;
    let Some(stage) = locked_stage(spec, stages.layout, None)? else {
        let stamp = required(folder.clone(), "the match", "eval")?;
        return summary(&folder, &stamp);
    };
    let ours = contender_of::<G>(profile, network)?;
    let mut spec = match_spec::<G>(stages, generation);
    let theirs = opponent.contender::<G>(stages, &mut spec.notes)?;
    let report = play::<G>(&spec, &ours, &theirs, stage.dir(), stages.stop)?;
    let report = EvalReport { score: report.score.unwrap_or(0.0), text: report.to_string() };
    finish(&stage, &report)?;
    Ok(report)
}

/// A network with the simulations and the time of the evaluation.
fn contender_of<G: Game>(profile: &Profile, network: &NetworkRef) -> Result<Contender> {
    let config = &profile.eval;
    let contender = Contender::network::<G>(profile, network, &network.name(), config.simulations)?;
    let movetime = (config.movetime_ms > 0).then(|| Duration::from_millis(config.movetime_ms));
    Ok(contender.within(movetime))
}

fn finish(stage: &Stage, report: &EvalReport) -> Result<()> {
    stage.finish(&pipeline::content_hash(&content(report, &[])), report)?;
    Ok(())
}

fn stage_spec<G: Game>(
    stages: Stages<'_>,
    network: &NetworkRef,
    opponent: &Opponent,
    name: &str,
    dir: PathBuf,
) -> Result<StageSpec> {
    let profile = stages.profile;
    let mut settings = serde_json::json!({
        "game": G::NAME,
        "seed": profile.seed,
        "eval": content(&profile.eval, &["games", "concurrency", "network"]),
        "search": profile.search,
        // What `auto` stands for: with Stockfish installed later, this is another match.
        "engine": match opponent {
            Opponent::Engine(found) => {
                let engine = EngineConfig { path: found.name.clone(), ..profile.engine.clone() };
                Some(content(&engine, &["options", "answer_seconds"]))
            }
            _ => None,
        },
    });
    if profile.eval.movetime_ms > 0 {
        // The time that a search has is worth as much as what it runs on.
        settings["device"] = format!("{:?}", nn::select_device(&profile.device)?.location()).into();
    }
    if !profile.eval.book.is_empty() {
        settings["book"] = book_hash(&profile.eval.book)?;
    }
    let mut inputs = BTreeMap::from([("network".to_owned(), network.fingerprint.clone())]);
    match opponent {
        Opponent::Network(other) => inputs.insert("opponent".to_owned(), other.fingerprint.clone()),
        Opponent::Engine(found) => inputs.insert("opponent".to_owned(), file_hash(&found.path)?),
        Opponent::Reference | Opponent::Random => None,
    };
    let mut spec = stages.spec(name, dir, settings, inputs);
    spec.growable.insert("games".to_owned(), u64::from(profile.eval.games));
    Ok(spec)
}

fn match_spec<G: Game>(stages: Stages<'_>, generation: u32) -> MatchSpec {
    let (profile, config) = (stages.profile, &stages.profile.eval);
    let mut spec = MatchSpec::new("eval", u64::from(config.games), profile.seed ^ Rng::part("eval"));
    spec.openings = openings::<G>(config);
    spec.on_bad = profile.on_bad_shard.into();
    spec.concurrency = if config.concurrency > 0 { config.concurrency } else { profile.cores() };
    spec.max_plies = config.max_plies;
    spec.generation = generation;
    spec
}

fn openings<G: Game>(config: &EvalConfig) -> OpeningSource {
    match (G::NAME, config.book.as_str()) {
        (_, book) if !book.is_empty() => OpeningSource::Book { path: book.into(), plies: None },
        (Chess::NAME, _) => OpeningSource::Builtin {},
        _ if config.random_plies == 0 => OpeningSource::Start {},
        _ => OpeningSource::Random { plies: config.random_plies as u16 },
    }
}

/// The opponent that a profile names.
enum Opponent {
    Engine(FoundEngine),
    Reference,
    Random,
    Network(NetworkRef),
}

impl Opponent {
    fn find<G: Game>(stages: Stages<'_>) -> Result<Self> {
        let config = &stages.profile.eval;
        let unfit = |reason: &str| Err(SettingError::new("eval.opponent", &config.opponent, reason).into());
        match config.opponent.as_str() {
            "engine" if G::NAME != Chess::NAME => unfit("UCI engines play chess only; use \"reference\""),
            "engine" => Ok(Opponent::Engine(uci::choose_engine(&stages.profile.engine.path)?)),
            "reference" if G::reference().is_none() => unfit("chess has no reference player; use \"engine\""),
            "reference" => Ok(Opponent::Reference),
            "random" => Ok(Opponent::Random),
            "untrained" => Ok(Opponent::Network(untrained::<G>(stages)?)),
            "pretrained" => {
                let dir = stages.layout.pretrain();
                let stamp = required(dir.clone(), "the pre-trained network", "pretrain")?;
                Ok(Opponent::Network(NetworkRef { dir, fingerprint: fingerprint(&stamp) }))
            }
            path if Path::new(path).is_dir() => {
                Ok(Opponent::Network(NetworkRef::named("eval.opponent", path.as_ref())?))
            }
            _ => unfit("expected engine, reference, random, untrained, pretrained or a checkpoint folder"),
        }
    }

    /// The opponent, ready to play; `notes` takes what a reader of the report has to know about it.
    fn contender<G: Game>(&self, stages: Stages<'_>, notes: &mut Vec<String>) -> Result<Contender> {
        let (profile, config) = (stages.profile, &stages.profile.eval);
        Ok(match self {
            Opponent::Reference => Contender::Reference,
            Opponent::Random => Contender::Random,
            Opponent::Network(network) => contender_of::<G>(profile, network)?,
            Opponent::Engine(found) => {
                let mut spec = engine_spec(&profile.engine, stages.stop)?;
                let engine = Engine::start(&spec).map_err(|error| named_option(&profile.engine, error))?;
                say_unset("engine", engine.name(), engine.unset());
                let rated = engine.option_table().get("UCI_Elo").is_some();
                if found.stands_in {
                    notes.push(stand_in_note(engine.name()));
                }
                match config.elo {
                    0 => {}
                    elo if rated => {
                        let text = elo.to_string();
                        if let Err(fault) = engine.option_table().check("UCI_Elo", &text) {
                            return Err(SettingError::new("eval.elo", &text, fault.to_string()).into());
                        }
                        spec = spec.option("UCI_LimitStrength", "true").option("UCI_Elo", &text);
                    }
                    elo if found.stands_in => {
                        let note = format!("it plays at its limit alone, as it has no UCI_Elo (eval.elo = {elo})");
                        pipeline::say!("eval: {}: {note}", engine.name());
                        notes.push(note);
                    }
                    elo => return Err(Error::NoElo { engine: engine.name().to_owned(), elo }),
                }
                Contender::Engine { spec, limit: config.limit }
            }
        })
    }
}
