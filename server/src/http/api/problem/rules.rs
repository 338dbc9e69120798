//! Problems of classification rules that cannot be read, saved or tried.

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use unjank_stacks::RulesError;

use super::Problem;
use crate::access::owner_rules::ProposalError;
use crate::access::rule_sets;
use crate::history::DryRunError;
use crate::http::classification::rules::RulesFault;

impl From<RulesError> for Problem {
    fn from(error: RulesError) -> Self {
        let faults = [RulesFault::from(&error)];
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "rules_invalid",
            error.to_string(),
        )
        .and("faults", serde_json::to_value(faults).unwrap_or_default())
    }
}

impl From<rule_sets::SaveError> for Problem {
    fn from(error: rule_sets::SaveError) -> Self {
        match error {
            rule_sets::SaveError::Rules(error) => error.into(),
            rule_sets::SaveError::Control(error) => error.into(),
            rule_sets::SaveError::Busy(_) => Self::overloaded(),
        }
    }
}

impl From<ProposalError> for Problem {
    fn from(error: ProposalError) -> Self {
        match error {
            ProposalError::None(reason) => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid",
                reason.to_string(),
            ),
            ProposalError::Rules(error) => error.into(),
            ProposalError::Busy(_) => Self::overloaded(),
        }
    }
}

impl From<DryRunError> for Problem {
    fn from(error: DryRunError) -> Self {
        let detail = error.to_string();
        match error {
            DryRunError::Rules(error) => error.into(),
            DryRunError::Store(failure) => failure.into(),
            DryRunError::Busy => Self::new(StatusCode::SERVICE_UNAVAILABLE, "dry_run_busy", detail)
                .with(RETRY_AFTER, "5"),
        }
    }
}
