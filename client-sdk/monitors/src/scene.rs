//! What is true around an event: the screen, the network, the clock.

use unjank_protocol::{Network, Text};

use crate::{WallClock, bounded};

/// What events say about their surroundings. A machine is told when it changes.
///
/// ```
/// use unjank_monitors::Scene;
/// use unjank_protocol::Network;
/// let scene = Scene { network: Network::Wifi, ..Scene::new("CartActivity") };
/// assert!(scene.foreground);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// The screen; empty when there is none.
    pub page: String,
    /// The network the device is on.
    pub network: Network,
    /// Whether the app is in the foreground.
    pub foreground: bool,
    /// How wall time follows from uptime.
    pub wall: WallClock,
}

impl Scene {
    /// The screen `page` in the foreground, on an unknown network, with a wall clock at 1970. The name is cut at
    /// 1 KiB.
    #[must_use]
    pub fn new(page: &str) -> Self {
        Self {
            page: bounded(page).to_owned(),
            network: Network::Unknown,
            foreground: true,
            wall: WallClock::default(),
        }
    }

    pub(crate) fn page_text(&self) -> Text<'static> {
        Text::from(self.page.clone())
    }
}
