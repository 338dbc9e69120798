//! Runs `unjank alerts simulate` and parses its output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use unjank_protocol::Timestamp;

use crate::fleet::{DAY, MONDAY};
use crate::server;

/// Longest period of any fleet, in seconds.
const LONGEST: f64 = 70.0 * DAY;

pub(super) struct Simulator {
    server_bin: PathBuf,
    data_dir: PathBuf,
}

/// When rules are evaluated: from and to in seconds since the epoch, and the step in minutes.
#[derive(Clone, Copy)]
pub(super) struct Course {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) step: u64,
}

/// The results of a simulation.
#[derive(Clone, Debug, Default)]
pub(super) struct Happened {
    pub(super) transitions: Vec<Transition>,
    pub(super) evaluations: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Transition {
    #[serde(skip)]
    pub(super) rule: String,
    /// Microseconds since the epoch.
    pub(super) at: i64,
    pub(super) what: String,
    pub(super) group: BTreeMap<String, String>,
    pub(super) summary: String,
}

#[derive(Deserialize)]
struct Line {
    name: String,
    #[serde(default)]
    transition: Option<Transition>,
    #[serde(default)]
    evaluations: u64,
}

impl Simulator {
    pub(super) fn new(server_bin: &Path, data_dir: &Path) -> Result<Self> {
        let data_dir = data_dir.canonicalize().context("finding the data folder")?;
        Ok(Self {
            server_bin: server_bin.to_owned(),
            data_dir,
        })
    }

    /// Rolls up the generated raw rows.
    pub(super) fn roll_up(&self) -> Result<()> {
        let day = |at: f64| {
            Timestamp::from_micros(unjank_random::whole(at * 1e6).cast_signed()).to_string()
        };
        let period = ["--from", &day(MONDAY), "--to", &day(MONDAY + LONGEST)];
        let signals = [
            "spans",
            "page_loads",
            "frame_windows",
            "janks",
            "app_starts",
            "metrics",
            "traffic",
        ];
        server::roll_up(&self.server_bin, &self.data_dir, &period, &signals)
    }

    /// Evaluates the rules over a period, in two processes that run half of the rules each.
    pub(super) fn run(&self, project: &str, rules: &[Value], course: Course) -> Result<Happened> {
        let halves: Vec<_> = (0..rules.len().min(2))
            .map(|half| rules.iter().skip(half).step_by(2).collect::<Vec<_>>())
            .collect();
        let all = std::thread::scope(|scope| {
            let running: Vec<_> = halves
                .iter()
                .map(|half| scope.spawn(|| self.run_some(project, half, course)))
                .collect();
            running
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .collect::<Vec<_>>()
        });
        let mut happened = Happened::default();
        for part in all {
            let Ok(part) = part else {
                bail!("a simulation thread panicked");
            };
            let part = part?;
            happened.transitions.extend(part.transitions);
            happened.evaluations += part.evaluations;
        }
        happened.transitions.sort_by_key(|one| one.at);
        Ok(happened)
    }

    fn run_some(&self, project: &str, rules: &[&Value], course: Course) -> Result<Happened> {
        let mut file = tempfile::NamedTempFile::new().context("creating a file for the rules")?;
        serde_json::to_writer(&mut file, rules)?;
        let output = Command::new(&self.server_bin)
            .args(["alerts", "simulate", "--project", project])
            .args(["--from", &time(course.from), "--to", &time(course.to)])
            .args(["--step", &course.step.to_string(), "--rules"])
            .arg(file.path())
            .env("UNJANK_DATA_DIR", &self.data_dir)
            .env_remove("UNJANK_CLICKHOUSE_URL")
            .output()
            .context("running the server's `alerts simulate`")?;
        if !output.status.success() {
            bail!(
                "`alerts simulate`: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let mut happened = Happened::default();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let line: Line = serde_json::from_str(line).with_context(|| line.to_owned())?;
            happened.evaluations += line.evaluations;
            happened
                .transitions
                .extend(line.transition.map(|one| Transition {
                    rule: line.name,
                    ..one
                }));
        }
        Ok(happened)
    }
}

impl Transition {
    /// Returns how many minutes after `seconds` (since the epoch) the transition happened.
    pub(super) fn minutes_after(&self, seconds: f64) -> f64 {
        (self.at as f64 / 1e6 - seconds) / 60.0
    }
}

fn time(seconds: f64) -> String {
    Timestamp::from_micros((seconds * 1e6) as i64).to_string()
}
