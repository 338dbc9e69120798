//! The configuration of one device: the one that it gets now, that of an earlier revision, or that of a draft.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};
use unjank_database::{Actor, Control, ControlError, DocumentKind};
use unjank_foundation::clock::{DAY, UnixTime};
use unjank_remote_config::{Attributes, Configuration, Explained};

use super::compiling::compiling;
use super::configurations::{SaveError, checked, read};
use super::device_access::Project;
use super::recent_installs::MOST_DAYS;
use crate::store::SeenInstall;

/// The configuration that a question is about.
pub enum Choice {
    /// The one that devices get now.
    Served,
    /// A saved revision. 0: the defaults.
    Revision(i64),
    /// One that is not saved. It gets the number of the current revision.
    Draft(Value),
}

/// A question about one device.
pub struct Question {
    pub project: String,
    pub choice: Choice,
    pub attributes: Attributes,
    pub now: UnixTime,
}

/// What an install last reported.
pub struct LastReport {
    /// When its latest batch arrived.
    pub received_at: UnixTime,
    /// The latest revision that it ran.
    pub revision: u64,
    /// The names of the attributes that were filled from its batches.
    pub filled: Vec<String>,
}

/// Resolves a configuration for a device, with the reasons. `served` is the project in the snapshot. Waits until the actor may use a
/// compilation slot.
pub async fn explained(
    control: &Control,
    served: Arc<Project>,
    question: Question,
    actor: &Actor,
) -> Result<Explained, SaveError> {
    let Question {
        project,
        choice,
        attributes,
        now,
    } = question;
    let current = served.configuration.revision();
    let (text, compiled_as) = match choice {
        Choice::Served => {
            let revision = i64::try_from(current).unwrap_or(i64::MAX);
            (written(control, &project, revision).await?, None)
        }
        Choice::Revision(revision) => {
            let text = written(control, &project, revision).await?;
            (text, Some(u64::try_from(revision).unwrap_or_default()))
        }
        Choice::Draft(draft) => (draft, Some(current)),
    };
    let work = move || -> Result<Explained, SaveError> {
        let device = attributes.device();
        let Some(revision) = compiled_as else {
            // Devices get their documents from the configuration in memory, so this answer comes from it, too.
            let written =
                Configuration::from_value(text).map_err(|fault| SaveError::Faults(vec![fault]))?;
            return Ok(served.configuration.explain(&written, &device, now));
        };
        let draft = checked(text, revision)?;
        Ok(draft.compiled.explain(&draft.configuration, &device, now))
    };
    compiling(actor.holder(), work).await?
}

/// Returns a saved configuration. Revision 0 is the defaults.
async fn written(control: &Control, project: &str, revision: i64) -> Result<Value, ControlError> {
    if revision == 0 {
        return Ok(json!({}));
    }
    let kind = DocumentKind::Configuration;
    read(&control.document(kind, project, revision).await?)
}

/// Whether a stored text is the one that the device sent: not scrubbed, renamed or cut.
fn is_as_sent(stored: &str) -> bool {
    !stored.contains(['[', ']', '…']) && stored != "(other)"
}

/// Returns the periods in which to look for an install: the last day, which most installs were seen in, then the other days.
#[must_use]
pub fn searched_periods(now: UnixTime) -> [Range<UnixTime>; 2] {
    let yesterday = now - DAY;
    // The clock of another server may be ahead.
    [yesterday..now + DAY, now - DAY * MOST_DAYS..yesterday]
}

/// Fills the attributes that are missing with those that an install last reported.
pub fn fill(attributes: &mut Attributes, seen: SeenInstall) -> LastReport {
    let mut filled = Vec::new();
    let texts = [
        ("app_id", &mut attributes.app_id, seen.app_id),
        ("app_version", &mut attributes.app_version, seen.app_version),
        ("os_name", &mut attributes.os_name, seen.os_name),
        ("os_version", &mut attributes.os_version, seen.os_version),
        (
            "device_model",
            &mut attributes.device_model,
            seen.device_model,
        ),
        (
            "device_class",
            &mut attributes.device_class,
            seen.device_class,
        ),
        ("locale", &mut attributes.locale, seen.locale),
        ("sdk_version", &mut attributes.sdk_version, seen.sdk_version),
        ("user_id", &mut attributes.user_id, seen.user_id),
    ];
    for (name, given, reported) in texts {
        if given.is_none() && !reported.is_empty() && is_as_sent(&reported) {
            *given = Some(reported);
            filled.push(name.to_owned());
        }
    }
    if attributes.build.is_none() && seen.build > 0 {
        attributes.build = Some(seen.build);
        filled.push("build".to_owned());
    }
    LastReport {
        received_at: seen.last_seen,
        revision: seen.config_revision,
        filled,
    }
}
