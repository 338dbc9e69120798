//! Names from code, packages and files that look like personal data.

use std::sync::LazyLock;

use regex::Regex;

use super::domains::{COUNTRIES, OPEN, PEOPLE};
use super::patterns::regex;

/// What follows `@` in file names and package names, and is no top-level domain, or one without people.
const ENDINGS: &str = "aab aac aar aep aiff apk apks apng appex arb arrow arsc asar asmdef asset assetbundle astc atlas avi avif avro avsc \
    awb bak bicep bin blend bmp bnk bundle caf capnp car cer cfg cjs cjson ckpt comp conf config cpp crate crt cshtml csl csproj css csv \
    cur cxx dae dart dat dds deb debug der dex diff dill dll dmg dmp doc docx dsym dylib ebuild ejs elf eml entitlements env eot eps epub \
    exe exr fbs fbx feature flac flatc fnt frag framework fsb ftl gem geom gguf gif glb glsl gltf gql gradle graphql graphqls har hbc hbs \
    hcl hdr heex heic heif hjson hlsl hpp hprof htm html icns ico ini ipa ipynb iso jar java jks joblib jpeg jpg jsbundle json jsonc jsonl \
    jsx jxl kdl keystore ktm kts ktx less lock log lottie lproj lua lzma map mat mdb mdx mermaid metal metallib mid midi mjs mkv mlmodel \
    mlmodelc mlpackage mobileconfig mobileprovision momd mpeg mpg msi mtl ndjson nib node npy npz nupkg oat obb obj odex odp ods odt ogg \
    ogv onnx opus orc otf pak parquet patch path pbtxt pbxproj pdb pdf pem pfx php pickle pkg pkl plist plt ply png podspec pptx prefab \
    proto psb psd pth puml purs pvr raw razor realm rego resw resx riv rlib rmd rpm rst rtf rtfd safetensors sass scala scss sdk shader \
    skel sketch sketchplugin slim sln snap spriteatlas spv sql sqlite sqlitedb srt stl storyboard strings stringsdict styl svelte svg svgz \
    swc swf swift swiftinterface swiftmodule sym tar tbd tesc tese tflite tfstate tfvars tga tgz thrift tif tiff tmp tmx toml toon trace \
    tres tscn tsv tsx ttc ttf txt uasset ubulk umap unity unitypackage uproject usd usda usdc usdz uss uxml vbs vdex vert vsix vtt vtu vue \
    wasm wat wav webm webmanifest webp wem wgsl whl wma wmv woff wsdl xaml xapk xcarchive xcassets xcconfig xcdatamodeld xcframework \
    xcodeproj xcprivacy xcscheme xcstrings xctest xcuserstate xcworkspace xib xlf xliff xls xlsx xml xmp xps xsd xsl yaml yml zst";

/// Endings of units of systemd, whose instances have numbers, or whose templates are known: `user@1000.service`, `openvpn@client.service`.
const UNITS: &str = "automount device mount scope service slice socket swap target timer";

/// Templates of units of systemd, besides those that begin with `systemd-`.
const TEMPLATES: &str = "autovt borgmatic container-getty dbus dhcpcd drbd e2scrub fsck getty gunicorn hostapd ifup mariadb modprobe mysqld \
    netctl nginx openvpn openvpn-client openvpn-server php-fpm postgresql redis redis-server restic serial-getty sshd strongswan stunnel \
    syncthing tor user user-runtime-dir vncserver wg-quick wpa_supplicant";

/// File endings of the web. Servers store such files compressed with Brotli, as `cart.js.br`.
const WEB: &str = "css html js json map mjs svg ttf wasm webmanifest woff xml";

/// Methods of objects that are no top-level domains, as `run` and `call` are.
const METHODS: &str = "accept apply cancel close commit create destroy dispatch execute finish flush invoke layout notify resume start stop \
    submit update wait write";

/// Classes with one word that is no name of a person.
const CLASSES: &str = "Activity Adapter Context Dialog Fragment Handler Logger Looper Object Thread View Widget Window Worker";

/// Schemes of URLs of packages, in which a version follows `@`.
const PACKAGES: [&str; 5] = ["jsr", "npm", "turbopack", "webpack", "webpack-internal"];

/// Roots of Android's file system. In the names of compiled code, `@` stands for `/`: `system@framework@boot.art`.
const ROOTS: &str = "apex data mnt odm oem product system system_ext vendor";

/// What precedes `@` in code.
const WORDS: &str = "break continue return super this";

