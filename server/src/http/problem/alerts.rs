//! What is answered when an alert rule cannot be saved or tried.

use axum::http::StatusCode;

use super::Problem;
use crate::alerts::RuleFault;

impl From<Vec<RuleFault>> for Problem {
    fn from(faults: Vec<RuleFault>) -> Self {
        let said: Vec<_> = faults
            .iter()
            .map(|fault| format!("`{}`: {}", fault.path, fault.message))
            .collect();
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "alert_rule_invalid",
            said.join("; "),
        )
        .and("faults", serde_json::to_value(faults).unwrap_or_default())
    }
}
