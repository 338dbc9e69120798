//! Mistakes on the command line: the wrong folder, the wrong user, wrong settings, and names that do not exist.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use reqwest::Method;

use crate::engine::UNJANK;
use crate::people::EMAIL;
use crate::processes::unjank;
use crate::server::Server;

/// Runs a command that fails on a data folder. Returns its error.
fn error_of(folder: &Path, arguments: &[&str]) -> String {
    let output = unjank(folder, arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Commands that need the control database or the dead letters of a server.
const OF_A_SERVER: [&[&str]; 6] = [
    &["token", "create", "--name", "ops", "--role", "admin"],
    &["token", "list"],
    &["user", "add", "--email", EMAIL, "--name", "Ann"],
    &["user", "list"],
    &["erase", "--project", "default", "--user-id", "1"],
    &["dead-letter", "list"],
];

#[test]
fn commands_refuse_a_folder_without_a_server_and_make_nothing() {
    let empty = tempfile::tempdir().unwrap();
    let missing = empty.path().join("missing");
    for arguments in OF_A_SERVER {
        for folder in [empty.path(), &missing] {
            let error = error_of(folder, arguments);
            let place = format!("{}", folder.display());
            assert!(error.contains(&place), "{arguments:?}: {error}");
            assert!(error.contains("with --config"), "{arguments:?}: {error}");
        }
    }
    let elsewhere = format!("sqlite:{}", missing.join("control.sqlite").display());
    let arguments = ["token", "list", "--database-url", &elsewhere];
    let error = error_of(empty.path(), &arguments);
    assert!(error.contains("there is no control database"), "{error}");
    let made = std::fs::read_dir(empty.path()).unwrap().count();
    assert_eq!(made, 0);
}

#[test]
fn another_user_is_asked_to_be_the_user_of_the_server() {
    const NOBODY: u32 = 65_534;
    let room = tempfile::tempdir().unwrap();
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(room.path(), 0o755);
    // The program of the build may be in a folder that others cannot enter.
    let program = room.path().join("unjank");
    if std::fs::hard_link(UNJANK, &program).is_err() {
        std::fs::copy(UNJANK, &program).unwrap();
    }
    let folder = room.path().join("data");
    std::fs::create_dir(&folder).unwrap();
    // root can read every folder, so it becomes another user. Other users take the permission from themselves.
    let is_root = rustix::process::geteuid().is_root();
    set_mode(&folder, if is_root { 0o700 } else { 0o000 });
    let of_the_engine: [&[&str]; 4] = [
        &["sql", "SELECT 1"],
        &["backup", "/nonexistent/backup"],
        &["rollups", "check"],
        &["healthcheck"],
    ];
    for arguments in OF_A_SERVER.into_iter().chain(of_the_engine) {
        let mut command = Command::new(&program);
        command.args(arguments).arg("--data-dir").arg(&folder);
        command.current_dir("/");
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        let advice = "run the command as the user of the server";
        assert!(error.contains(advice), "{arguments:?}: {error}");
    }
    set_mode(&folder, 0o700);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_what_does_not_exist_and_a_disabled_user_is_enabled() {
    let server = Server::away(&[]).await;
    let add = ["user", "add", "--email", EMAIL, "--name", "Ann", "--admin"];
    server.command(&add).await;
    let token = server.token("admin").await;
    let users = server.command(&["user", "list"]).await;
    let id = users
        .lines()
        .nth(1)
        .and_then(|line| line.split('\t').next());
    let path = format!("/api/v1/users/{}?tokens=take_over", id.unwrap());
    // A token of an admin may disable the last admin.
    let disabled = server.call(&token, Method::DELETE, &path, None).await;
    assert_eq!(disabled.status, 204, "{}", disabled.body);
    let flags = server.flags();
    let nobody = "nobody@example.com";
    let unknown = uuid::Uuid::nil().to_string();
    for (arguments, expected) in [
        (&add[..], "`unjank user invite --email ann@example.com`"),
        (&["user", "invite", "--email", EMAIL], "is disabled: enable"),
        (&["user", "invite", "--email", nobody], "`unjank user list`"),
        (&["user", "unlink", "--email", nobody], "`unjank user list`"),
        (&["user", "unlink", "--email", EMAIL], "is not linked"),
        (&["token", "revoke", &unknown], "`unjank token list`"),
        (
            &["erase", "--project", "nosuch", "--user-id", "1"],
            "there is no project `nosuch`",
        ),
    ] {
        let failed = Command::new(UNJANK).args(arguments).args(&flags).output();
        let failed = failed.unwrap();
        let error = String::from_utf8(failed.stderr).unwrap();
        assert!(!failed.status.success(), "{arguments:?}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    server.command(&["user", "enable", "--email", EMAIL]).await;
    let invitation = server.command(&["user", "invite", "--email", EMAIL]).await;
    assert!(invitation.starts_with("uji_"), "{invitation}");
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("unjank.toml");
    let error = |config_text: &str| {
        std::fs::write(&config, config_text).unwrap();
        let output = unjank(
            folder.path(),
            &["--config", config.to_str().unwrap(), "serve"],
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(
        error("listen = \"nowhere\"").contains("invalid value 'nowhere' for '--listen <ADDRESS>'")
    );
    assert!(error("lisen = \"x\"").contains("there is no setting `lisen`"));
    assert!(error("listen = [1]").contains("`listen` is of type array"));
    assert!(error("log-max-bytes = 5").contains("invalid value '5' for '--log-max-bytes <BYTES>'"));
    assert!(error("min-free-bytes = \"1GiB\"").contains("the number of bytes without a unit"));
    let origin = format!("the value is in {}", config.display());
    assert!(error("log-max-bytes = \"8 GiB\"").contains(&origin));
    let sql = unjank(folder.path(), &["sql", "SELECT 1"]);
    assert!(String::from_utf8_lossy(&sql.stderr).contains("start `unjank serve`"));
    std::fs::write(folder.path().join("control.sqlite"), [b'x'; 4096]).unwrap();
    let tokens = unjank(folder.path(), &["token", "list"]);
    let error = String::from_utf8_lossy(&tokens.stderr);
    let expected = "control.sqlite: the control database is damaged (file is not a database): stop";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_wrong_value_of_the_environment_is_named_by_its_variable() {
    let folder = tempfile::tempdir().unwrap();
    let error = |flags: &[&str]| {
        let mut command = Command::new(UNJANK);
        command.args(["serve", "--data-dir"]).arg(folder.path());
        let output = command
            .args(flags)
            .env("UNJANK_LOG_MAX_BYTES", "8G")
            .output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    let origin = "the value is in the variable UNJANK_LOG_MAX_BYTES";
    let text = error(&[]);
    assert!(text.contains("invalid value '8G'"), "{text}");
    assert!(text.contains(origin), "{text}");
    // The flag wins.
    let text = error(&["--log-max-bytes", "9G"]);
    assert!(text.contains("invalid value '9G'"), "{text}");
    assert!(!text.contains("the value is in"), "{text}");
}
