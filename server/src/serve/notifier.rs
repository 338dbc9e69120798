//! Creates the notifier from the settings and starts its tasks.

use std::sync::Arc;
use std::time::Duration;

use unjank_database::Control;
use unjank_foundation::clock::Clock;
use unjank_foundation::secret::Secret;
use unjank_foundation::task::Tasks;
use uuid::Uuid;

use crate::access::{Access, InstanceSecret};
use crate::alerts::notify::{
    Mailer, Notifier, Outbound, announce_incidents, deliver, schedule_digests,
};
use crate::app::App;
use crate::config::Serve;
use crate::forward::ForwardQueue;
use crate::forwarding::Forwarder;
use crate::metrics::NotificationMetrics;
use crate::store::ClickHouse;
use crate::symbols::Symbolicator;

/// The inputs of the notifier besides its settings.
pub(super) struct NotifierInputs {
    pub(super) control: Control,
    pub(super) secret: Arc<InstanceSecret>,
    pub(super) clickhouse: ClickHouse,
    pub(super) clock: Clock,
    pub(super) access: Arc<Access>,
    pub(super) forward: Arc<ForwardQueue>,
    pub(super) metrics: NotificationMetrics,
}

pub(super) fn open(settings: &Serve, inputs: NotifierInputs) -> anyhow::Result<Notifier> {
    let own = &settings.notifications;
    let smtp = own.smtp_url.as_ref().map(Secret::reveal);
    let own_address = || format!("http://{}", settings.listen);
    Ok(Notifier {
        control: inputs.control,
        secret: inputs.secret,
        clickhouse: inputs.clickhouse,
        clock: inputs.clock,
        access: inputs.access,
        forward: inputs.forward,
        outbound: Outbound::new(own.notify_allow())?,
        mailer: Mailer::new(smtp, &own.mail_from)?,
        public_url: own.public_url.clone().unwrap_or_else(own_address),
        group_wait: Duration::from_millis(own.notify_group_wait_ms),
        holder: Uuid::new_v4().to_string(),
        metrics: inputs.metrics,
    })
}

pub(super) fn start(notifier: &Arc<Notifier>, tasks: &Tasks) {
    let own = || (Arc::clone(notifier), tasks.shutdown());
    let (notifier, shutdown) = own();
    tasks.spawn(
        "incidents to notifications",
        announce_incidents(notifier, shutdown),
    );
    let (notifier, shutdown) = own();
    tasks.spawn("notifications", deliver(notifier, shutdown));
    let (notifier, shutdown) = own();
    tasks.spawn("digests", schedule_digests(notifier, shutdown));
}

/// Starts to forward events. `patience` is the time that a shutdown allows for what waits.
pub(super) fn start_forwarding(app: &App, tasks: &Tasks, patience: Duration) {
    let notifier = &app.notifier;
    let forwarder = Forwarder {
        queue: Arc::clone(&notifier.forward),
        access: Arc::clone(&notifier.access),
        outbound: notifier.outbound.clone(),
        clock: notifier.clock.clone(),
        symbolicator: Arc::new(Symbolicator {
            lookups: app.symbols.lookups(),
        }),
        naming: Arc::default(),
    };
    // If it fails, nothing is forwarded any more, but all events are stored.
    tasks.spawn_optional("forwarding", forwarder.run(tasks.shutdown(), patience));
}
