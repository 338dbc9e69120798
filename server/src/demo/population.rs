//! The users of the shop's app: their devices, where they live, how often they use the app, and when they update.

use unjank_protocol::{Network, Resource, Text};
use unjank_random::{Dice, Random};
use uuid::Uuid;

use super::versions::{Release, VERSIONS, Version};

/// A device model, as in the resource of a batch.
pub(super) struct Model {
    pub(super) name: &'static str,
    manufacturer: &'static str,
    class: &'static str,
    pub(super) refresh_hz: u16,
    os: &'static str,
    os_version: &'static str,
    weight: f64,
    /// Processing time relative to a mid-range device.
    slowness: f64,
}

const fn model(
    (name, manufacturer, class): (&'static str, &'static str, &'static str),
    (os, os_version, refresh_hz): (&'static str, &'static str, u16),
    weight: f64,
    slowness: f64,
) -> Model {
    Model {
        name,
        manufacturer,
        class,
        refresh_hz,
        os,
        os_version,
        weight,
        slowness,
    }
}

const MODELS: &[Model] = &[
    model(
        ("SM-A146B", "samsung", "low"),
        ("android", "13", 60),
        11.0,
        1.9,
    ),
    model(
        ("Redmi 12C", "Xiaomi", "low"),
        ("android", "12", 60),
        9.0,
        2.1,
    ),
    model(
        ("moto e13", "motorola", "low"),
        ("android", "13", 60),
        4.0,
        2.3,
    ),
    model(
        ("SM-A546B", "samsung", "mid"),
        ("android", "14", 120),
        14.0,
        1.0,
    ),
    model(
        ("Pixel 6a", "Google", "mid"),
        ("android", "15", 60),
        9.0,
        0.9,
    ),
    model(
        ("Redmi Note 12", "Xiaomi", "mid"),
        ("android", "13", 120),
        12.0,
        1.1,
    ),
    model(("CPH2483", "OPPO", "mid"), ("android", "14", 90), 7.0, 1.1),
    model(
        ("SM-S921B", "samsung", "high"),
        ("android", "15", 120),
        7.0,
        0.6,
    ),
    model(
        ("Pixel 8 Pro", "Google", "high"),
        ("android", "15", 120),
        5.0,
        0.6,
    ),
    model(
        ("CPH2609", "OnePlus", "high"),
        ("android", "14", 120),
        4.0,
        0.55,
    ),
    model(
        ("iPhone12,8", "Apple", "low"),
        ("ios", "17.6", 60),
        3.0,
        1.3,
    ),
    model(
        ("iPhone13,2", "Apple", "mid"),
        ("ios", "18.1", 60),
        6.0,
        0.8,
    ),
    model(
        ("iPhone14,5", "Apple", "mid"),
        ("ios", "18.2", 60),
        5.0,
        0.7,
    ),
    model(
        ("iPhone16,1", "Apple", "high"),
        ("ios", "18.2", 120),
        4.0,
        0.5,
    ),
];

/// Locale, hours ahead of UTC, and share of the customers.
const PLACES: &[(&str, i64, f64)] = &[
    ("de-DE", 1, 30.0),
    ("fr-FR", 1, 16.0),
    ("pl-PL", 1, 12.0),
    ("en-GB", 0, 12.0),
    ("es-ES", 1, 9.0),
    ("it-IT", 1, 8.0),
    ("nl-NL", 1, 5.0),
    ("tr-TR", 3, 4.0),
    ("pt-BR", -3, 4.0),
];

/// Networks away from home, with their relative frequency.
const MOBILE: &[(Network, f64)] = &[
    (Network::Cellular4g, 5.0),
    (Network::Cellular5g, 4.0),
    (Network::Cellular3g, 0.7),
    (Network::Cellular2g, 0.1),
];

pub(super) struct Install {
    pub(super) number: u64,
    id: Uuid,
    user: String,
    pub(super) model: &'static Model,
    locale: &'static str,
    pub(super) hours_ahead: i64,
    channel: &'static str,
    /// Sessions on an ordinary day.
    pub(super) uses_a_day: f64,
    /// Traffic relative to the usual amount. A few installs have a hundred times as much.
    pub(super) appetite: f64,
    /// How long the user delays an update, as a share of the month.
    patience: f64,
    /// How far the device's clock is ahead, in microseconds.
    pub(super) clock_ahead_us: i64,
    wifi: f64,
}

impl Install {
    pub(super) fn is_ios(&self) -> bool {
        self.model.os == "ios"
    }

    pub(super) fn slowness(&self) -> f64 {
        self.model.slowness
    }

    /// Returns the installed version at a time, which is given as the elapsed share of the month.
    pub(super) fn version(&self, gone: f64) -> &'static Version {
        let updated = |version: &&Version| version.released + self.patience <= gone;
        VERSIONS.iter().rev().find(updated).unwrap_or(&VERSIONS[0])
    }

    pub(super) fn network(&self, random: &mut Random) -> Network {
        if random.chance(self.wifi) {
            return Network::Wifi;
        }
        let dice = Dice::new(MOBILE.iter().map(|(_, weight)| *weight));
        MOBILE[dice.roll(random)].0
    }

    pub(super) fn resource(&self, version: &Version) -> Resource<'static> {
        let Release { build, sdk_version } = version.release(self.is_ios());
        Resource {
            app_id: Text::from(super::APP),
            app_version: Text::from(version.name),
            build,
            channel: Text::from(self.channel),
            mode: Text::from("production"),
            os_name: Text::from(self.model.os),
            os_version: Text::from(self.model.os_version),
            device_model: Text::from(self.model.name),
            device_manufacturer: Text::from(self.model.manufacturer),
            device_class: Text::from(self.model.class),
            refresh_hz: self.model.refresh_hz,
            locale: Text::from(self.locale),
            install_id: self.id,
            user_id: Text::from(self.user.clone()),
            sdk_name: Text::from("unjank"),
            sdk_version: Text::from(sdk_version),
        }
    }
}

