//! A few installs that go on after the month: they poll the configuration, and send a batch once a new revision has arrived. Until an
//! operator saves a revision, they send nothing, so the data stays as it was generated.

use std::cmp::Reverse;
use std::time::Duration;

use unjank_protocol::{Batch, Timestamp};
use unjank_random::Random;
use unjank_remote_config::Device;
use uuid::Uuid;

use super::delivery::Delivery;
use super::intake::send;
use super::population::{Install, installs};
use super::{PROJECT, Plan};
use crate::app::App;

/// The share of the installs that poll: one in this many, at least [`FEWEST`].
const ONE_IN: usize = 10;
const FEWEST: usize = 10;
/// Time between polls. Much shorter than in a real app, so that the rollout can be watched.
const POLL: Duration = Duration::from_secs(5);
/// The share of the polling installs that are in use during a poll.
const IN_USE: f64 = 0.3;

/// An install with the session in which it polls, and the revision that it runs.
struct Polling {
    install: Install,
    session_id: Uuid,
    revision: u64,
}

/// Polls the configuration until the future is dropped.
pub async fn follow_rollouts(app: &App, plan: &Plan) {
    let mut random = Random::seeded(&[plan.seed, 5, app.clock.now().as_micros().unsigned_abs()]);
    let mut polling = most_used(plan, revision(app), &mut random);
    loop {
        tokio::time::sleep(POLL).await;
        let latest = revision(app);
        let mut deliveries = Vec::new();
        for one in &mut polling {
            if one.revision < latest && random.chance(IN_USE) {
                match report(app, one, &mut random) {
                    Ok(delivery) => deliveries.push(delivery),
                    Err(error) => tracing::warn!(%error, "an install of the demo sends no batch"),
                }
            }
        }
        if let Err(error) = send(app, &deliveries).await {
            tracing::warn!(%error, "the installs of the demo could not send their batches");
        }
    }
}

/// The installs whose users open the app most often, because they sent data on the last day.
fn most_used(plan: &Plan, revision: u64, random: &mut Random) -> Vec<Polling> {
    let mut all = installs(plan.seed, plan.installs);
    all.sort_by_key(|install| Reverse(whole_thousandths(install.uses_a_day)));
    let count = (all.len() / ONE_IN).max(FEWEST);
    let polling = |install| Polling {
        install,
        session_id: random.uuid(),
        revision,
    };
    all.into_iter().take(count).map(polling).collect()
}

fn whole_thousandths(number: f64) -> u64 {
    unjank_random::whole(number * 1_000.0)
}

/// The current revision of the project's configuration.
fn revision(app: &App) -> u64 {
    let project = app.access.project(PROJECT);
    project.map_or(0, |project| project.configuration.revision())
}

/// Fetches the configuration of an install, and makes the batch that reports its revision.
fn report(app: &App, one: &mut Polling, random: &mut Random) -> anyhow::Result<Delivery> {
    let now = app.clock.now();
    let resource = one.install.resource(one.install.version(1.0));
    let install_id = resource.install_id.to_string();
    let device = Device {
        app_id: Some(&resource.app_id),
        app_version: Some(&resource.app_version),
        build: Some(resource.build),
        os_name: Some(&resource.os_name),
        os_version: Some(&resource.os_version),
        device_model: Some(&resource.device_model),
        device_class: Some(&resource.device_class),
        locale: Some(&resource.locale),
        sdk_version: Some(&resource.sdk_version),
        install_id: Some(&install_id),
        ..Device::default()
    };
    let project = app.access.project(PROJECT);
    let document = project.map(|project| project.configuration.resolve(&device, now));
    one.revision = document.map_or(0, |resolved| resolved.document.revision);
    let batch = Batch {
        batch_id: random.uuid(),
        session_id: one.session_id,
        config_revision: Some(one.revision),
        sent_at: Some(Timestamp::from_micros(now.as_micros())),
        resource,
        ..Batch::default()
    };
    Delivery::of(now.as_micros(), &batch)
}