/// A version, the scale of an image, or the hash of an object.
static VERSION: LazyLock<Regex> = LazyLock::new(|| regex(r"^v?[0-9]+\.[0-9]+(?:[.-]|$)"));
static SCALE_OR_NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"^[0-9]+[Xx]?\."));
static HASH: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^(?:[0-9a-f]{1,16}\.[a-z]+|(?:0x[0-9A-Fa-f]{6,16}|[0-9a-f]{5,16})(?:\.[a-z]+)+)$")
});
/// A class, as before `@` in the text of an object.
static CLASS: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^|[.$])_*[A-Z][A-Za-z0-9_]*$"));
/// A class in a package. `j.Smith` may be a person.
static QUALIFIED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:[a-z][a-z0-9_]*\.){2,}[A-Z][A-Za-z0-9_]*$"));

fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == word)
}

/// Whether `local@domain` is an e-mail address, and not a name.
pub(super) fn is_address(before: &str, local: &str, domain: &str, after: &str) -> bool {
    let ending = domain.rsplit('.').next().unwrap_or_default();
    let ending = ending.to_ascii_lowercase();
    let ending = ending.as_str();
    let is_country = ending.len() == 2 && has(COUNTRIES, ending);
    let has_people = is_country || has(PEOPLE, ending);
    let may_have_people = has_people || has(OPEN, ending);
    let is_name = (ending.len() == 2 && !is_country)
        || has(ENDINGS, ending)
        || is_unit(local, domain, ending)
        || (has(WORDS, local) && !has(PEOPLE, ending))
        || (local == "git" && is_path(after))
        || is_compiled_code(before, local, ending, after)
        || matches!(domain, "plt.got" | "plt.sec")
        || (ending == "so" && is_library(domain, after))
        || VERSION.is_match(domain)
        || (!may_have_people && SCALE_OR_NUMBER.is_match(domain))
        || is_file(domain)
        || is_object(before, local, domain, (has_people, may_have_people));
    !is_name
}

/// Whether this is a unit of systemd.
fn is_unit(local: &str, domain: &str, ending: &str) -> bool {
    let is_template = || has(TEMPLATES, local) || local.starts_with("systemd-");
    has(UNITS, ending) && (domain.bytes().any(|byte| byte.is_ascii_digit()) || is_template())
}

/// Whether this is a file whose ending is the top-level domain of a country: `logo@2x.ai`, `logo@2x.svg.br`.
fn is_file(domain: &str) -> bool {
    static IMAGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^[1-4](?:\.[0-9])?[Xx]\.(?i:ai|ps)$"));
    let packed = domain
        .strip_suffix(".br")
        .and_then(|file| file.rsplit_once('.'));
    packed.is_some_and(|(_, ending)| has(WEB, ending)) || IMAGE.is_match(domain)
}

/// Whether the path of a repository follows: `git@github.com:acme/shop`.
fn is_path(after: &str) -> bool {
    let path = after.strip_prefix([':', '/']);
    path.is_some_and(|path| path.starts_with(|char: char| char.is_alphanumeric()))
}

/// Endings of compiled code on Android.
const COMPILED: &str = "art dex oat odex vdex";

/// Whether this is a part of a path of Android with `@` in place of `/`: `data@app@com.example.shop-1@base.apk@classes.vdex`.
fn is_compiled_code(before: &str, local: &str, ending: &str, after: &str) -> bool {
    /// How many bytes before the match are searched for the root.
    const NEAR: usize = 200;
    let is_other = |char: char| !char.is_ascii_alphanumeric() && !"@._+-~=".contains(char);
    let near = before.floor_char_boundary(before.len().saturating_sub(NEAR));
    let near = before.get(near..).unwrap_or_default();
    let start = near.rsplit(is_other).next().unwrap_or_default();
    let root = start.split_once('@').map_or(local, |(root, _)| root);
    let is_inside = start.contains('@') || (start.is_empty() && after.starts_with('@'));
    let rest = after.split(is_other).next().unwrap_or_default();
    let rest = rest.trim_end_matches('.');
    let last = rest.rsplit('.').next().filter(|last| !last.is_empty());
    is_inside && has(ROOTS, root) && has(COMPILED, last.unwrap_or(ending))
}

/// Whether what ends in `.so` is a shared library, such as in `malloc@libc.so.6`, and not an address in Somalia.
fn is_library(domain: &str, after: &str) -> bool {
    let is_version = after
        .strip_prefix('.')
        .is_some_and(|version| version.starts_with(|char: char| char.is_ascii_digit()));
    is_version || domain.starts_with("lib")
}

