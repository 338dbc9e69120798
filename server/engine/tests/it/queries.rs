//! Reading: every way a statement, its parameters and its settings may come in.

use crate::support::{PASSWORD, encode, shared};

#[tokio::test]
async fn ping_needs_no_password() {
    let engine = shared();
    for path in ["/ping", "/replicas_status", "/"] {
        let answer = engine
            .client
            .get(format!("{}{path}", engine.url))
            .send()
            .await
            .unwrap();
        assert_eq!(
            (
                answer.status().as_u16(),
                answer.text().await.unwrap().as_str()
            ),
            (200, "Ok.\n"),
            "{path}"
        );
    }
    let answer = engine
        .client
        .get(format!("{}/nowhere", engine.url))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 404);
}

#[tokio::test]
async fn every_way_to_say_the_password_works() {
    let engine = shared();
    let url = |more: &[(&str, &str)]| {
        format!(
            "{}/?{}",
            engine.url,
            encode(&[&[("query", "SELECT 1")], more].concat())
        )
    };
    let ways = [
        engine
            .client
            .get(url(&[("user", "default"), ("password", PASSWORD)])),
        engine
            .client
            .get(url(&[]))
            .basic_auth("default", Some(PASSWORD)),
        engine
            .client
            .get(url(&[]))
            .header("X-ClickHouse-User", "default")
            .header("X-ClickHouse-Key", PASSWORD),
        engine.client.get(url(&[("password", PASSWORD)])),
    ];
    for way in ways {
        assert_eq!(way.send().await.unwrap().text().await.unwrap(), "1\n");
    }
}

#[tokio::test]
async fn a_statement_may_stand_in_the_url_in_the_body_or_in_both() {
    let engine = shared();
    assert_eq!(engine.ask(&[("query", "SELECT 1")], "").await, "1\n");
    assert_eq!(engine.ask(&[], "SELECT 2").await, "2\n");
    assert_eq!(engine.ask(&[("query", "SELECT")], "3").await, "3\n");
    assert_eq!(
        engine.ask(&[], "SELECT 4 -- a comment at the end").await,
        "4\n"
    );
    assert_eq!(engine.ask(&[], "SELECT 5;").await, "5\n");
    assert_eq!(
        engine.ask(&[], "SELECT 6 SETTINGS max_threads = 1").await,
        "6\n"
    );
    assert_eq!(engine.ask(&[], "(SELECT 7)").await, "7\n");
}

#[tokio::test]
async fn parameters_are_values_and_never_text() {
    let engine = shared();
    let evil = "'; DROP TABLE x; -- `\"";
    let asked = [
        ("param_a", evil),
        ("param_n", "-7"),
        ("param_l", "['x','y']"),
    ];
    let answer = engine
        .ask(&asked, "SELECT {a:String}, {n:Int64}, {l:Array(String)}[2]")
        .await;
    assert_eq!(answer, "\\'; DROP TABLE x; -- `\"\t-7\ty\n");
    assert_eq!(
        engine
            .ask(
                &[("param_t", "one")],
                "SELECT count() FROM system.{t:Identifier}"
            )
            .await,
        "1\n"
    );
    assert_eq!(engine.refusal(&[], "SELECT {a:String}").await.0, 456);
}

#[tokio::test]
async fn a_form_may_carry_the_statement_and_its_parameters() {
    let engine = shared();
    let form = "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\nSELECT {a:String} AS v FORMAT JSONEachRow\r\n--b\r\nContent-Disposition: form-data; name=\"param_a\"\r\n\r\nä ; b\r\n--b--\r\n";
    let answer = engine
        .post(&[])
        .header("content-type", "multipart/form-data; boundary=b")
        .body(form)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.text().await.unwrap(), "{\"v\":\"ä ; b\"}\n");
}

#[tokio::test]
async fn the_format_comes_from_the_statement_the_url_or_a_header() {
    let engine = shared();
    let answer = engine
        .post(&[("default_format", "CSV")])
        .body("SELECT 1, 'a'")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.headers()["x-clickhouse-format"], "CSV");
    assert!(
        answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/csv")
    );
    assert_eq!(answer.text().await.unwrap(), "1,\"a\"\n");
    let answer = engine
        .post(&[])
        .header("X-ClickHouse-Format", "JSONEachRow")
        .body("SELECT 1 AS a")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.text().await.unwrap(), "{\"a\":1}\n");
    let answer = engine
        .post(&[("default_format", "CSV")])
        .body("SELECT 1 AS a FORMAT JSONEachRow")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.headers()["x-clickhouse-format"], "JSONEachRow");
    assert_eq!(answer.text().await.unwrap(), "{\"a\":1}\n");
}

#[tokio::test]
async fn an_answer_of_many_blocks_is_one_document() {
    let engine = shared();
    let json = engine
        .ask(&[], "SELECT number FROM numbers(300000) FORMAT JSON")
        .await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["data"].as_array().unwrap().len(), 300_000);
    let csv = engine
        .ask(
            &[],
            "SELECT number FROM numbers(300000) FORMAT CSVWithNames",
        )
        .await;
    assert_eq!(csv.lines().count(), 300_001);
    let totals = engine.ask(&[], "SELECT number % 2 AS k, count() AS c FROM numbers(10) GROUP BY k WITH TOTALS FORMAT JSON").await;
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&totals).unwrap()["totals"]["c"],
        10
    );
}

#[tokio::test]
async fn statements_that_look_around_answer_too() {
    let engine = shared();
    assert!(engine.ask(&[], "SHOW DATABASES").await.contains("system\n"));
    assert!(
        engine
            .ask(&[], "DESCRIBE TABLE system.one FORMAT TSVWithNames")
            .await
            .starts_with("name\ttype")
    );
    assert_eq!(engine.ask(&[], "EXISTS TABLE system.one").await, "1\n");
    assert!(
        engine
            .ask(&[], "EXPLAIN SELECT 1")
            .await
            .contains("ReadFromSystemOne")
    );
}

