//! What each feature of an engine is worth: a match of the engine against itself without it, for each row of a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use arena::MatchReport;
use pipeline::{Stop, Store, say};
use serde::{Deserialize, Serialize};
use uci::{Engine, EngineSpec, OptionKind, OptionTable};

use super::config::{FeatureRow, FeaturesConfig, PlayerConfig, Setting, refuse};
use super::contest::Bout;
use crate::profile::Layout;
use crate::{Error, Result};

/// A table of features, as it is written as JSON and as a page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FeatureTable {
    /// What the engine calls itself, with its version.
    pub engine: String,
    /// The rows in the order of the file.
    pub features: Vec<Feature>,
}

/// A row: the engine as it is (A) against the engine without a feature (B).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Feature {
    /// Its name.
    pub name: String,
    /// The options that are set on the side with it, all of them; empty if there are none.
    #[serde(default)]
    pub with: String,
    /// The options that are set on the side without it, all of them: `NullMove=false`.
    pub without: String,
    /// The limit of both sides.
    pub limit: String,
    /// The match; `None` as long as it is not over.
    pub report: Option<MatchReport>,
}

/// Plays the matches of a table that are not done yet, each in a folder of its own under `root`, and writes
/// `root/features.json` and the page after each.
///
/// # Errors
/// A file that cannot be followed, an option that the engine does not have, or a stop request. A match that fails is
/// told of, the others are played, and its error comes back.
pub fn features(config: &FeaturesConfig, root: &Path, stop: &Stop) -> Result<FeatureTable> {
    config.check()?;
    let (engine, options) = ask(config, stop)?;
    let rows = rows(config, &options)?;
    let mut table = FeatureTable { engine, features: rows.iter().map(|row| config.blank(row)).collect() };
    let mut failed = None;
    for (i, row) in rows.iter().enumerate() {
        stop.check()?;
        match play(config, row, root, stop) {
            Ok(report) => table.features[i].report = Some(report),
            Err(error) if stop.requested() => return Err(error),
            Err(error) => {
                say!("error: {}: {}", row.name, pipeline::error_chain(&error));
                failed.get_or_insert(error);
            }
        }
        table.write(root, &config.features.out)?;
    }
    failed.map_or(Ok(table), Err)
}

/// The engine's name and options.
fn ask(config: &FeaturesConfig, stop: &Stop) -> Result<(String, OptionTable)> {
    let spec = EngineSpec::new(uci::find_engine(&config.features.engine)?).args(config.features.args.clone());
    let engine = Engine::start(&spec.interrupt(stop.flag()))?;
    Ok((engine.name().to_owned(), engine.option_table().clone()))
}

/// The rows of the file, checked against the engine before anything is played, and those of the other check options.
fn rows(config: &FeaturesConfig, options: &OptionTable) -> Result<Vec<FeatureRow>> {
    for row in &config.row {
        for (name, value) in row.changes() {
            if let Err(fault) = options.check(name, &value.to_string()) {
                return refuse(format!("row \"{}\"", row.name), fault.to_string());
            }
        }
    }
    let mut rows = config.row.clone();
    let listed = |name: &str| config.row.iter().any(|row| row.option.eq_ignore_ascii_case(name));
    let on = options.iter().filter(|o| o.kind == OptionKind::Check { default: true } && !listed(&o.name));
    for option in on.filter(|_| config.features.every_check) {
        let row = FeatureRow {
            name: option.name.clone(),
            option: option.name.clone(),
            value: Setting::Check(false),
            without: Default::default(),
            with: Default::default(),
            limit: None,
            games: None,
        };
        if let Some(other) = rows.iter().find(|other| other.folder() == row.folder()) {
            let why = format!("the option {} gets a row of its own name: call this one something else", row.name);
            return refuse(format!("row \"{}\"", other.name), why);
        }
        rows.push(row);
    }
    Ok(rows)
}

