//! The simulated devices, in realistic proportions.

use unjank_protocol::{Network, Resource, Text};
use unjank_random::{Dice, Random};
use uuid::Uuid;

use crate::run_tag::RunTag;

struct Model {
    name: &'static str,
    maker: &'static str,
    class: &'static str,
    refresh_hz: u16,
    /// Factor by which the device is slower than the best one.
    slowness: f64,
    share: f64,
}

impl Model {
    fn os(&self) -> &'static str {
        if self.maker == "Apple" {
            "ios"
        } else {
            "android"
        }
    }
}

const fn model(
    name: &'static str,
    maker: &'static str,
    (class, slowness): (&'static str, f64),
    refresh_hz: u16,
    share: f64,
) -> Model {
    Model {
        name,
        maker,
        class,
        refresh_hz,
        slowness,
        share,
    }
}

const HIGH: (&str, f64) = ("high", 1.0);
const MID: (&str, f64) = ("mid", 1.8);
const LOW: (&str, f64) = ("low", 3.4);

const MODELS: &[Model] = &[
    model("SM-A546B", "samsung", MID, 120, 7.0),
    model("SM-A155F", "samsung", LOW, 90, 6.5),
    model("SM-S921B", "samsung", HIGH, 120, 5.5),
    model("SM-S918B", "samsung", HIGH, 120, 4.0),
    model("SM-A057F", "samsung", LOW, 60, 3.5),
    model("SM-G991B", "samsung", HIGH, 120, 2.5),
    model("23053RN02A", "Xiaomi", LOW, 90, 5.0),
    model("23106RN0DA", "Xiaomi", LOW, 90, 4.0),
    model("2312DRA50G", "Xiaomi", MID, 120, 3.5),
    model("23127PN0CC", "Xiaomi", HIGH, 120, 1.5),
    model("Pixel 8", "Google", HIGH, 120, 2.5),
    model("Pixel 7a", "Google", MID, 90, 2.0),
    model("Pixel 6", "Google", MID, 90, 1.2),
    model("CPH2591", "OPPO", LOW, 90, 3.0),
    model("CPH2487", "OPPO", MID, 120, 2.0),
    model("V2250", "vivo", LOW, 60, 2.5),
    model("V2318A", "vivo", HIGH, 120, 1.5),
    model("RMX3830", "realme", LOW, 90, 2.2),
    model("moto g54 5G", "motorola", MID, 120, 1.8),
    model("TECNO KI5k", "TECNO", LOW, 60, 1.6),
    model("NOH-NX9", "HUAWEI", HIGH, 90, 1.0),
    model("iPhone16,1", "Apple", HIGH, 120, 5.0),
    model("iPhone15,4", "Apple", HIGH, 60, 5.5),
    model("iPhone14,5", "Apple", HIGH, 60, 6.0),
    model("iPhone13,2", "Apple", MID, 60, 4.5),
    model("iPhone12,1", "Apple", MID, 60, 4.0),
    model("iPhone14,6", "Apple", LOW, 60, 1.5),
    model("iPad13,18", "Apple", MID, 60, 1.2),
];

const ANDROID_VERSIONS: &[(&str, f64)] = &[
    ("16", 9.0),
    ("15", 26.0),
    ("14", 27.0),
    ("13", 17.0),
    ("12", 10.0),
    ("11", 7.0),
    ("10", 4.0),
];
const IOS_VERSIONS: &[(&str, f64)] = &[
    ("26.1", 30.0),
    ("26.0", 22.0),
    ("18.6", 30.0),
    ("17.7", 12.0),
    ("16.7", 6.0),
];

struct App {
    id: &'static str,
    share: f64,
    /// Version, build and share. The newest comes first and is still being rolled out.
    versions: &'static [(&'static str, u64, f64)],
}

