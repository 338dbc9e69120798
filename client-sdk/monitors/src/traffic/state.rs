//! The state that a meter keeps across restarts: versioned JSON, with rows as on the wire.
//!
//! ```json
//! {"version":1,"open":[{"day":"2026-11-20","source":"api",…}],"taken":[{"token":"…","rows":[…]}]}
//! ```
//! Fields may be added. A change of meaning requires a new version.

use std::fmt;

use serde::{Deserialize, Serialize};
use unjank_protocol::{Text, Traffic};

const VERSION: u32 = 1;

/// Why saved bytes were rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateError {
    /// The bytes are not a state that a meter wrote.
    Damaged,
    /// The state has this version, which this crate cannot read.
    Version(u32),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged => f.write_str("the saved traffic is damaged"),
            Self::Version(version) => write!(
                f,
                "the saved traffic has version {version}, this is version {VERSION}"
            ),
        }
    }
}

impl std::error::Error for StateError {}

#[derive(Deserialize)]
struct Header {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct State<'a> {
    version: u32,
    #[serde(borrow, default)]
    open: Vec<Traffic<'a>>,
    #[serde(borrow, default)]
    taken: Vec<Taken<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Taken<'a> {
    #[serde(borrow)]
    token: Text<'a>,
    #[serde(borrow)]
    rows: Vec<Traffic<'a>>,
}

type Batches = Vec<(String, Vec<Traffic<'static>>)>;

pub(super) fn write(open: Vec<Traffic<'_>>, taken: &Batches) -> Vec<u8> {
    let taken = taken.iter().map(|(token, rows)| Taken {
        token: Text::from(token.as_str()),
        rows: rows.clone(),
    });
    let state = State {
        version: VERSION,
        open,
        taken: taken.collect(),
    };
    serde_json::to_vec(&state).unwrap_or_default()
}

pub(super) fn read(saved: &[u8]) -> Result<(Vec<Traffic<'static>>, Batches), StateError> {
    let header: Header = serde_json::from_slice(saved).map_err(|_| StateError::Damaged)?;
    if header.version != VERSION {
        return Err(StateError::Version(header.version));
    }
    let state: State<'_> = serde_json::from_slice(saved).map_err(|_| StateError::Damaged)?;
    let owned = |rows: Vec<Traffic<'_>>| rows.into_iter().map(owned).collect::<Vec<_>>();
    let taken = state.taken.into_iter();
    let taken = taken.map(|taken| (taken.token.to_string(), owned(taken.rows)));
    Ok((owned(state.open), taken.collect()))
}

fn owned(row: Traffic<'_>) -> Traffic<'static> {
    Traffic {
        source: Text::from(row.source.into_cow().into_owned()),
        day: row.day,
        network: row.network,
        tx_bytes: row.tx_bytes,
        rx_bytes: row.rx_bytes,
        requests: row.requests,
        failed_requests: row.failed_requests,
    }
}
