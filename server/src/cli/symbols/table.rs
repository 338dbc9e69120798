//! Tables with aligned columns, and sizes with units.

use std::io::Write;

/// Writes rows with their columns aligned. The last column is not padded.
pub(super) fn write_table<const COLUMNS: usize>(
    out: &mut impl Write,
    head: [&str; COLUMNS],
    rows: &[[String; COLUMNS]],
) -> std::io::Result<()> {
    let head = head.map(ToOwned::to_owned);
    let all = || std::iter::once(&head).chain(rows);
    let width = |column: usize| {
        let widths = all().filter_map(|row| Some(row.get(column)?.chars().count()));
        widths.max().unwrap_or_default()
    };
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    for row in all() {
        let cells = row.iter().zip(widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        writeln!(out, "{}", line.join("  ").trim_end())?;
    }
    Ok(())
}

/// A size such as `2.3 MiB`.
pub(super) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut out = Vec::new();
        let rows = [["a".to_owned(), "b".to_owned()]];
        write_table(&mut out, ["name", "id"], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "name  id\na     b\n");
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(size(2_411_724), "2.30 MiB");
    }
}
