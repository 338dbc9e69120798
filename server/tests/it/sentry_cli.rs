//! The real `sentry-cli` uploads symbol files, as build tools run it.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use unjank_database::SymbolFileFilter;

use crate::server::Server;
use crate::symbols::{CULPRITS, build_program, janks, mapping, obfuscated};

/// Returns the program, or `None` on machines for which npm has none.
#[expect(
    clippy::print_stderr,
    reason = "a skipped test prints that it is skipped"
)]
fn installed() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/sentry-cli");
    assert!(
        folder.join("installed").exists(),
        "sentry-cli is missing: run `make setup`, which installs it"
    );
    let program = folder.join("sentry-cli");
    if !program.exists() {
        eprintln!("skipped: npm has no sentry-cli for this machine");
        return None;
    }
    Some(program)
}

/// A server, a token for uploads, and the program.
struct Build {
    server: Server,
    token: String,
    program: PathBuf,
    folder: tempfile::TempDir,
}

/// The output of a run of the program.
struct Run {
    success: bool,
    text: String,
}

impl Build {
    async fn start(arguments: &[&str]) -> Option<Self> {
        let program = installed()?;
        let server = Server::with(arguments).await;
        server.ready().await;
        let token = server
            .token("editor --project default --only-symbols")
            .await;
        let folder = tempfile::tempdir().unwrap();
        Some(Self {
            server,
            token,
            program,
            folder,
        })
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    async fn run(&self, arguments: &[&str]) -> Run {
        self.run_as(&self.token, "default", arguments).await
    }

    async fn run_as(&self, token: &str, project: &str, arguments: &[&str]) -> Run {
        let output = tokio::process::Command::new(&self.program)
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("SENTRY_URL", &self.server.url)
            .env("SENTRY_AUTH_TOKEN", token)
            .env("SENTRY_ORG", "unjank")
            .env("SENTRY_PROJECT", project)
            .env("SENTRY_DISABLE_UPDATE_CHECK", "1")
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        Run {
            success: output.status.success(),
            text: String::from_utf8_lossy(&text).into_owned(),
        }
    }

    /// Runs the program, which must succeed. Returns its output.
    async fn upload(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments).await;
        assert!(run.success, "{}", run.text);
        run.text
    }