fn play(config: &FeaturesConfig, row: &FeatureRow, root: &Path, stop: &Stop) -> Result<MatchReport> {
    let shared = &config.features;
    let player = |options| PlayerConfig {
        engine: shared.engine.clone(),
        args: shared.args.clone(),
        options,
        ..PlayerConfig::default()
    };
    let (first, second) = (player(config.with_feature(row)), player(config.without_feature(row)));
    let stem = root.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}/{}", row.folder());
    let rules = config.rules(Some(row));
    let folder = root.join(row.folder());
    Bout { name: &name, folder, first: &first, second: &second, rules: &rules }.play(&Layout::new(root), stop)
}

fn listed(options: &BTreeMap<String, Setting>) -> String {
    options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

impl FeaturesConfig {
    /// A row before its match.
    fn blank(&self, row: &FeatureRow) -> Feature {
        Feature {
            name: row.name.clone(),
            with: listed(&self.with_feature(row)),
            without: listed(&self.without_feature(row)),
            limit: row.limit.unwrap_or(self.features.limit).to_string(),
            report: None,
        }
    }
}

impl FeatureTable {
    fn write(&self, root: &Path, page: &Path) -> Result<()> {
        let json =
            serde_json::to_string_pretty(self).map_err(|e| Error::File { path: root.into(), source: e.into() })?;
        Store::open(root)?.put("features.json", json.as_bytes())?;
        let folder = page.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Some(name) = page.file_name() else {
            return refuse("features.out", format!("expected a file, got \"{}\"", page.display()));
        };
        Ok(Store::open(folder)?.put(&name.to_string_lossy(), self.page().as_bytes())?)
    }

    /// What the matches were played on, as far as it is known.
    fn machines(&self) -> String {
        let sets = self.features.iter().filter_map(|feature| Some(feature.report.as_ref()?.instruction_set.as_str()));
        let sets: BTreeSet<&str> = sets.filter(|set| !set.is_empty()).collect();
        let sets: Vec<&str> = sets.into_iter().collect();
        if sets.is_empty() { String::new() } else { format!(" Played on {}.", sets.join(" and ")) }
    }

    /// The markdown page.
    pub fn page(&self) -> String {
        let mut page = String::from("# What the engine's features are worth\n\n");
        let _ = write!(
            page,
            "Written by `make features`; the matches and their settings are rows of its TOML file ([how to](8-matches.md)).\n\n\
             {} plays itself with and without a feature, from paired openings. The Elo is what having the feature is worth at \
             that limit, with its 95 % interval from the pairs. Where the interval holds 0, this many games do not tell. \
             The values of features do not add up.\n\n\
             The columns `with it` and `without it` name every option that is set on that side.{}\n\n\
             | feature | with it | without it | limit | games | Elo of having it | LOS | + = - | LL LD WL+DD WD WW |\n\
             |---|---|---|---|---|---|---|---|---|\n",
            self.engine,
            self.machines()
        );
        for Feature { name, with, without, limit, report } in &self.features {
            let with = if with.is_empty() { String::new() } else { format!("`{with}`") };
            let _ = write!(page, "| {name} | {with} | `{without}` | {limit} |");
            let _ = match report {
                Some(report) => writeln!(
                    page,
                    " {} | {} | {} | {} | {} |",
                    report.games,
                    report.elo,
                    report.los.map_or_else(|| "?".to_owned(), |los| format!("{:.1} %", 100.0 * los)),
                    report.total,
                    report.pairs.0.map(|n| n.to_string()).join(" "),
                ),
                None => writeln!(page, " | not played yet | | | |"),
            };
        }
        page
    }
}

impl std::fmt::Display for FeatureTable {
    /// A line a feature, for a terminal.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: Elo of having a feature", self.engine)?;
        let width = self.features.iter().map(|feature| feature.name.chars().count()).max().unwrap_or(0);
        for Feature { name, limit, report, .. } in &self.features {
            let elo = report.as_ref().map_or_else(|| "not played".to_owned(), |report| report.elo.to_string());
            writeln!(f, "  {name:width$}  {elo}  ({limit})")?;
        }
        Ok(())
    }
}
