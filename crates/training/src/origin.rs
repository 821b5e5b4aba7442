//! How a network came to be: the stages behind it, for the network that training goes on from and for the one that is
//! published.

use std::path::Path;

use nn::Checkpoint;
use pipeline::{Stamp, Store};
use serde_json::{Value, json};

use crate::Result;
use crate::profile::Layout;
use crate::stages::{NetworkRef, fingerprint, finished};

/// Hours to three places.
pub(crate) fn hours(seconds: f64) -> f64 {
    (seconds / 3.6).round() / 1000.0
}

/// The seconds behind the network that training began with, as [`of_start`] has told of it; 0 where that is null.
pub(crate) fn seconds_of(start: &Value) -> f64 {
    3600.0 * start["hours"].as_f64().unwrap_or(0.0)
}

/// What people are told of the network that training began with: its folder, the seconds behind it, and which one it is.
/// `None` if training began with random weights.
pub(crate) fn told(start: &Value) -> Option<(String, f64, String)> {
    let folder = start["folder"].as_str()?.to_owned();
    let command = start["made"]["command"].as_str().map(|command| format!(", of `{command}`")).unwrap_or_default();
    let what = format!("network {:.8}{command}", start["network"].as_str().unwrap_or_default());
    Some((folder, seconds_of(start), what))
}

/// A finished stage, for `checkpoint.json`.
pub(crate) fn stage(name: &str, stamp: &Stamp) -> Value {
    json!({
        "stage": name,
        "seconds": stamp.seconds.round(),
        "hours": hours(stamp.seconds),
        "sittings": stamp.sittings,
        "machine": stamp.machine,
        "finished": stamp.finished,
    })
}

/// What is known of a network that training starts from: `folder`, `network` (fingerprint), `hours` in all, and `made`, what
/// it says itself if it was published, else the stages beside it.
pub(crate) fn of_start(network: &NetworkRef) -> Result<Value> {
    let said = Checkpoint::load(&Store::open_existing(&network.dir)?)?.info.provenance;
    let made = if said["stages"].is_array() { said } else { of_run(&network.dir, &said["init"])? };
    Ok(json!({
        "folder": network.dir,
        "network": network.fingerprint,
        "hours": made["hours"],
        "made": made,
    }))
}

/// The stages behind the network of a stage's folder: its own, the corpus if it learned from the one beside it, and those
/// behind the network `init` that it began with.
fn of_run(dir: &Path, init: &Value) -> Result<Value> {
    let Some(own) = finished(dir)? else { return Ok(Value::Null) };
    let corpus = dir.parent().map(|root| finished(&Layout::new(root).corpus())).transpose()?.flatten();
    let corpus = corpus.filter(|corpus| own.inputs.get("corpus") == Some(&fingerprint(corpus)));
    let stamps: Vec<&Stamp> = corpus.iter().chain([&own]).collect();
    let seconds: f64 = stamps.iter().map(|stamp| stamp.seconds).sum();
    let mut made = json!({
        "stages": stamps.iter().map(|stamp| stage(&stamp.stage, stamp)).collect::<Vec<_>>(),
        "hours": hours(seconds + seconds_of(init)),
    });
    if !init.is_null() {
        made["init"] = init.clone();
    }
    Ok(made)
}