    /// The ids of the builds of all files that the server knows.
    async fn ids(&self) -> Vec<String> {
        let app = self.server.app();
        let files = app
            .control
            .symbol_files("default", SymbolFileFilter::default(), 100);
        let files = files.await.unwrap();
        let builds = files.iter().flat_map(|file| &file.builds);
        builds.map(|build| build.symbol_id.clone()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn upload_proguard_makes_stacks_readable_and_a_second_run_uploads_nothing() {
    let Some(build) = Build::start(&[]).await else {
        return;
    };
    build.write("mapping.txt", mapping());
    let text = build.upload(&["upload-proguard", "mapping.txt"]).await;
    assert!(text.contains("OK"), "{text}");
    build.server.send(&janks(&obfuscated())).await;
    build
        .server
        .answers(CULPRITS, "com.example.shop.Prices.sum")
        .await;
    let again = build.upload(&["upload-proguard", "mapping.txt"]).await;
    assert!(again.contains("Nothing to upload"), "{again}");
    // Gradle gives each build an id, also if the mapping did not change.
    let id = "c0ffee00-1234-4321-8765-0123456789ab";
    build
        .upload(&["upload-proguard", "--uuid", id, "mapping.txt"])
        .await;
    let mut stack = obfuscated();
    stack[1]["file"] = json!("SourceFile");
    stack[1]["build_id"] = json!(id);
    build.server.send(&janks(&stack)).await;
    let readable =
        "SELECT count() FROM stacks_symbolicated FINAL WHERE has(`frames.function`, 'sum')";
    build.server.answers(readable, "2").await;
    assert_eq!(build.ids().await.len(), 1, "one file");
    let (admin, path) = (
        build.server.token("admin").await,
        "/api/v1/projects/default/audit",
    );
    let audit = build.server.call(&admin, Method::GET, path, None).await;
    let named = audit.body["entries"].as_array().unwrap().iter();
    let named = named.filter(|entry| entry["action"] == "symbol_file.named");
    assert_eq!(named.count(), 1, "{}", audit.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn debug_files_upload_makes_native_stacks_readable_and_a_second_run_uploads_nothing() {
    let Some(build) = Build::start(&[]).await else {
        return;
    };
    let shop = build_program(build.folder.path());
    let stack =
        json!([{"module": "shop", "build_id": shop.build_id, "offset": shop.offset_of_stall}]);
    build.server.send(&janks(&stack)).await;
    let text = build.upload(&["debug-files", "upload", "shop"]).await;
    assert!(text.contains("Uploaded 1 missing debug"), "{text}");
    let titles = "SELECT title FROM stack_class_current";
    build.server.answers(titles, "shop::stall").await;
    let again = build.upload(&["debug-files", "upload", "shop"]).await;
    assert!(again.contains("Nothing to upload"), "{again}");
    // Waiting for the server, as some build scripts do, ends as well.
    build
        .upload(&["debug-files", "upload", "--wait", "shop"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn source_maps_with_debug_ids_are_uploaded() {
    let Some(build) = Build::start(&[]).await else {
        return;
    };
    let folder = build.folder.path().join("web");
    std::fs::create_dir(&folder).unwrap();
    build.write(
        "web/app.js",
        "function a(){b()}function b(){}a();\n//# sourceMappingURL=app.js.map\n",
    );
    let map = json!({
        "version": 3, "file": "app.js", "sources": ["src/cart.ts"], "names": ["pay", "sum"],
        "sourcesContent": ["function pay() { sum() }\nfunction sum() {}\npay();\n"],
        "mappings": "AAAA,SAASA,IAAQC,KACjB,SAASA,KACTD",
    });
    build.write("web/app.js.map", map.to_string());
    build.upload(&["sourcemaps", "inject", "web"]).await;
    let map: Value =
        serde_json::from_slice(&std::fs::read(folder.join("app.js.map")).unwrap()).unwrap();
    let id = map["debug_id"]
        .as_str()
        .or(map["debugId"].as_str())
        .unwrap()
        .replace('-', "");
    build.upload(&["sourcemaps", "upload", "web"]).await;
    assert_eq!(build.ids().await, [id]);
    let again = build.upload(&["sourcemaps", "upload", "web"]).await;
    assert!(again.contains("Nothing to upload"), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_a_remedy() {
    let Some(build) = Build::start(&[]).await else {
        return;
    };
    build.write("mapping.txt", mapping());
    let upload = ["upload-proguard", "mapping.txt"];
    let run = build.run_as("wrong", "default", &upload).await;
    assert!(!run.success);
    assert!(run.text.contains("unjank token create"), "{}", run.text);
    let run = build.run_as(&build.token, "elsewhere", &upload).await;
    assert!(!run.success);
    // The tool prints its own text.
    assert!(run.text.contains("Project not found"), "{}", run.text);
    let viewer = build.server.token("viewer --project default").await;
    let run = build.run_as(&viewer, "default", &upload).await;
    assert!(!run.success);
    assert!(run.text.contains("the role editor"), "{}", run.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_for_a_refusal_is_printed() {
    let Some(build) = Build::start(&["--symbols-max-bytes", "100"]).await else {
        return;
    };
    build.write("mapping.txt", mapping());
    let run = build.run(&["upload-proguard", "mapping.txt"]).await;
    assert!(!run.success);
    let expected = "raise --symbols-max-bytes";
    assert!(run.text.contains(expected), "{}", run.text);
    assert_eq!(build.ids().await, Vec::<String>::new());
    let viewer = build.server.token("viewer --project default").await;
    let path = "/api/v1/projects/default/audit";
    let audit = build.server.call(&viewer, Method::GET, path, None).await;
    assert!(!audit.body.to_string().contains("symbol_file.added"));
}