/// Returns how much longer a response takes over a network than over Wi-Fi.
pub(super) fn network_slowness(network: Network) -> f64 {
    match network {
        Network::Cellular5g => 1.1,
        Network::Cellular4g => 1.5,
        Network::Cellular3g => 2.6,
        Network::Cellular2g => 5.0,
        _ => 1.0,
    }
}

/// Returns all installs. A larger `count` adds installs and does not change the others.
pub(super) fn installs(seed: u64, count: u64) -> Vec<Install> {
    let models = Dice::new(MODELS.iter().map(|model| model.weight));
    let places = Dice::new(PLACES.iter().map(|(_, _, weight)| *weight));
    (0..count)
        .map(|number| install(seed, number, &models, &places))
        .collect()
}

/// One in this many installs has about a hundred times the usual traffic, so that every population has a few of them.
const HUNGRY_ONE_IN: u64 = 53;

fn install(seed: u64, number: u64, models: &Dice, places: &Dice) -> Install {
    let random = &mut Random::seeded(&[seed, 1, number]);
    let model = &MODELS[models.roll(random)];
    let (locale, hours_ahead, _) = PLACES[places.roll(random)];
    let ios = model.os == "ios";
    Install {
        number,
        id: random.uuid(),
        user: if random.chance(0.6) {
            format!("u{:016x}", random.bits())
        } else {
            String::new()
        },
        model,
        locale,
        hours_ahead,
        channel: match random.unit() {
            _ if ios => "appstore",
            share if share < 0.86 => "play",
            share if share < 0.96 => "galaxy",
            _ => "beta",
        },
        uses_a_day: random.log_normal(0.24, 0.7).min(2.0),
        appetite: if number % HUNGRY_ONE_IN == 11 {
            random.log_normal(100.0, 0.4)
        } else {
            random.log_normal(0.8, 0.7)
        },
        patience: if random.chance(0.07) {
            2.0
        } else {
            random.exponential(0.09)
        },
        clock_ahead_us: if random.chance(0.03) {
            60_000_000 * (random.signed(180) + 3)
        } else {
            random.signed(4_000_000)
        },
        wifi: 0.35 + random.unit() * 0.55,
    }
}