#[tokio::test]
async fn the_database_may_have_any_name() {
    let engine = shared();
    let name = "a `strange` \\name";
    engine
        .ask(
            &[],
            "CREATE DATABASE IF NOT EXISTS `a \\`strange\\` \\\\name`",
        )
        .await;
    assert_eq!(
        engine
            .ask(
                &[("database", name)],
                "SELECT currentDatabase() FORMAT TSVRaw"
            )
            .await,
        format!("{name}\n")
    );
    engine
        .ask(
            &[("database", name)],
            "CREATE TABLE IF NOT EXISTS t (a Int8) ENGINE = Memory",
        )
        .await;
    engine
        .ask(
            &[("database", name), ("query", "INSERT INTO t FORMAT CSV")],
            "1\n",
        )
        .await;
    let answer = engine
        .post(&[])
        .header("X-ClickHouse-Database", name)
        .body("SELECT a FROM t")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.text().await.unwrap(), "1\n");
    assert_eq!(
        engine.refusal(&[("database", "nowhere")], "SELECT 1").await,
        (81, 404)
    );
}

#[tokio::test]
async fn settings_hold_for_their_request_only() {
    let engine = shared();
    let text = "SELECT getSetting('max_block_size'), timezone(), now() > '2020-01-01'";
    let asked = [
        ("max_block_size", "1234"),
        ("session_timezone", "Asia/Tokyo"),
    ];
    assert_eq!(engine.ask(&asked, text).await, "1234\tAsia/Tokyo\t1\n");
    let usual = engine.ask(&[], text).await;
    assert!(
        !usual.starts_with("1234") && !usual.contains("Tokyo"),
        "{usual}"
    );
    engine.ask(&[], "SET max_block_size = 4321").await;
    assert_eq!(engine.ask(&[], text).await, usual);
    engine.ask(&[], "USE system").await;
    assert_eq!(
        engine.ask(&[], "SELECT currentDatabase()").await,
        "default\n"
    );
}

#[tokio::test]
async fn a_setting_cannot_break_out_of_its_place() {
    let engine = shared();
    let value = "x', max_threads = 1, log_comment = 'y\\";
    let text = "SELECT endsWith(getSetting('log_comment'), {value:String})";
    let escaped = value.replace('\\', "\\\\");
    assert_eq!(
        engine
            .ask(&[("log_comment", value), ("param_value", &escaped)], text)
            .await,
        "1\n"
    );
    assert_eq!(
        engine.refusal(&[("a = 1, b", "1")], "SELECT 1").await,
        (115, 404)
    );
}

#[tokio::test]
async fn limits_of_a_reading_client_hold() {
    let engine = shared();
    let reader = [
        ("readonly", "2"),
        ("max_execution_time", "1"),
        ("max_result_rows", "10"),
        ("result_overflow_mode", "throw"),
    ];
    assert_eq!(engine.ask(&reader, "SELECT 1").await, "1\n");
    assert_eq!(
        engine
            .refusal(&reader, "SELECT number FROM numbers(11)")
            .await
            .0,
        396
    );
    assert_eq!(
        engine
            .refusal(
                &reader,
                "SELECT max(sipHash64(number)) FROM numbers(100000000000)"
            )
            .await,
        (159, 408)
    );
    assert_eq!(
        engine
            .refusal(&reader, "CREATE TABLE x (a Int8) ENGINE = Memory")
            .await
            .0,
        164
    );
    assert_eq!(
        engine.refusal(&reader, "INSERT INTO x VALUES (1)").await.0,
        164
    );
    let small = [("max_memory_usage", "10000000")];
    assert_eq!(
        engine
            .refusal(&small, "SELECT groupArray(number) FROM numbers(100000000)")
            .await
            .0,
        241
    );
}

#[tokio::test]
async fn a_get_changes_nothing() {
    let engine = shared();
    let answer = engine
        .client
        .get(format!(
            "{}/?{}",
            engine.url,
            encode(&[
                ("password", PASSWORD),
                ("query", "CREATE TABLE g (a Int8) ENGINE = Memory")
            ])
        ))
        .send()
        .await
        .unwrap();
    assert_eq!(crate::support::refused(answer).await.0, 164);
}

#[tokio::test]
async fn the_time_zone_is_utc_wherever_the_machine_is() {
    let engine = shared();
    let answer = engine
        .post(&[])
        .body("SELECT serverTimezone(), toUnixTimestamp(toDateTime('1970-01-02 00:00:00'))")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.headers()["x-clickhouse-timezone"], "UTC");
    assert_eq!(answer.text().await.unwrap(), "UTC\t86400\n");
}

#[tokio::test]
async fn headers_tell_what_was_done() {
    let engine = shared();
    let answer = engine
        .post(&[("query_id", "my-own-id")])
        .body("SELECT number FROM numbers(1000)")
        .send()
        .await
        .unwrap();
    let headers = answer.headers().clone();
    assert_eq!(headers["x-clickhouse-query-id"], "my-own-id");
    assert!(headers.contains_key("x-clickhouse-server-display-name"));
    let summary: serde_json::Value =
        serde_json::from_str(headers["x-clickhouse-summary"].to_str().unwrap()).unwrap();
    assert_eq!(
        (&summary["read_rows"], &summary["result_rows"]),
        (&"1000".into(), &"1000".into())
    );
    assert!(
        summary["elapsed_ns"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            > 0
    );
    let answer = engine.post(&[]).body("SELECT 1").send().await.unwrap();
    assert_eq!(answer.headers()["x-clickhouse-query-id"].len(), 36);
}