const APPS: &[App] = &[
    App {
        id: "com.example.shop",
        share: 70.0,
        versions: &[
            ("4.13.0", 41_300, 12.0),
            ("4.12.1", 41_210, 44.0),
            ("4.12.0", 41_200, 17.0),
            ("4.11.2", 41_120, 14.0),
            ("4.10.0", 41_000, 8.0),
            ("4.4.3", 40_430, 5.0),
        ],
    },
    App {
        id: "com.example.courier",
        share: 22.0,
        versions: &[
            ("2.8.0", 2_800, 55.0),
            ("2.7.4", 2_740, 35.0),
            ("2.6.0", 2_600, 10.0),
        ],
    },
    App {
        id: "com.example.kiosk",
        share: 8.0,
        versions: &[("1.19.0-rc.2", 1_190, 30.0), ("1.18.0", 1_180, 70.0)],
    },
];

const LOCALES: &[(&str, f64, i64)] = &[
    ("en-US", 21.0, -300),
    ("es-MX", 9.0, -360),
    ("pt-BR", 11.0, -180),
    ("de-DE", 10.0, 60),
    ("fr-FR", 8.0, 60),
    ("en-GB", 7.0, 0),
    ("en-IN", 12.0, 330),
    ("hi-IN", 4.0, 330),
    ("id-ID", 6.0, 420),
    ("ru-RU", 4.0, 180),
    ("tr-TR", 4.0, 180),
    ("ja-JP", 4.0, 540),
];

const NETWORKS: &[(Network, f64)] = &[
    (Network::Wifi, 61.0),
    (Network::Cellular4g, 24.0),
    (Network::Cellular5g, 9.0),
    (Network::Cellular3g, 2.5),
    (Network::Cellular, 1.0),
    (Network::Cellular2g, 0.5),
    (Network::Ethernet, 0.3),
    (Network::None, 1.2),
    (Network::Unknown, 0.5),
];

const DAY_US: i64 = 86_400_000_000;

/// All installs of a run. Each is generated from the seed on demand.
pub(crate) struct Population {
    seed: u64,
    tag: RunTag,
    models: Dice,
    android: Dice,
    ios: Dice,
    apps: Dice,
    locales: Dice,
    networks: Dice,
}

impl Population {
    pub(crate) fn new(seed: u64, tag: RunTag) -> Self {
        Self {
            seed,
            tag,
            models: Dice::new(MODELS.iter().map(|model| model.share)),
            android: Dice::new(ANDROID_VERSIONS.iter().map(|version| version.1)),
            ios: Dice::new(IOS_VERSIONS.iter().map(|version| version.1)),
            apps: Dice::new(APPS.iter().map(|app| app.share)),
            locales: Dice::new(LOCALES.iter().map(|locale| locale.1)),
            networks: Dice::new(NETWORKS.iter().map(|network| network.1)),
        }
    }

    /// Returns the `index`-th install.
    pub(crate) fn device(&self, index: u64) -> Device {
        let mut random = Random::seeded(&[self.seed, 0xde71ce, index]);
        let model = &MODELS[self.models.roll(&mut random)];
        let os_version = if model.os() == "ios" {
            IOS_VERSIONS[self.ios.roll(&mut random)].0
        } else {
            ANDROID_VERSIONS[self.android.roll(&mut random)].0
        };
        let app = &APPS[self.apps.roll(&mut random)];
        let versions = Dice::new(app.versions.iter().map(|version| version.2));
        let version = app.versions[versions.roll(&mut random)];
        let locale = LOCALES[self.locales.roll(&mut random)];
        let clock_skew_us = clock_skew(&mut random);
        Device {
            install_id: self.tag.install_id(clock_skew_us, &mut random),
            model,
            os_version,
            app_id: app.id,
            version: (version.0, version.1),
            channel: channel(model.os(), &mut random),
            locale: locale.0,
            utc_offset_us: locale.2 * 60_000_000,
            network: NETWORKS[self.networks.roll(&mut random)].0,
            user_id: random
                .chance(0.4)
                .then(|| format!("{:016x}", random.bits())),
            clock_skew_us,
        }
    }
}

fn channel(os: &str, random: &mut Random) -> &'static str {
    if os == "ios" {
        return if random.chance(0.97) {
            "appstore"
        } else {
            "testflight"
        };
    }
    if random.chance(0.85) {
        "play"
    } else {
        const STORES: &[&str] = &["galaxy", "huawei", "apk"];
        random.pick::<&str>(STORES)
    }
}

