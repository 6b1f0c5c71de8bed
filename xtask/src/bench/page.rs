//! A recorded bench as a page: the machine, the rows as a table, further tables with a title each,
//! the notes.

use std::fmt::Write;

use serde_json::Value;

/// The Markdown of a record.
pub(crate) fn of(record: &Value) -> String {
    let result = &record["result"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut page = format!("# {}\n\n", text(&result["title"]));
    let model = cpu_model(&record["machine"]).unwrap_or("unknown CPU");
    let (date, commit) = (text(&record["date"]), text(&record["commit"]));
    let _ = writeln!(page, "{model}. {date}, commit {commit}. The whole machine is in the JSON.\n");
    table(&mut page, slice(&result["rows"]));
    for further in slice(&result["tables"]) {
        let _ = write!(page, "\n## {}\n\n", text(&further["title"]));
        table(&mut page, slice(&further["rows"]));
    }
    if !slice(&result["tables"]).is_empty() {
        page.push_str("\n## Notes\n");
    }
    for note in slice(&result["notes"]).iter().filter_map(Value::as_str) {
        let _ = write!(page, "\n{note}\n");
    }
    page
}

/// The elements of an array; none of anything else.
fn slice(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The CPU's model in what `workahead machine --json` prints.
pub(crate) fn cpu_model(machine: &Value) -> Option<&str> {
    machine["processor"].as_str()
}

/// Columns in the order in which the rows first name them.
fn table(page: &mut String, rows: &[Value]) {
    let mut columns: Vec<&str> = Vec::new();
    for row in rows.iter().filter_map(Value::as_object) {
        for key in row.keys() {
            if !columns.contains(&key.as_str()) {
                columns.push(key);
            }
        }
    }
    let _ = writeln!(page, "| {} |", columns.join(" | "));
    let rules = columns.iter().map(|column| {
        let number = rows.iter().any(|row| row[*column].is_number());
        if number { "---:" } else { "---" }
    });
    let _ = writeln!(page, "|{}|", rules.collect::<Vec<_>>().join("|"));
    for row in rows {
        let cells: Vec<String> = columns.iter().map(|column| cell(&row[*column])).collect();
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace('|', "\\|"),
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let digits = if number.abs() >= 100.0 { 0 } else { 2 };
            format!("{number:.digits$}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_becomes_a_page() {
        let record = json!({
            "bench": "tables", "date": "2026-01-02", "commit": "abc",
            "machine": { "processor": "A CPU" },
            "result": {
                "title": "Tables",
                "rows": [
                    { "case": "plain|one", "mtuples_per_s": 12.345 },
                    { "case": "amac", "mtuples_per_s": 345.6, "bytes": 64 },
                ],
                "notes": ["Noisy."],
            },
        });
        let page = of(&record);
        for part in [
            "# Tables\n",
            "A CPU. 2026-01-02, commit abc",
            "| case | mtuples_per_s | bytes |\n|---|---:|---:|\n",
            "| plain\\|one | 12.35 |  |\n",
            "| amac | 346 | 64 |\n",
            "\nNoisy.\n",
        ] {
            assert!(page.contains(part), "{part:?} not in\n{page}");
        }
        assert!(!page.contains("##"), "{page}");
    }

    #[test]
    fn further_tables_have_titles_and_stand_before_the_notes() {
        let table = json!({ "title": "More", "rows": [{ "case": "a", "ms": 1 }] });
        let page = of(&json!({ "result": {
            "title": "Tables", "rows": [{ "case": "b" }], "tables": [table], "notes": ["Noisy."],
        } }));
        let end = "\n## More\n\n| case | ms |\n|---|---:|\n| a | 1 |\n\n## Notes\n\nNoisy.\n";
        assert!(page.ends_with(end), "{page}");
    }
}