/// Whether this is a method of an object of Java, Kotlin, Dart or Swift: `Cart@3f2a1b.pay`, `Cart$1@5f2e1a.run`, `_Cart@26150128.pay`,
/// `Cart@0x7fa8b1c2d3.pay`. A compiler may have named the class: `-$$Lambda$Cart$x-9@5f2e1a.run`, `a.b@5f2e1a3b.run`. A hash without digits
/// may be a word, such as in `Bob@facade.app`.
///
/// `people` is whether most people have addresses under the top-level domain, and whether any person may have one.
fn is_object(before: &str, local: &str, domain: &str, people: (bool, bool)) -> bool {
    let (has_people, may_have_people) = people;
    if !HASH.is_match(domain) {
        return false;
    }
    let hash = domain.split('.').next().unwrap_or_default();
    let ending = domain.rsplit('.').next().unwrap_or_default();
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_digit = hash.bytes().any(|byte| byte.is_ascii_digit());
    let is_mixed = has_digit && !is_number(hash);
    let is_class = CLASS.is_match(local);
    // An inner class, or the address of a lambda.
    let is_inner = (before.ends_with('$') && (is_class || is_number(local)))
        || (before.ends_with('/') && local.starts_with("0x"));
    let is_trade = matches!(ending, "com" | "net" | "org");
    if hash.starts_with("0x") {
        return !is_trade && (is_class || is_inner || !may_have_people);
    }
    let is_private = local.starts_with('_') && is_number(hash) && hash.len() >= 8;
    if has_people {
        let is_named = has(CLASSES, local) || is_camel(local) || QUALIFIED.is_match(local);
        let is_code = is_inner || is_named;
        return !is_trade && hash.len() >= 5 && (is_private || (is_mixed && is_code));
    }
    // `run` is a method more often than a domain.
    if may_have_people && ending != "run" {
        return is_inner || is_private || (is_mixed && is_class && hash.len() >= 5);
    }
    is_inner
        || (is_mixed && hash.len() >= 6)
        || (is_mixed && hash.len() >= 5 && before.ends_with('$'))
        || (is_class && (has_digit || hash.len() >= 8 || has(METHODS, ending)))
}

fn is_camel(local: &str) -> bool {
    let is_hump = |pair: &[u8]| matches!(pair, [b'a'..=b'z', b'A'..=b'Z']);
    local.as_bytes().windows(2).any(is_hump)
}

