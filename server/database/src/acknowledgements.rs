//! Acknowledgements of incidents: who looks after an incident, and since when.

use serde_json::{Value as Json, json};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Values, values};
use super::change::{Change, Entry};
use super::error::ControlError;
use super::incidents::Incident;

const ACKNOWLEDGE: &str = "
    UPDATE incidents
    SET acknowledged_at = $3, acknowledged_by = $4
    WHERE project = $1
      AND id = $2
      AND acknowledged_at IS NULL";
const WITHDRAW: &str = "
    UPDATE incidents
    SET acknowledged_at = NULL, acknowledged_by = NULL
    WHERE project = $1
      AND id = $2
      AND acknowledged_at IS NOT NULL";

impl Control {
    /// Acknowledges an incident, or withdraws its acknowledgement. Keeps an existing acknowledgement. Writes an audit entry only if the
    /// incident changes.
    pub async fn set_acknowledged(
        &self,
        (project, id): (&str, Uuid),
        is_acknowledged: bool,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Incident, ControlError> {
        let (update, values, action) = match is_acknowledged {
            true => (
                ACKNOWLEDGE,
                values![project, id, at, actor.to_string()],
                Action::IncidentAcknowledged,
            ),
            false => (
                WITHDRAW,
                values![project, id],
                Action::AcknowledgementWithdrawn,
            ),
        };
        let entry = (action, json!({}));
        self.change_incident((project, id), (update, values), entry, (actor, at))
            .await
    }

    /// Makes a change of one statement to an incident. Writes an audit entry only if the incident changes.
    pub(super) async fn change_incident(
        &self,
        (project, id): (&str, Uuid),
        (update, values): (&'static str, Values),
        (action, detail): (Action, Json),
        (actor, at): (&Actor, UnixTime),
    ) -> Result<Incident, ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        if change.execute(update, values).await? > 0 {
            change
                .commit(Entry {
                    action,
                    project: Some(project),
                    subject: &id.to_string(),
                    detail,
                })
                .await?;
        }
        self.incident(project, id).await
    }
}
