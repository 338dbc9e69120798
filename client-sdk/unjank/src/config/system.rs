//! Fields of the device that the operating system knows.

use super::Device;

impl Device {
    /// Fills the fields that the app left empty, if the system knows them.
    #[expect(
        clippy::disallowed_methods,
        reason = "the language of the user, not a setting of ours"
    )]
    pub(crate) fn complete(&mut self) {
        let fill = |field: &mut String, known: Option<String>| {
            if field.is_empty() {
                *field = known.unwrap_or_default();
            }
        };
        let known = system();
        fill(&mut self.os_version, known.os_version);
        fill(&mut self.model, known.model);
        fill(&mut self.manufacturer, known.manufacturer);
        fill(
            &mut self.locale,
            std::env::var("LANG").ok().as_deref().and_then(locale),
        );
    }
}

#[derive(Default)]
struct System {
    os_version: Option<String>,
    model: Option<String>,
    manufacturer: Option<String>,
}

#[cfg(target_os = "linux")]
fn system() -> System {
    let read = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    System {
        os_version: read("/etc/os-release")
            .as_deref()
            .and_then(version_of_release),
        model: read("/sys/class/dmi/id/product_name"),
        manufacturer: read("/sys/class/dmi/id/sys_vendor"),
    }
}

#[cfg(target_os = "android")]
fn system() -> System {
    let properties = android_system_properties::AndroidSystemProperties::new();
    System {
        os_version: properties.get("ro.build.version.release"),
        model: properties.get("ro.product.model"),
        manufacturer: properties.get("ro.product.manufacturer"),
    }
}

#[cfg(target_vendor = "apple")]
fn system() -> System {
    let plist = "/System/Library/CoreServices/SystemVersion.plist";
    let text = std::fs::read_to_string(plist).unwrap_or_default();
    System {
        os_version: version_of_plist(&text),
        manufacturer: Some("Apple".to_owned()),
        ..System::default()
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn system() -> System {
    System::default()
}

/// The distribution and its version, such as `debian 12`.
#[cfg(any(target_os = "linux", test))]
fn version_of_release(text: &str) -> Option<String> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let (_, value) = lines.find(|(key, _)| *key == name)?;
        Some(value.trim_matches('"').to_owned())
    };
    match value("VERSION_ID") {
        Some(version) => Some(format!("{} {version}", value("ID").unwrap_or_default())),
        None => value("ID"),
    }
}

#[cfg(any(target_vendor = "apple", test))]
fn version_of_plist(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<key>ProductVersion</key>")?;
    let (_, rest) = rest.split_once("<string>")?;
    rest.split_once("</string>")
        .map(|(version, _)| version.to_owned())
}

/// Turns `de_DE.UTF-8` into `de-DE`. The locale `C` has no language.
fn locale(text: &str) -> Option<String> {
    let (name, _) = text.split_once('.').unwrap_or((text, ""));
    (name.len() >= 2 && name != "POSIX").then(|| name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_files_of_the_system() {
        let debian = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nVERSION_ID=\"12\"\nID=debian\n";
        assert_eq!(version_of_release(debian).as_deref(), Some("debian 12"));
        assert_eq!(version_of_release("ID=arch\n").as_deref(), Some("arch"));
        assert_eq!(version_of_release(""), None);
        let plist = "<dict><key>ProductVersion</key>\n<string>14.5</string></dict>";
        assert_eq!(version_of_plist(plist).as_deref(), Some("14.5"));
        assert_eq!(locale("de_DE.UTF-8").as_deref(), Some("de-DE"));
        assert_eq!((locale("C.UTF-8"), locale("")), (None, None));
    }

    #[test]
    fn what_the_app_says_stays() {
        let mut device = Device {
            os_version: "my own".to_owned(),
            ..Device::default()
        };
        device.complete();
        assert_eq!(device.os_version, "my own");
    }
}
