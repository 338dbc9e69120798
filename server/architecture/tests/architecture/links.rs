//! Every link of a page leads to a file, and to a heading if it names one.

use std::fs;
use std::path::Path;

use crate::rules::sources;

/// Returns the lines outside of blocks of code.
fn lines(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            found.push(line);
        }
    }
    found
}

/// Returns the targets of the links of a page. What looks like a link in inline code is none.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in lines(text) {
        let prose: String = line.split('`').step_by(2).collect();
        let targets = prose.split("](").skip(1);
        let targets = targets.filter_map(|rest| rest.split(')').next());
        found.extend(targets.map(str::to_owned));
    }
    found
}

/// Returns the part of an address that leads to a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let is_kept = |letter: &char| letter.is_alphanumeric() || "-_ ".contains(*letter);
    text.chars()
        .filter(is_kept)
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

fn leads_to(file: &Path, heading: &str) -> bool {
    if heading.is_empty() {
        return file.exists();
    }
    let text = fs::read_to_string(file).unwrap_or_default();
    let headings = lines(&text)
        .into_iter()
        .filter(|line| line.starts_with('#'));
    headings.map(anchor).any(|anchor| anchor == heading)
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    for (page, text) in sources("", &["md"]) {
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((link.as_str(), ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let is_elsewhere = link.contains(':');
            if !is_elsewhere && !leads_to(&target, heading) {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_source_file_that_the_architecture_names_exists() {
    let pages = sources("", &["md"]).into_iter();
    let mut pages = pages.filter(|(page, _)| page.ends_with("ARCHITECTURE.md"));
    let (page, text) = pages.next().unwrap();
    let root = page.parent().unwrap();
    let places = [root.to_owned(), root.join("server/src")];
    let mut missing = Vec::new();
    for line in lines(&text) {
        let names = line.split('`').skip(1).step_by(2);
        let files = names.filter(|name| name.ends_with(".rs"));
        missing.extend(files.filter(|file| !places.iter().any(|place| place.join(file).exists())));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
