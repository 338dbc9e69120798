//! `unjank classify`, as a person runs it on a pasted stack.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt;

use crate::engine::UNJANK;

/// Marks the code of the app in all languages.
const RULES: &str = r#"
[[rule]]
match = "com.example."
means = "in_app"
owner = "team-orders"

[[rule]]
match = "Checkout."
means = "in_app"
owner = "team-orders"
"#;

const V8: &str = "\
Error: too late
    at emit (node:events:513)
    at Socket.emit (node:domain:489:12)
    at async Checkout.pay (/app/checkout.js:42:7)
    at REPL1:1:1
";

const KOTLIN_NATIVE: &str = "\
Uncaught Kotlin exception: kotlin.IllegalStateException: too late
    at 0   shop.kexe   0x0000000104b2f5a5 kfun:kotlin.Exception#<init>(kotlin.String?){} + 93 (/opt/buildAgent/work/Exceptions.kt:28:37)
    at 1   shop.kexe   0x0000000104b30a11 kfun:com.example.Cart#pay(kotlin.Int){}kotlin.Boolean + 44 (/src/Cart.kt:42:7)
    at 2   shop.kexe   0x0000000104b30a99 kfun:com.example#main(){} + 12 (/src/main.kt:3:5)
";

const JVM: &str = "\
java.lang.IllegalStateException: too late
\tat com.google.gson.Gson.toJson(Gson.java:704)
\tat com.example.shop.Cart.pay(Cart.kt:42)
\tat com.example.shop.MainActivity.onCreate(MainActivity.kt:17)
";

/// Runs the command with a stack as its input.
async fn classified(arguments: &[&str], stack: &str) -> String {
    let mut child = tokio::process::Command::new(UNJANK)
        .arg("classify")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(stack.as_bytes()).await.unwrap();
    drop(input);
    let output = child.wait_with_output().await.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_of_every_runtime_have_their_frames_and_their_culprit() {
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(rules.path(), RULES).unwrap();
    let rules = rules.path().to_str().unwrap();
    for (stack, culprit, names) in [
        (
            V8,
            "Checkout.pay",
            &["emit", "Socket.emit", "Checkout.pay", "<anonymous>"][..],
        ),
        (
            KOTLIN_NATIVE,
            "com.example.Cart.pay",
            &[
                "kotlin.Exception.<init>",
                "com.example.Cart.pay",
                "com.example.main",
            ][..],
        ),
        (
            JVM,
            "com.example.shop.Cart.pay",
            &[
                "com.google.gson.Gson.toJson",
                "com.example.shop.Cart.pay",
                "com.example.shop.MainActivity.onCreate",
            ][..],
        ),
    ] {
        let json = classified(&["--json", "--rules", rules], stack).await;
        let entries: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(entries.as_array().unwrap().len(), 1, "{json}");
        let frames = entries[0]["frames"].as_array().unwrap().iter();
        let found: Vec<&str> = frames
            .map(|frame| frame["name"].as_str().unwrap())
            .collect();
        assert_eq!(found, names);
        let class = &entries[0]["class"];
        assert_eq!(class["culprit"], culprit, "{json}");
        assert_eq!(class["owner"], "team-orders", "{json}");

        let table = classified(&["--rules", rules], stack).await;
        let decided = table.lines().find(|line| line.contains("CULPRIT"));
        assert!(
            decided.is_some_and(|line| line.contains(culprit)),
            "{table}"
        );
        // Without rules of their own, people see the frames all the same.
        let table = classified(&[], stack).await;
        for name in names {
            assert!(table.contains(name), "no {name} in\n{table}");
        }
    }
}
