//! Engines at work on the games of a dataset: one a worker, started again when it fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use dataset::GameRecord;
use pipeline::{Progress, Stop};
use uci::{Engine, EngineError, EngineSpec, Limit, Supervised};

use crate::production::Production;
use crate::profile::{EngineConfig, SettingError};
use crate::teacher::teacher_spec;
use crate::{Error, Result};

/// The engine that teaches, as it is started.
pub(crate) struct Teacher {
    pub(crate) spec: EngineSpec,
    /// What it calls itself, with its version.
    name: String,
    /// Its options as they are set.
    options: Vec<(String, String)>,
}

impl Teacher {
    /// Starts the engine of a profile to learn which one it is; it comes along, ready to work.
    pub(crate) fn start(config: &EngineConfig, stop: &Stop) -> Result<(Self, Supervised)> {
        let spec = teacher_spec(config, stop)?;
        let mut supervised = Supervised::new(spec.clone());
        let engine = supervised.engine().map_err(|error| named_option(config, error))?;
        let name = engine.name().to_owned();
        say_unset("engine", &name, engine.unset());
        let defaults = spec.defaults.iter().filter(|(name, _)| !engine.unset().contains(name));
        let options = defaults.chain(&spec.options).cloned().collect();
        Ok((Teacher { spec, name, options }, supervised))
    }

    /// What its answers depend on beside the limit, for stamps: name and options.
    pub(crate) fn identity(&self) -> String {
        let options: Vec<String> = self.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {}", self.name, options.join(" "))
    }

    /// How it is called where its answers are stored.
    pub(crate) fn at(&self, limit: Limit) -> String {
        format!("{} {limit}", self.name)
    }

    /// Whether it gives the same answers every time.
    pub(crate) fn is_reproducible(&self, limit: Limit) -> bool {
        let weakened = |name: &str| ["Elo", "Skill", "Limit"].iter().any(|part| name.contains(part));
        !matches!(limit, Limit::MoveTime(_)) && !self.spec.options.iter().any(|(name, _)| weakened(name))
    }
}

/// Says which options an engine did not get because it has none of that name. `who` is its table in the settings.
pub(crate) fn say_unset(who: &str, engine: &str, unset: &[String]) {
    if !unset.is_empty() {
        pipeline::say!("{who}: {engine} has no option {}: not set", unset.join(" and no option "));
    }
}

/// An option that an engine of a profile refuses, under the key that asks for it.
pub(crate) fn named_option(config: &EngineConfig, error: EngineError) -> Error {
    let EngineError::Option { fault, .. } = &error else { return error.into() };
    let name = fault.name();
    let asked = config.options.iter().find(|(other, _)| other.trim().eq_ignore_ascii_case(name.trim()));
    match asked {
        Some((key, value)) => SettingError::new(format!("engine.options.{key}"), value, fault.to_string()).into(),
        None if name == "Hash" => SettingError::new("engine.hash_mb", config.hash_mb, fault.to_string()).into(),
        None => error.into(),
    }
}

/// What a report says where our own engine was played in place of Stockfish.
pub(crate) fn stand_in_note(id: &str) -> String {
    format!("no Stockfish was found, {id} stands in for it: nobody has rated it, so no rating is claimed")
}

/// What the workers share.
#[derive(Clone, Copy)]
pub(crate) struct Crew<'a> {
    pub(crate) production: &'a Production,
    pub(crate) stop: &'a Stop,
}

impl Crew<'_> {
    /// Has each engine make games with `next` until that has none left. `task` names the progress bar.
    pub(crate) fn run(
        self,
        task: &str,
        engines: Vec<Supervised>,
        next: impl Fn(&mut Supervised) -> Result<Option<GameRecord>> + Sync,
    ) -> Result<()> {
        let (total, already) = self.production.totals();
        let progress = Progress::new(task, Some(total));
        let failed = AtomicBool::new(false);
        let started = Instant::now();
        let work = |mut engine: Supervised| -> Result<()> {
            while !failed.load(Ordering::Relaxed) {
                self.stop.check()?;
                let Some(record) = next(&mut engine)? else { break };
                engine.succeeded();
                self.production.finished(record)?;
                let tally = self.production.tally();
                let rate = tally.positions as f64 / started.elapsed().as_secs_f64();
                progress.set(already + tally.games, &format!("{rate:.0} positions/s"));
            }
            Ok(())
        };
        let outcome: Vec<Result<()>> = std::thread::scope(|scope| {
            let handles: Vec<_> = engines
                .into_iter()
                .map(|engine| {
                    let (work, failed) = (&work, &failed);
                    scope.spawn(move || work(engine).inspect_err(|_| failed.store(true, Ordering::Relaxed)))
                })
                .collect();
            handles.into_iter().map(|h| h.join().unwrap_or(Err(Error::Worker))).collect()
        });
        outcome.into_iter().collect::<Result<()>>()?;
        progress.finish("done");
        Ok(())
    }

    /// Goes through a game although the engine may fail: once more from `begin`, so that it comes out as it would have
    /// undisturbed, and if that fails too from where it stands (`ply`), so that an engine that cannot live through a
    /// whole game still gets to its end.
    pub(crate) fn with_restarts<T, R>(
        self,
        id: u64,
        engine: &mut Supervised,
        begin: impl Fn() -> T,
        ply: impl Fn(&T) -> usize,
        go_on: impl Fn(&mut T, &mut Engine) -> std::result::Result<R, EngineError>,
    ) -> Result<(T, R)> {
        let mut failures = 0;
        let mut game = begin();
        loop {
            let stood = ply(&game);
            let error = match engine.engine().and_then(|engine| go_on(&mut game, engine)) {
                Ok(end) => return Ok((game, end)),
                Err(error) => error,
            };
            if error.is_interrupted() {
                self.stop.check()?;
                return Err(error.into());
            }
            failures += 1;
            if failures == 1 {
                pipeline::say!("warning: game {id}: {error}; the game is begun again");
                game = begin();
            } else {
                let stands = ply(&game);
                pipeline::say!("warning: game {id}: {error}; the game goes on from ply {stands}");
                if stands > stood {
                    engine.succeeded();
                    self.production.resumed(id);
                }
            }
            engine.failed(error)?;
        }
    }
}
