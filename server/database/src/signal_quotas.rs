//! Quotas of a project for individual signals. They cover only known signals that may be limited.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use unjank_protocol::Signal;

use super::backend::Row;
use super::checks;
use super::error::ControlError;

/// Events per second by signal; 0 rejects all. Signals not listed have no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalQuotas(BTreeMap<Signal, u64>);

impl SignalQuotas {
    /// Creates quotas from signal names. `None` means no limit.
    pub fn new<'n>(
        quotas: impl IntoIterator<Item = (&'n str, Option<u64>)>,
    ) -> Result<Self, ControlError> {
        let mut kept = BTreeMap::new();
        for (name, most) in quotas {
            let signal = limitable(name)?;
            if let Some(most) = most {
                checks::quota(Some(most))?;
                kept.insert(signal, most);
            }
        }
        Ok(Self(kept))
    }

    pub fn iter(&self) -> impl Iterator<Item = (Signal, u64)> {
        self.0.iter().map(|(signal, most)| (*signal, *most))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ignores signals that only a newer version knows: this version receives none of their events.
    pub(super) fn read(row: &Row) -> Result<Self, ControlError> {
        let kept: BTreeMap<String, u64> = row.json("signal_quotas")?;
        let known = kept
            .iter()
            .filter_map(|(name, most)| Some((limitable(name).ok()?, *most)));
        Ok(Self(known.collect()))
    }

    pub(super) fn json(&self) -> Json {
        let quotas = self.iter().map(|(signal, most)| (signal.as_str(), most));
        json!(quotas.collect::<BTreeMap<_, _>>())
    }
}

fn limitable(name: &str) -> Result<Signal, ControlError> {
    match Signal::from_name(name) {
        Signal::Other => {
            let limitable = |signal: &&Signal| !matches!(signal, Signal::SdkHealth | Signal::Other);
            let names = Signal::ALL.iter().filter(limitable);
            let names: Vec<_> = names.map(|signal| signal.as_str()).collect();
            // Truncated, because the name can be any text.
            let name: String = name.chars().take(64).collect();
            Err(checks::invalid(&format!(
                "`signal_quotas`: there is no signal `{name}`, only {}",
                names.join(", ")
            )))
        }
        Signal::SdkHealth => Err(checks::invalid(
            "`signal_quotas`: `sdk_health` cannot be limited, because it reports what happened to the other signals",
        )),
        signal => Ok(signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signals_that_may_be_limited_have_a_quota() {
        let quotas =
            SignalQuotas::new([("spans", Some(500)), ("metrics", Some(0)), ("janks", None)]);
        assert_eq!(quotas.unwrap().json(), json!({"spans": 500, "metrics": 0}));
        for (name, reason) in [
            (
                "span",
                "there is no signal `span`, only spans, frame_windows",
            ),
            ("other", "there is no signal"),
            ("sdk_health", "cannot be limited"),
        ] {
            let refused = SignalQuotas::new([(name, None)]).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
        assert!(SignalQuotas::new([("spans", Some(u64::MAX))]).is_err());
    }
}
