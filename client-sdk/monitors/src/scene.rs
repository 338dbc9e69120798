//! The surroundings of an event: the screen, the network and the clock.

use unjank_protocol::{Network, Text};

use crate::{WallClock, bounded};

/// The surroundings that events report. Pass each change to the state machines.
///
/// ```
/// use unjank_monitors::Scene;
/// use unjank_protocol::Network;
/// let scene = Scene { network: Network::Wifi, ..Scene::new("CartActivity") };
/// assert!(scene.foreground);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// The screen; empty if there is none.
    pub page: String,
    /// The network the device is on.
    pub network: Network,
    /// Whether the app is in the foreground.
    pub foreground: bool,
    /// Converts uptime to wall time.
    pub wall: WallClock,
}

impl Scene {
    /// Creates a scene with the screen `page` in the foreground, on an unknown network, with a wall clock at 1970. The name is
    /// cut at 1 KiB.
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