/// Whether what looks like the user of a URL is a package and its version, such as in `webpack://shop@1.2.0/`, the number of a user of
/// Android in `content://10@media/`, or the user that all clients of git share.
pub(super) fn is_package(before: &str, user: &str, after: &str) -> bool {
    static WHOLE_VERSION: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"^v?[0-9]+(?:\.[0-9]+){1,2}(?:[-+][A-Za-z0-9.+-]*)?(?:[/\s?#:"')]|$)"#)
    });
    let is_scheme = PACKAGES.iter().any(|scheme| before.ends_with(scheme));
    (is_scheme && !user.contains(':') && WHOLE_VERSION.is_match(after))
        || user == "git"
        || (before.ends_with("content")
            && user.len() <= 3
            && user.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether what looks like a phone number is a coordinate: one to three digits, then five or more after a point. In ISO 6709, the second
/// coordinate follows at once, and `/` at the end.
pub(super) fn is_coordinate(text: &str, after: &str) -> bool {
    static COORDINATE: LazyLock<Regex> = LazyLock::new(|| regex(r"^\D?\+[0-9]{1,3}\.[0-9]{5,}$"));
    static TWO: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^\D?\+[0-9]{2,6}\.[0-9]+-[0-9]{3,7}\.[0-9]+$"));
    COORDINATE.is_match(text) || (after.starts_with(['/', '+', '-']) && TWO.is_match(text))
}

/// Whether what looks like a phone number is the size of a screen, and a scale follows: `bg-320-568-1136@2x.png`.
pub(super) fn is_size(text: &str, after: &str) -> bool {
    static SCALE: LazyLock<Regex> = LazyLock::new(|| regex(r"^@[0-9]+x"));
    !text.contains('+') && SCALE.is_match(after)
}

/// Quantities that numbers follow.
const QUANTITIES: &str = "alloc allocated allocations allocs bytes count delta frame frames heap height http mem memory offset offsets pss \
    range res resolution row rows rss screen size sizes status total usage viewport width";

/// Whether what looks like a phone number is several numbers: `+52.5200 13.4050`, `+1 073 741 824`, `HTTP 200 304-1024`.
pub(super) fn is_numbers(before: &str, text: &str, after: &str) -> bool {
    /// Numbers of which the first has a sign and a fraction.
    static DECIMALS: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^\D{0,2}\+[0-9]+\.[0-9]+(?:[ -][0-9]+(?:\.[0-9]+)?)+$"));
    static NORTH_AMERICAN: LazyLock<Regex> =
        LazyLock::new(|| regex(r"\+1(?:[ .-][2-9][0-9]{2}){2}[ .-][0-9]{4}$"));
    /// One number, in groups of thousands.
    static THOUSANDS: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^\D{0,2}\+(?P<first>[1-9][0-9]{0,2})(?:[ .][0-9]{3}){2,4}$"));
    static PLAIN: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^\D?(?P<area>[2-9][0-9]{2})[ -][2-9][0-9]{2}-[0-9]{4}$"));
    static UNIT: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^ ?(?:B|[Bb]ytes|[kKMG]i?B|ns|us|µs|ms|rows|objects|allocs)\b"));
    static GOES_ON: LazyLock<Regex> = LazyLock::new(|| regex(r"^[ .-]?[0-9(]"));
    // A fraction of one digit, or of five and more, is not in the match.
    let fraction = |char: char| char != '.' && !char.is_ascii_digit();
    let (fraction, _) = after.split_at(after.find(fraction).unwrap_or(after.len()));
    let whole = format!("{text}{}", fraction.trim_end_matches('.'));
    if whole.matches('.').count() >= 2 && DECIMALS.is_match(&whole) {
        return !NORTH_AMERICAN.is_match(&whole);
    }
    let is_quantity = || has(QUANTITIES, &last_word(before)) || UNIT.is_match(after);
    if let Some(number) = THOUSANDS.captures(text) {
        // No country has the code 12, and codes of one digit precede ten digits.
        let first = number.name("first").map_or("", |first| first.as_str());
        let is_code = first.len() > 1 && !first.starts_with('1');
        return !GOES_ON.is_match(after) && (!is_code || is_quantity());
    }
    let area = PLAIN.captures(text).and_then(|all| all.name("area"));
    area.is_some_and(|area| !is_area(area.as_str()) || is_quantity())
}

/// Whether North American phone numbers may begin with these digits.
fn is_area(digits: &str) -> bool {
    let is_reserved =
        digits.ends_with("11") || digits.starts_with("37") || digits.starts_with("96");
    !is_reserved && digits.as_bytes().get(1) != Some(&b'9') && !matches!(digits, "200" | "300")
}

/// The last letters of a text, in lower case.
fn last_word(text: &str) -> String {
    /// How many bytes at the end are searched.
    const NEAR: usize = 40;
    let near = text.bytes().rev().take(NEAR);
    let letters = near
        .skip_while(|byte| !byte.is_ascii_alphabetic())
        .take_while(u8::is_ascii_alphabetic);
    let reversed: Vec<u8> = letters.collect();
    let letters = reversed.into_iter().rev();
    letters
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect()
}

/// Whether what looks like the number of a card is a part of a decimal number, or of a UUID.
pub(super) fn is_part_of_number(before: &str, number: &str, after: &str) -> bool {
    static UUID: LazyLock<Regex> =
        LazyLock::new(|| regex(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"));
    /// How many bytes a UUID has.
    const NEAR: usize = 36;
    let is_fraction = match before.as_bytes() {
        [.., other, b'.'] => other.is_ascii_digit() || b"(:=,-+[".contains(other),
        [b'.'] => true,
        _ => false,
    };
    // Not the cents of a sum: `4111111111111111.50`.
    let is_decimal = || {
        let fraction = after.strip_prefix('.').unwrap_or_default();
        let is_digit = |byte: &u8| byte.is_ascii_digit();
        let fraction = fraction.bytes().take_while(is_digit);
        fraction.clone().count() >= 3 && fraction.clone().any(|digit| digit != b'0')
    };
    let is_other = |char: char| !char.is_ascii_hexdigit() && char != '-';
    let near = before.floor_char_boundary(before.len().saturating_sub(NEAR));
    let near = before.get(near..).unwrap_or_default();
    let prefix = near.rsplit(is_other).next().unwrap_or_default();
    let near = after.floor_char_boundary(NEAR);
    let near = after.get(..near).unwrap_or_default();
    let suffix = near.split(is_other).next().unwrap_or_default();
    let is_uuid = || UUID.is_match(&format!("{prefix}{number}{suffix}"));
    let is_one_number = number.bytes().all(|byte| byte.is_ascii_digit());
    (is_one_number && (is_fraction || is_decimal())) || is_uuid()
}
