//! Problems of requests with an invalid alert rule.

use axum::http::StatusCode;

use super::Problem;
use crate::alerts::RuleFault;

impl From<Vec<RuleFault>> for Problem {
    fn from(faults: Vec<RuleFault>) -> Self {
        let details: Vec<_> = faults
            .iter()
            .map(|fault| format!("`{}`: {}", fault.path, fault.message))
            .collect();
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "alert_rule_invalid",
            details.join("; "),
        )
        .and("faults", serde_json::to_value(faults).unwrap_or_default())
    }
}
