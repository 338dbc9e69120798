//! Paths and links of frames, and templates that are refused.

use serde_json::json;

use super::*;

const GITHUB: &str = "https://github.com/acme/shop/blob/v{version}/{path}#L{line}";

fn links(template: &str, rules: &[(&str, &str)]) -> SourceLinks {
    let rules = rules.iter().map(|(prefix, replacement)| PathRule {
        prefix: (*prefix).to_owned(),
        replacement: (*replacement).to_owned(),
    });
    SourceLinks::new(SourceLinksDocument {
        template: template.to_owned(),
        rules: rules.collect(),
    })
    .unwrap()
}

fn refused(template: &str) -> TemplateError {
    let template = template.to_owned();
    let rules = Vec::new();
    match SourceLinks::new(SourceLinksDocument { template, rules }) {
        Err(SourceLinksError::Template(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn at<'a>(class: &'a str, file: &'a str, line: u32) -> CodeLocation<'a> {
    CodeLocation { class, file, line }
}

const APP: AppBuild<'_> = AppBuild {
    version: "4.12.0",
    number: 41_200,
};

#[test]
fn frames_of_kotlin_link_by_their_package() {
    let links = links(
        GITHUB,
        &[("com/example/", "app/src/main/java/com/example/")],
    );
    let cart = at("com.example.shop.Cart$total$1", "Cart.kt", 41);
    assert_eq!(
        links.url(cart, APP).unwrap(),
        "https://github.com/acme/shop/blob/v4.12.0/app/src/main/java/com/example/shop/Cart.kt#L41"
    );
    let other = at("okhttp3.internal.http.Chain", "Chain.kt", 3);
    assert_eq!(links.url(other, APP), Err(NoLink::NoRule));
    for no_file in ["", "SourceFile", "r8-map-id-5a7d1b0c", "Native Method"] {
        let frame = at("com.example.shop.Cart", no_file, 3);
        assert_eq!(links.url(frame, APP), Err(NoLink::NoFile), "{no_file}");
    }
}

#[test]
fn native_frames_link_by_their_path() {
    let links = links(GITHUB, &[("/builds/shop/", ""), (r"C:\work\shop\", "")]);
    let path = |file| links.path(at("", file, 3));
    for (file, expected) in [
        ("/builds/shop/src/cart.rs", Ok("src/cart.rs")),
        ("/builds/shop/./core/../src/cart.rs", Ok("src/cart.rs")),
        (r"C:\work\shop\src\cart.cpp", Ok("src/cart.cpp")),
        ("src/cart.rs", Ok("src/cart.rs")),
        ("./src/cart.rs", Ok("src/cart.rs")),
        ("../shop/src/cart.rs", Err(NoLink::NoFile)),
        ("/builds/other/src/cart.rs", Err(NoLink::NoRule)),
        ("webpack:///./src/cart.ts", Err(NoLink::NoRule)),
        (
            "/rustc/90b35a6239/library/std/src/io.rs",
            Err(NoLink::Library),
        ),
        (
            "/root/.cargo/registry/src/index-6f17/serde-1.0/src/lib.rs",
            Err(NoLink::Library),
        ),
        (
            "/builds/shop/node_modules/react/index.js",
            Err(NoLink::Library),
        ),
        ("node_modules/react/index.js", Err(NoLink::Library)),
    ] {
        assert_eq!(path(file), expected.map(str::to_owned), "{file}");
    }
    // One of several classes is in a package only if all of them are.
    let one_of = |class| links.path(at(class, "Cart.kt", 3));
    assert_eq!(one_of("org.{bank.Cart, shop.Cart}"), Err(NoLink::NoFile));
    // The class of a native frame is no package.
    let method = at("shop::Cart", "src/cart.rs", 3);
    assert_eq!(links.path(method).unwrap(), "src/cart.rs");
}

#[test]
fn a_rule_can_name_a_library() {
    let links = links(GITHUB, &[("/rustc/90b35a6239/", ""), ("/", "rest/")]);
    let path = |file| links.path(at("", file, 3));
    assert_eq!(
        path("/rustc/90b35a6239/library/io.rs").unwrap(),
        "library/io.rs"
    );
    assert_eq!(
        path("/rustc/1111111111/library/io.rs"),
        Err(NoLink::Library)
    );
    assert_eq!(path("/build/io.rs").unwrap(), "rest/build/io.rs");
}

#[test]
fn rules_apply_to_paths_with_a_scheme() {
    let links = links(
        GITHUB,
        &[("webpack:///", "web/"), ("package:shop/", "lib/")],
    );
    let path = |file| links.path(at("", file, 3)).unwrap();
    assert_eq!(path("webpack:///./src/cart.ts"), "web/src/cart.ts");
    assert_eq!(path("package:shop/cart.dart"), "lib/cart.dart");
}

#[test]
fn values_are_encoded() {
    let links = links(GITHUB, &[]);
    let app = AppBuild {
        version: "4.12/../#x y+7",
        number: 0,
    };
    assert_eq!(
        links.url(at("", "src/a b#c?%2e/ü.rs", 7), app).unwrap(),
        "https://github.com/acme/shop/blob/v4.12%2F..%2F%23x%20y%2B7/src/a%20b%23c%3F%252e/%C3%BC.rs#L7"
    );
}

#[test]
fn a_link_needs_what_its_template_names() {
    let cart = at("", "src/cart.rs", 41);
    let no_line = CodeLocation { line: 0, ..cart };
    let no_app = AppBuild::default();
    let dots = AppBuild {
        version: "..",
        ..APP
    };
    let github = links(GITHUB, &[]);
    assert_eq!(github.needs(), (true, false));
    assert_eq!(github.url(cart, no_app), Err(NoLink::NoVersion));
    assert_eq!(github.url(cart, dots), Err(NoLink::NoVersion));
    assert_eq!(
        github.url(no_line, APP).unwrap(),
        "https://github.com/acme/shop/blob/v4.12.0/src/cart.rs"
    );
    let gitiles = links("https://code.example.com/{build}/{path};l={line}", &[]);
    assert_eq!(gitiles.needs(), (false, true));
    assert_eq!(
        gitiles.url(cart, APP).unwrap(),
        "https://code.example.com/41200/src/cart.rs;l=41"
    );
    assert_eq!(gitiles.url(no_line, APP), Err(NoLink::NoLine));
    assert_eq!(gitiles.url(cart, no_app), Err(NoLink::NoBuild));
    assert_eq!(links("", &[]).url(cart, APP), Err(NoLink::NoTemplate));
}

#[test]
fn a_template_leads_to_one_host() {
    for template in [
        "javascript:alert({path})",
        "data:text/html,{path}",
        "//github.com/{path}",
        "github.com/{path}",
        "https://{version}/{path}",
        "https://github.com{path}",
        "https://{version}@github.com/{path}",
        "https://ann:secret@github.com/{path}",
        "https:///{path}",
        "https://github.com\\@evil.example/{path}",
        "HTTPS://github.com/{path}",
        "https://a b/{path}",
    ] {
        let error = refused(template);
        let is_expected = matches!(error, TemplateError::Address { .. } | TemplateError::Space);
        assert!(is_expected, "{template}: {error}");
    }
    let placeholder = |text: &str| TemplateError::Placeholder {
        found: text.to_owned(),
        known: "{path}, {line}, {version} or {build}".to_owned(),
    };
    for (template, error) in [
        ("https://github.com/{path}/{ref}", placeholder("{ref}")),
        ("https://github.com/{path}/{", placeholder("{")),
        ("https://github.com/{path}/}", placeholder("}")),
        (
            "https://github.com/{line}",
            TemplateError::Missing("{path}"),
        ),
    ] {
        assert_eq!(refused(template), error);
    }
    let long = format!("https://github.com/{{path}}{}", "x".repeat(500));
    assert_eq!(refused(&long), TemplateError::Long);
}

#[test]
fn rules_are_bounded() {
    let document = |rules: Value| -> Result<SourceLinks, SourceLinksError> {
        SourceLinks::new(serde_json::from_value(json!({"rules": rules})).unwrap())
    };
    let rule = |prefix: &str| json!({"prefix": prefix});
    assert!(document(json!([rule("/builds/")])).is_ok());
    let many = vec![rule("/builds/"); 21];
    assert_eq!(
        document(json!(many)).unwrap_err(),
        SourceLinksError::TooManyRules
    );
    let empty = document(json!([rule("/a/"), rule("")]));
    assert_eq!(empty.unwrap_err(), SourceLinksError::Prefix(2));
    let long = json!([{"prefix": "/a/", "replacement": "x".repeat(301)}]);
    assert_eq!(
        document(long).unwrap_err(),
        SourceLinksError::Replacement(1)
    );
    let list = json!({"rules": [["/a/", ""]]});
    assert!(serde_json::from_value::<SourceLinksDocument>(list).is_err());
}
