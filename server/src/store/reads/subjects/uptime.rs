//! The time since the launch of the app, in steps. The cost of an event may grow with the time that the app has run.

use crate::store::reads::define::Dimension;

/// The step that the `uptime_ms` of a raw row is in.
pub(super) const STEP: &str = "multiIf(s.uptime_ms < 60000, 'under_1m', s.uptime_ms < 300000, '1m_5m', s.uptime_ms < 900000, '5m_15m', s.uptime_ms < 3600000, '15m_1h', 'over_1h')";

/// The step, or `unknown` if the device did not send the time.
const UNKNOWN_OR_STEP: &str = "multiIf(s.uptime_ms = 0, 'unknown', s.uptime_ms < 60000, 'under_1m', s.uptime_ms < 300000, '1m_5m', s.uptime_ms < 900000, '5m_15m', s.uptime_ms < 3600000, '15m_1h', 'over_1h')";

/// The dimension of signals whose roll-ups do not keep it.
/// Old devices do not send the time.
pub(super) const UPTIME: Dimension = Dimension::raw("uptime", UNKNOWN_OR_STEP);
