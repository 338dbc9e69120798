//! Reading statements: where their parts begin and end, and what they are.

use super::*;

fn insert(text: &str) -> (String, Option<String>, &str) {
    match head(text.as_bytes(), true) {
        Head::Insert(found) => (
            found.statement.trim().to_owned(),
            found.format,
            text.get(found.data..).unwrap(),
        ),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn the_data_of_an_insert_begins_after_the_line_of_its_format() {
    assert_eq!(
        insert("INSERT INTO t FORMAT CSV\n1\n"),
        ("INSERT INTO t".to_owned(), Some("CSV".to_owned()), "1\n")
    );
    assert_eq!(insert("insert into t(a, b) format CSV 1,2").2, "1,2");
    assert_eq!(insert("INSERT INTO t FORMAT Native\r\n\n\n").2, "\n\n");
    assert_eq!(
        insert("/* VALUES */ INSERT INTO `a b`.\"FORMAT\" (`x;y`) VALUES (1),(2)").2,
        " (1),(2)"
    );
}

#[test]
fn settings_before_or_after_the_format_belong_to_the_statement() {
    assert_eq!(
        insert("INSERT INTO t FORMAT CSV SETTINGS a = 1, b = 'x,y'\n1").0,
        "INSERT INTO t  SETTINGS a = 1, b = 'x,y'"
    );
    assert_eq!(
        insert("INSERT INTO t SETTINGS a=1 VALUES (1)").0,
        "INSERT INTO t SETTINGS a=1"
    );
}

#[test]
fn a_table_may_be_named_like_a_keyword() {
    assert_eq!(
        insert("INSERT INTO format FORMAT TSV\n1").1.as_deref(),
        Some("TSV")
    );
    assert_eq!(
        insert("INSERT INTO TABLE db.values VALUES (1)").0,
        "INSERT INTO TABLE db.values"
    );
    assert_eq!(
        insert("INSERT INTO FUNCTION file('FORMAT', 'CSV') FORMAT TSV\n1")
            .1
            .as_deref(),
        Some("TSV")
    );
}

#[test]
fn an_unfinished_head_asks_for_more() {
    for text in [
        "",
        "  ",
        "INSE",
        "INSERT",
        "INSERT INTO t FORM",
        "INSERT INTO t FORMAT Nat",
        "INSERT INTO t FORMAT Native",
        "INSERT INTO t FORMAT Native \r",
        "/* x",
    ] {
        assert_eq!(head(text.as_bytes(), false), Head::Unclear, "{text}");
    }
    assert_eq!(head(b"SELECT ", false), Head::Statement);
}

#[test]
fn an_insert_from_a_select_carries_no_data() {
    for text in [
        "INSERT INTO t SELECT 1",
        "INSERT INTO t (a) WITH 1 AS x SELECT x",
        "INSERT INTO t FROM INFILE 'x' FORMAT CSV",
    ] {
        assert_eq!(head(text.as_bytes(), true), Head::Statement, "{text}");
    }
    assert_eq!(head(b"INSERT INTO t (a)", true), Head::BareInsert);
    assert!(goes_on(b" VALUES (1)") && !goes_on(b"(1), (2)") && !goes_on(b"a,b\n"));
}

fn format(text: &str) -> Option<String> {
    outline(text.as_bytes()).format
}

#[test]
fn the_format_of_a_select_is_its_last_clause_only() {
    assert_eq!(format("SELECT 1 FORMAT JSON").as_deref(), Some("JSON"));
    assert_eq!(
        format("SELECT 1 format JSON settings max_threads=1;").as_deref(),
        Some("JSON")
    );
    assert_eq!(format("SELECT format FROM t"), None);
    assert_eq!(format("SELECT 'FORMAT CSV'"), None);
    assert_eq!(format("SELECT * FROM (SELECT 1 FORMAT CSV)"), None);
    assert_eq!(outline(b"SELECT 1 FORMAT JSON -- x").output, 9);
    assert_eq!(outline(b"SELECT 1 ; -- x").end, 8);
    assert_eq!(outline(b"SELECT f([{a:Int8}])").output, 20);
}

#[test]
fn a_second_statement_is_seen_and_a_semicolon_in_a_string_is_none() {
    assert!(outline(b"SELECT 1; DROP TABLE t").several);
    assert!(!outline(b"SELECT ';' ;; -- end").several);
    assert!(!outline(b"SELECT $x$ ; $x$, `;`").several);
}

#[test]
fn statements_are_told_apart() {
    assert_eq!(outline(b"-- hi\n(SELECT 1)").kind, StatementKind::Select);
    assert_eq!(
        outline(b"WITH 1 AS x INSERT INTO t SELECT x").kind,
        StatementKind::Change
    );
    assert_eq!(outline(b"DESCRIBE TABLE t").kind, StatementKind::Look);
    assert_eq!(outline(b"  ; ").kind, StatementKind::Empty);
    assert_eq!(outline(b"exit;").kind, StatementKind::Nonsense);
    assert_eq!(outline(b"\\q x").kind, StatementKind::Nonsense);
    assert!(outline(b"SELECT 1 INTO OUTFILE 'x'").names_client_file);
}

#[test]
fn quotes_cannot_be_broken_out_of() {
    assert_eq!(quote_text("a'b\\"), "'a\\'b\\\\'");
    assert_eq!(quote_name("a`b\\"), "`a\\`b\\\\`");
}
