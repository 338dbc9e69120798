//! Checks the envelope of a batch, and who may send it.

use unjank_protocol::{Batch, Resource};

use super::{Device, NO_BATCH, Refusal};

/// Checks the ids and the size of an envelope.
pub(super) fn check(batch: &Batch<'_>) -> Result<(), Refusal> {
    if batch.batch_id == NO_BATCH {
        return Err(Refusal::Envelope(
            "`batch_id` is the nil UUID: give the batch an id of its own".to_owned(),
        ));
    }
    if batch.split_from.contains(&batch.batch_id) {
        return Err(Refusal::Envelope(
            "`split_from` names the batch itself: name the batches it was split from".to_owned(),
        ));
    }
    if batch.split_from.len() > Batch::MAX_SPLIT_FROM {
        return Err(Refusal::Envelope(format!(
            "`split_from` has more than {} ids",
            Batch::MAX_SPLIT_FROM
        )));
    }
    if batch.modules.len() > Batch::MAX_MODULES {
        return Err(Refusal::Envelope(format!(
            "`modules` has more than {} entries: list only the modules that frames refer to",
            Batch::MAX_MODULES
        )));
    }
    Ok(())
}

/// Checks that the sender may report for the app and the install.
pub(super) fn check_sender(resource: &Resource<'_>, device: &Device) -> Result<(), Refusal> {
    if resource.app_id.is_empty() {
        return Err(Refusal::Resource("`app_id` is empty".to_owned()));
    }
    if !device.allows(&resource.app_id) {
        let app_id = resource.app_id.as_str();
        return Err(Refusal::WrongApp(app_id.chars().take(128).collect()));
    }
    let only = device.install_id;
    if only.is_some_and(|only| only != resource.install_id) {
        return Err(Refusal::WrongInstall);
    }
    Ok(())
}