/// Most clocks are synchronized over the network. A few are wrong by minutes or days, and one in five hundred by years.
fn clock_skew(random: &mut Random) -> i64 {
    let sign = if random.chance(0.5) { 1 } else { -1 };
    let share = random.unit();
    let range = if share < 0.002 {
        (400 * DAY_US, 2_000 * DAY_US)
    } else if share < 0.01 {
        (DAY_US / 24, 3 * DAY_US)
    } else if share < 0.03 {
        (40_000_000, 3_600_000_000)
    } else {
        (0, 900_000)
    };
    let span = random.between(range.0.unsigned_abs(), range.1.unsigned_abs());
    sign * i64::try_from(span).unwrap_or_default()
}

/// One install of an app on one device.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) install_id: Uuid,
    model: &'static Model,
    os_version: &'static str,
    app_id: &'static str,
    version: (&'static str, u64),
    channel: &'static str,
    locale: &'static str,
    /// Local time minus UTC, in microseconds.
    pub(crate) utc_offset_us: i64,
    pub(crate) network: Network,
    user_id: Option<String>,
    /// Error of the device's clock (device time minus true time), in microseconds.
    pub(crate) clock_skew_us: i64,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Device {
    pub(crate) fn refresh_hz(&self) -> u16 {
        self.model.refresh_hz
    }

    /// Returns the factor by which everything takes longer than on the best device. The newest release of the shop app is a
    /// little slower.
    pub(crate) fn slowness(&self) -> f64 {
        if self.version.0 == "4.13.0" {
            self.model.slowness * 1.15
        } else {
            self.model.slowness
        }
    }

    pub(crate) fn resource(&self) -> Resource<'_> {
        Resource {
            app_id: Text::from(self.app_id),
            app_version: Text::from(self.version.0),
            build: self.version.1,
            channel: Text::from(self.channel),
            mode: Text::from("production"),
            os_name: Text::from(self.model.os()),
            os_version: Text::from(self.os_version),
            device_model: Text::from(self.model.name),
            device_manufacturer: Text::from(self.model.maker),
            device_class: Text::from(self.model.class),
            refresh_hz: self.model.refresh_hz,
            locale: Text::from(self.locale),
            install_id: self.install_id,
            user_id: Text::from(self.user_id.as_deref().unwrap_or_default()),
            sdk_name: Text::from("unjank-loadtest"),
            sdk_version: Text::from(env!("CARGO_PKG_VERSION")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::run_tag::{CLOCK_TOLERANCE_US, has_right_clock};

    #[test]
    fn install_ids_of_a_run_share_a_prefix_and_are_unique() {
        let tag = RunTag(0x0123_4567_89ab_cdef);
        let population = Population::new(1, tag);
        let ids: HashSet<Uuid> = (0..5_000)
            .map(|index| population.device(index).install_id)
            .collect();
        assert_eq!(ids.len(), 5_000);
        for id in ids {
            assert!(id.to_string().starts_with(&tag.install_prefix()), "{id}");
            assert_eq!(id.get_version_num(), 4);
        }
        let first = population.device(0);
        assert_eq!(
            has_right_clock(first.install_id),
            first.clock_skew_us.abs() < CLOCK_TOLERANCE_US
        );
    }

    #[test]
    fn the_population_includes_ios_wrong_clocks_and_old_versions() {
        let population = Population::new(1, RunTag(7));
        let devices: Vec<Device> = (0..4_000).map(|index| population.device(index)).collect();
        let share = |test: &dyn Fn(&Device) -> bool| {
            devices.iter().filter(|device| test(device)).count() as f64 / 4_000.0
        };
        assert!((0.2..0.4).contains(&share(&|device| device.model.os() == "ios")));
        assert!((0.01..0.05).contains(&share(&|device| device.clock_skew_us.abs() > 30_000_000)));
        assert!(share(&|device| device.version.0 == "4.4.3") > 0.01);
    }
}
