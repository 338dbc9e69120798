//! Names from code, packages and files that look like personal data.

use std::sync::LazyLock;

use regex::Regex;

use super::patterns::regex;

/// What follows `@` in file names and package names, and is no top-level domain, or one without people.
const ENDINGS: &str = "aab aac aar aiff apk apks appex arb arsc asar asset assetbundle astc atlas avi avif bak bin blend bmp bnk bundle \
    caf car cer cfg cjs ckpt comp conf config cpp crate crt cshtml csproj css csv cur cxx dae dart dat dds deb debug der dex diff dill dll \
    dmg dmp dsym dylib ejs elf entitlements env eot exe exr fbx flac fnt frag framework fsb gem geom gguf gif glb glsl gltf gradle hbc hbs \
    hdr heic heif hlsl hpp hprof htm html icns ico ini ipa iso jar java jks jpeg jpg jsbundle json jsx jxl keystore kts ktx less lock log \
    lottie lproj lua map mat mdx metal metallib mid midi mjs mkv mlmodel mlmodelc mlpackage mobileprovision momd mpeg mpg msi nib node npy \
    npz nupkg oat obb obj odex ogg onnx opus otf pak parquet patch path pbxproj pdb pdf pem pfx php pkg plist plt ply png podspec prefab \
    proto psd pth pvr raw razor realm resw resx riv rpm rtf safetensors sass scala scss sdk shader skel sln snap spv sql sqlite srt stl \
    storyboard strings stringsdict styl svelte svg svgz swf swift swiftinterface swiftmodule sym tar tbd tesc tese tflite tga tgz tiff tmp \
    tmx toml trace tres tscn tsx ttc ttf txt uasset ubulk umap unity unitypackage usd usda usdc usdz vdex vert vtt vue wasm wat wav webm \
    webmanifest webp wem whl wma wmv woff xaml xapk xcassets xcconfig xcdatamodeld xcframework xcodeproj xcprivacy xcscheme xcstrings \
    xctest xcworkspace xib xlf xliff xml xsd xsl yaml yml";

/// Endings of units of systemd, whose instances have numbers: `user@1000.service`.
const UNITS: &str = "automount device mount scope service slice socket swap target timer";

/// Top-level domains of two letters. Others, such as in `hero@large.js` and `Cart@3f2a1b.go`, are no domains.
const COUNTRIES: &str = "ac ad ae af ag ai al am ao ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bv bw by bz ca cc \
    cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga gb gd ge gf gg gh gi \
    gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb \
    lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om \
    pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st su sv sx sy sz tc td \
    tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw";

/// Top-level domains of more than two letters under which most people have addresses.
const PEOPLE: &str = "com net org info biz edu gov mil name int";

/// Methods of objects that are no top-level domains, as `run` and `call` are.
const METHODS: &str = "accept apply cancel close commit create destroy dispatch execute finish flush invoke layout notify resume start stop \
    submit update wait write";

/// Schemes of URLs of packages, in which a version follows `@`.
const PACKAGES: [&str; 5] = ["jsr", "npm", "turbopack", "webpack", "webpack-internal"];

/// Roots of Android's file system. In the names of compiled code, `@` stands for `/`: `system@framework@boot.art`.
const ROOTS: &str = "apex data mnt odm oem product system system_ext vendor";

/// What precedes `@` in code.
const WORDS: &str = "break continue return super this";

/// A version, the scale of an image, or the hash of an object.
static VERSION: LazyLock<Regex> = LazyLock::new(|| regex(r"^v?[0-9]+\.[0-9]+(?:[.-]|$)"));
static SCALE_OR_NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"^[0-9]+x?\."));
static HASH: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:[0-9a-f]{1,16}\.[a-z]+|[0-9a-f]{5,16}(?:\.[a-z]+)+)$"));
/// A qualified class, as before `@` in the text of an object.
static CLASS: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^|[.$])_*[A-Z][A-Za-z0-9_]*$"));

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
    let is_name = (ending.len() == 2 && !is_country)
        || has(ENDINGS, ending)
        || (has(UNITS, ending) && domain.bytes().any(|byte| byte.is_ascii_digit()))
        || (has(WORDS, local) && !has(PEOPLE, ending))
        || (local == "git" && is_path(after))
        || is_compiled_code(before, local, ending, after)
        || matches!(domain, "plt.got" | "plt.sec")
        || (ending == "so" && is_library(domain, after))
        || VERSION.is_match(domain)
        || (!has_people && SCALE_OR_NUMBER.is_match(domain))
        || is_object(before, local, domain, has_people);
    !is_name
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

/// Whether this is a method of an object of Java, Kotlin or Dart: `Cart@3f2a1b.pay`, `Cart$1@5f2e1a.run`, `_Cart@26150128.pay`. A compiler may
/// have named the class: `-$$Lambda$Cart$x-9@5f2e1a.run`, `a.b@5f2e1a3b.run`. A hash without digits may be a word, such as in
/// `Bob@facade.app`.
fn is_object(before: &str, local: &str, domain: &str, has_people: bool) -> bool {
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
    if has_people {
        let is_private = local.starts_with('_') && is_number(hash) && hash.len() >= 8;
        return !matches!(ending, "com" | "net" | "org")
            && hash.len() >= 5
            && (is_private || (is_mixed && (is_inner || is_camel(local))));
    }
    is_inner
        || (is_mixed && hash.len() >= 5 && before.ends_with('$'))
        || (is_mixed && hash.len() >= 7 && is_obfuscated(local))
        || (is_class && (has_digit || hash.len() >= 8 || has(METHODS, ending)))
}

/// Whether a qualified class has the short names that an obfuscator gives: `a.bC.d`.
fn is_obfuscated(local: &str) -> bool {
    let is_short =
        |part: &str| part.len() <= 2 && part.starts_with(|char: char| char.is_ascii_alphabetic());
    local.contains('.') && local.split('.').all(is_short)
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
