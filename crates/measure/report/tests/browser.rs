//! The page in a real browser: headless Chromium opens it from the disk, in both themes' markup,
//! says nothing on its console, fetches nothing, and draws something in every chart.
//!
//! The page has no script. The test adds one to a copy, which writes what it sees into the page,
//! and reads the page back as the browser has it then.

mod sample;

use std::fs;
use std::path::Path;
use std::process::Command;

use workahead_report::{render, render_comparison};
use workahead_study::comparison::Comparison;

const NAMES: [&str; 2] = ["chromium", "chromium-browser"];

/// For every chart: its extent, and how many marks have one; for every table, its rows.
const LOOK: &str = r##"<script>
addEventListener("error", event => console.error(event.message));
addEventListener("load", () => {
  const seen = [...document.querySelectorAll("svg.chart")].map(chart => {
    const shown = getComputedStyle(chart).display !== "none";
    const marks = [...chart.querySelectorAll("rect, polyline, circle, polygon")]
      .filter(mark => { const box = mark.getBBox(); return box.width > 0 || box.height > 0; });
    const box = shown ? chart.getBBox() : { width: 1, height: 1 };
    const full = box.width > 0 && box.height > 0 && (marks.length > 0 || !shown);
    return full ? "full" : "empty:" + chart.getAttribute("aria-label");
  });
  const links = [...document.querySelectorAll("a[download]")].map(link => link.href.length > 60);
  const wide = document.documentElement.scrollWidth > innerWidth ? "page-too-wide" : "fits";
  document.body.setAttribute("data-seen", [...seen, ...links, wide].join("|"));
});
</script></head>"##;

fn browser() -> &'static str {
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    NAMES.iter().find(|name| is_there(name)).unwrap_or_else(|| {
        panic!("Chromium is not installed: `apt-get install -y chromium`, or `cargo xtask setup`")
    })
}

/// A page as the browser saw it, part by part.
fn seen(name: &str, html: &str) -> Vec<String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    fs::create_dir_all(&dir).unwrap();
    let page = dir.join(format!("{name}.html"));
    fs::write(&page, html.replacen("</head>", LOOK, 1)).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser())
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--enable-logging=stderr", "--window-size=1200,2000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    let console = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = console.lines().filter(|line| line.contains(":CONSOLE")).collect();
    assert_eq!(said, [""; 0], "{name}: the console is silent");
    let dom = String::from_utf8_lossy(&output.stdout);
    let found = dom.split("data-seen=\"").nth(1).and_then(|rest| rest.split('"').next());
    let found = found.unwrap_or_else(|| panic!("{name}: the page was not read: {console}"));
    found.split('|').map(str::to_owned).collect()
}

fn check(name: &str, html: &str, charts_min: usize) {
    let seen = seen(name, html);
    let full = seen.iter().filter(|one| *one == "full").count();
    let wrong: Vec<&String> =
        seen.iter().filter(|one| one.starts_with("empty") || *one == "page-too-wide").collect();
    assert!(wrong.is_empty(), "{name}: {wrong:?}");
    assert!(full >= charts_min, "{name}: {full} charts, at least {charts_min} were drawn");
    assert!(!seen.contains(&"false".to_owned()), "{name}: a download is empty");
}

#[test]
fn every_page_opens_and_every_chart_is_drawn() {
    let served = sample::served::served();
    check("served", &render(&served, &[]).unwrap(), 8);
    check("native", &render(&sample::quick(), &[]).unwrap(), 12);
    check("curves", &render(&sample::sizes(), &[]).unwrap(), 1);
    check("collected", &render(&sample::collected::collected(), &[]).unwrap(), 8);
    check("uncollected", &render(&sample::collected::uncollected(), &[]).unwrap(), 5);
    let compared = Comparison::of(&served, &served);
    check("compare", &render_comparison(&served, &served, &compared, None::<&String>).unwrap(), 2);
}

/// The check itself: a chart without marks is found.
#[test]
fn an_empty_chart_is_found() {
    let html = render(&sample::hash_join(), &[]).unwrap();
    let empty = html.replacen(
        "<main>",
        "<main><svg class=\"chart\" aria-label=\"nothing\" width=\"9\" height=\"9\"></svg>",
        1,
    );
    let seen = seen("empty", &empty);
    assert!(seen.contains(&"empty:nothing".to_owned()), "{seen:?}");
}
