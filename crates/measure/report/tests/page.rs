//! The page through its public face, from results that no run had to make. Each sample is also
//! written below `target/tmp/report/`, to look at.

mod alone;
mod sample;

use std::fs;
use std::io::BufWriter;
use std::path::Path;

use workahead_machine::clock::thread_cpu_s;
use workahead_report::{markdown, render, write_csv};
use workahead_study::results::Results;

/// Renders, keeps a copy to look at, and checks what holds for every page.
fn page(name: &str, results: &Results) -> String {
    let published = sample::published::functions(results);
    let html = render(results, &published).unwrap();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(format!("{name}.html")), &html).unwrap();
    fs::write(dir.join(format!("{name}.md")), markdown(results, &published).unwrap()).unwrap();
    let table = fs::File::create(dir.join(format!("{name}.csv"))).unwrap();
    write_csv(results, &mut BufWriter::new(table)).unwrap();
    assert_eq!(alone::faults(&html), [""; 0], "{name}");
    html
}

#[test]
fn samples() {
    page("quick", &sample::quick());
    page("hash_join", &sample::hash_join());
    page("sizes", &sample::sizes());
}

/// Each row looked through all samples of every cell, once for every further column.
#[test]
fn a_page_of_very_many_cells_takes_seconds() {
    let queries: Vec<String> = (1..=8_000).map(|queries| queries.to_string()).collect();
    let text = format!(
        "title = 'Many'\nquestion = 'How many?'\nengine = 'duckdb'\n[axes]\nqueries = [{}]\n\
         kind = ['one']\n[method]\nrepetitions = 1\nbaseline = {{ queries = 1 }}\n",
        queries.join(", ")
    );
    let results = sample::results("many", &text, &|_| 1.0);
    let begun_s = thread_cpu_s();
    let html = render(&results, &[]).unwrap();
    let took_s = thread_cpu_s() - begun_s;
    assert!(html.matches("<td class=\"n ratio\">").count() >= 8_000);
    assert!(took_s < 30.0, "{took_s} s");
}

/// A question about siblings, on a machine that shows none: the first sentence says so, and why two
/// CPUs can be more than twice one.
#[test]
fn a_question_that_the_machine_cannot_answer() {
    let text = "title = 'SMT'\nquestion = 'How much faster with SMT?'\nengine = 'postgres'\n\
        workload = { rows = 100000 }\n\
        [[cases]]\nname = 'all CPUs'\n[[cases]]\nname = 'one CPU'\ncpus = 1\n\
        [method]\nrepetitions = 5\nbaseline = { case = 'one CPU' }\ntuples = 'queries'\n\
        [[paper]]\nrow = 'E0.4'\nfigure = 'Fig. 3a'\nwhere = { case = 'all CPUs' }\n\
        ratio = 1.16\nneeds = ['siblings']\nsays = 'faster'\n";
    let of = |speed: f64| {
        let reach = |cell: &workahead_study::cell::Cell| match cell.case() {
            "one CPU" => 1.0,
            _ => speed,
        };
        markdown(&sample::results("smt", text, &reach), &[]).unwrap()
    };
    let fast = of(2.4);
    let at = |words: &str| fast.find(words).unwrap_or_else(|| panic!("{words}: {fast}"));
    let first = at("This machine can’t answer the question: no two CPUs");
    assert!(first < at("Found instead: All CPUs is"), "{fast}");
    at("more than 2 CPUs against 1 can give by themselves");
    at("**cannot be said here**, no figure");
    assert!(!of(1.9).contains("by themselves"));
}

/// The parts of a database's page that a page of techniques lacks.
#[test]
fn a_served_database() {
    let served = sample::served::served();
    let html = page("served", &served);
    for words in [
        "queries/s",
        "All CPUs is",
        "times as fast as one CPU",
        " decides: at ",
        "not here: SMT can’t be switched",
        "client latency, ms",
        "plan changed",
        "elapsed 1 → 2",
        "demo-served-samples.csv",
        "client share",
        "CPU time for the same work",
        "server.shared_buffers",
        "<strong>super-scaling</strong>",
        "Most was saved in Seq Scan on t1: 52.0 ms to 9.00 ms.",
        "52.0 ms, 4,321 rows",
        "<h2 id=\"plans\">",
        "<h2 id=\"samples\">",
        "Outliers: ",
    ] {
        let words = words.replace('’', "&#x27;");
        assert!(html.contains(&words), "{words} is not on the page");
    }
    for words in ["Mtuples", "not run yet", "0 rows", "No technique"] {
        assert!(!html.contains(words), "{words} is on the page");
    }
    let compared = workahead_study::comparison::Comparison::of(&served, &sample::served::served());
    let html =
        workahead_report::render_comparison(&served, &served, &compared, None::<&String>).unwrap();
    assert_eq!(alone::faults(&html), [""; 0]);
    assert!(html.contains("No difference between the two results"), "{html}");
}

/// Instructions, and nothing that a tool's time says.
#[test]
fn what_a_model_counted() {
    let results = sample::instrumented::instrumented();
    assert_eq!(results.findings().iter().filter_map(|finding| finding.ratio).count(), 0);
    let html = page("instrumented", &results);
    let markdown = markdown(&results, &[]).unwrap();
    for words in
        ["takes most: 63,600,000", "instructions per query", "data references", "31,800,000"]
    {
        assert!(html.contains(words), "{words} is not on the page");
        assert!(markdown.contains(words), "{words} is not in the text");
    }
    for words in [
        "duckdb::Probe&lt;long&gt;",
        "Which functions the instructions are of",
        "Callgrind: 1,000 instructions",
        "tier D",
        "caches pentium-pro-1m",
        "Keeton et al. (1998), table 3",
        "Figures are per query.",
        "counted by a model of caches, not by this machine",
    ] {
        assert!(html.contains(words), "{words} is not on the page");
    }
    for words in [
        "queries/s",
        "queries/min",
        "Mtuples",
        "elapsed",
        "fastest",
        ">speed<",
        "time is shown",
        "no difference",
    ] {
        assert!(!html.contains(words), "{words} is on the page");
        assert!(!markdown.contains(words), "{words} is in the text");
    }
    let verdicts = results.verdicts();
    assert_eq!(verdicts[0].cells[0].1.map(|ratio| ratio.ratio), Some(2.0));
    assert_eq!(results.value(0, "wall_s"), None, "valgrind's time");
    let mut csv = Vec::new();
    write_csv(&results, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let heads: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let first: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    for name in ["wall_s", "cpu_s", "mtuples_per_s"] {
        let at = heads.iter().position(|head| *head == name).unwrap();
        assert_eq!(first[at], "", "{name}");
    }
}

/// Counts and profiles of a machine that has counters.
#[test]
fn what_was_collected() {
    let html = page("collected", &sample::collected::collected());
    for words in [
        "<strong>Constructed, not counted:</strong> rates chosen for a test of this page",
        "As if counted: a control group on a machine of this test.",
        "CPI by its parts",
        "Slots of cycles, top-down",
        "class=\"mark\"",
        "Resource stalls: a lower bound: RESOURCE_STALLS.ANY is gone",
        "<tr class=\"group\"><th colspan=\"12\" scope=\"rowgroup\">cpi</th></tr>",
        "<span class=\"noisy\">~</span>",
        "3 slots more were thrown away: the counters were shared with another program",
        "Not counted: btb_mpki, btb_miss_ratio: BACLEARS.ANY: this machine does not count it.",
        "Evidence tier A",
        "No evidence: constructed, not counted.",
        "HeapTupleSatisfiesMVCC",
        "<span class=\"tier\">kernel</span>",
        "code without a name",
        "by cycles of the core while it works",
        "query uss, siblings on against query uss, siblings out",
        "LWLockAcquire",
        "No profile of query uss, one CPU; query unj, one CPU: no function profile: sampling is forbidden.",
        "Counts on this page are constructed, no machine was counted",
        "comparetup_heap&lt;long &amp; wide&gt;",
        "The flame graph is of the first sample of the cell, ",
    ] {
        assert!(html.contains(words), "{words} is not on the page");
    }
    for words in ["No hardware counters", "NaN", "by the CPU’s timer"] {
        assert!(!html.contains(words), "{words} is on the page");
    }
}

/// The logical CPUs of each core by themselves, under both denominators, and Keeton's figure 8.
#[test]
fn sibling_and_overlap_figures() {
    let html = page("siblings", &sample::siblings::siblings());
    for words in [
        "<h3 id=\"siblings\">By logical CPU</h3>",
        "Stalls over a logical CPU’s own instructions",
        "Stalls over the instructions of all logical CPUs",
        "cycles per instruction of its own</text>",
        "cycles per instruction of all logical CPUs together</text>",
        "siblings out, O<title>",
        "siblings on, H0<title>",
        "siblings on, H1<title>",
        "title=\"CPUs 1, 3\">H1</th>",
        "share of the cell’s instructions",
        "<h3 id=\"overlap\">If nothing overlapped</h3>",
        "<th class=\"n\">measured over it</th><th class=\"n first\">retiring</th>",
        "Charge per event",
        " GHz, each level beyond the one before it: last level ",
        "Penalties with a busy sibling: not measured",
        "quoted: Keeton et al. 1998, Table 5",
    ] {
        let words = words.replace('\'', "&#x27;");
        assert!(html.contains(&words), "{words} is not on the page");
    }
    assert!(!html.contains("NaN"));
    let markdown = markdown(&sample::siblings::siblings(), &[]).unwrap();
    assert!(markdown.contains("### By logical CPU") && markdown.contains("siblings on, H1 |"));
    assert!(markdown.contains("### If nothing overlapped"));
    let html = page("siblings_without_slots", &sample::siblings::without_slots());
    for words in [
        "Slots, top-down: none beside it, slots are shared by both siblings and counted for the core",
        "Last-level misses: not in the sum, and so there is none: l3_mpki is missing",
        "without last level<title>",
    ] {
        assert!(html.contains(words), "{words} is not on the page");
    }
}

/// Without a penalty, a sibling or a counter no bar is drawn, and a line says why.
#[test]
fn missing_siblings_have_a_reason() {
    let html = page("siblings_without_limits", &sample::siblings::without_limits());
    for words in [
        "Stall components: not drawn, the penalty of a miss on this machine was not measured: \
         `workahead limits` measures it.",
        "CPI if nothing overlapped: not drawn, the penalty of a miss on this machine was not measured",
        "title=\"CPUs 1, 3\">H1</th>",
    ] {
        assert!(html.contains(words), "{words} is not on the page");
    }
    for words in ["Stalls over", "id=\"overlap\""] {
        assert!(!html.contains(words), "{words} is on the page");
    }
    let html = page("siblings_with_wrong_limits", &sample::siblings::with_wrong_limits());
    let words = "Stall components: not drawn, the limits beside the result are of another version, \
                 or implausible: `workahead limits` measures it again.";
    assert!(html.contains(words), "{words} is not on the page");
    // They are shown as they are, under the names of their file.
    assert!(!html.contains("pause instruction"));
    let lacks = sample::collected::LACKS;
    let html = page("uncollected", &sample::collected::uncollected());
    let line = format!("By logical CPU, H0 beside H1: nothing to show, {lacks}.");
    assert!(html.contains(&line), "{line}");
    assert!(!html.contains("id=\"siblings\""));
}

/// Bars that lie along an axis of numbers have their marks joined.
#[test]
fn what_was_collected_along_an_axis() {
    let html = page("along", &sample::collected::along());
    for words in ["class=\"mark-line\"", "clients 16<title>", "clients 4 against clients 1"] {
        assert!(html.contains(words), "{words} is not on the page");
    }
    assert!(!page("collected_along", &sample::collected::collected()).contains("\"mark-line\""));
}

/// A machine without counters shows what its kernel counts, and says what is not there and why.
#[test]
fn what_could_not_be_collected() {
    let results = sample::collected::uncollected();
    let html = page("uncollected", &results);
    let lacks = sample::collected::LACKS;
    for words in [
        "context switches, per second on a CPU",
        "page faults that waited for a disk",
        &format!("No column for user; kernel: {lacks}"),
        "No column for query uss, siblings on; query unj, siblings on: not here: the processor has no siblings",
        "<td class=\"n\" title=\"3 slots\">164</td>",
        &format!("CPI by its parts: not drawn, {lacks}."),
        "time and the kernel's counts are shown, cache misses",
        &format!("Not everything the study asks for was collected, {lacks}. Evidence tier C"),
        "by the CPU’s timer, as no cycles are counted here",
        "Counted: the threads of a server on AMD EPYC 7713.",
        "attributed to the function that re-enables them",
    ] {
        let words = words.replace('\'', "&#x27;");
        assert!(html.contains(&words), "{words} is not on the page");
    }
    for words in ["class=\"twins\"", "Constructed", "cpi_user"] {
        assert!(!html.contains(words), "{words} is on the page");
    }
    let markdown = markdown(&results, &[]).unwrap();
    assert!(markdown.contains("## Where the cycles go") && markdown.contains("164 |"));
    assert!(markdown.contains("## Which functions the time goes to"));
}

/// Of very many cells the page has the counts of some.
#[test]
fn counts_of_very_many_cells_do_not_fill_the_page() {
    let html = render(&sample::collected::counted(503), &[]).unwrap();
    let left_out = "No column for 3 cells more: counts of at most 500 are on a page.";
    assert!(html.contains(left_out), "it is not on the page");
}

/// Of many cells the page has the flame graphs of a few, and the command for the others.
#[test]
fn flame_graphs_of_many_cells_do_not_fill_the_page() {
    let results = sample::collected::many();
    let html = page("many", &results);
    let graphs: Vec<&str> = html.split("aria-label=\"Flame").skip(1).collect();
    assert_eq!(graphs.len(), 4, "of {} cells", results.run_plan.cells.len());
    let bytes: usize = graphs.iter().map(|graph| graph.find("</svg>").unwrap()).sum();
    assert!(bytes <= 1 << 20, "{bytes}");
    assert!(html.len() <= 3 << 20, "{}", html.len());
    let (_, left_out) = html.split_once("20 more flame graphs are not on this page").unwrap();
    let (left_out, _) = left_out.split_once("</p>").unwrap();
    assert!(left_out.contains("`workahead study report DIR --profiles`"), "{left_out}");
    for (clients, is_left) in [(1, false), (23, false), (2, false), (3, false), (4, true)] {
        let name = format!(" clients {clients};");
        assert_eq!(left_out.contains(&name), is_left, "{clients}: {left_out}");
    }
    let dir = tempfile::tempdir().unwrap();
    let paths = workahead_report::write_profiles(dir.path(), &results).unwrap();
    assert_eq!(paths.len(), 24);
    let alone = fs::read_to_string(dir.path().join("profile-4.html")).unwrap();
    assert_eq!(alone::faults(&alone), [""; 0]);
    assert!(alone.contains("aria-label=\"Flame") && alone.contains("· clients 4: "));
}

/// Shares of misses beside shares of time, and what the paper says of the same.
#[test]
fn functions_by_misses() {
    let html = page("by_misses", &sample::collected::by_misses());
    for words in [
        "query uss, siblings on, by MEM_LOAD_RETIRED.L3_MISS",
        "of these events, itself</th><th class=\"n\">with callees</th>\
         <th class=\"n\">of cycles, itself</th>",
        "by MEM_LOAD_RETIRED.L3_MISS: ",
        "query uss, siblings on, by DTLB_LOAD_MISSES.WALK_COMPLETED against query uss, siblings out",
        "<h4>By MEM_LOAD_RETIRED.L3_MISS</h4>",
        "<h3 id=\"published\">The functions of a paper</h3>",
        "<th>in an old version</th>",
        "printed of MEM_LOAD_RETIRED.L3_MISS</td>",
        "all printed of DTLB_LOAD_MISSES.WALK_COMPLETED</td>",
    ] {
        assert!(html.contains(words), "{words} is not on the page");
    }
    let (_, by_l3) = html.split_once("<h4>By MEM_LOAD_RETIRED.L3_MISS</h4>").unwrap();
    let (by_l3, by_dtlb) = by_l3.split_once("<h4>By DTLB_LOAD").unwrap();
    assert!(!by_l3.contains("printed of DTLB") && !by_dtlb.contains("printed of MEM_LOAD"));
    let results = sample::collected::by_misses();
    let markdown = markdown(&results, &sample::published::functions(&results)).unwrap();
    assert!(markdown.contains("of these events, itself | with callees | of cycles"));
    assert!(markdown.contains("### The functions of a paper, by MEM\\_LOAD"), "{markdown}");

    let html = page("not_by_misses", &sample::collected::not_by_misses());
    let lacks = sample::collected::LACKS;
    let line = format!("No function profile by l3_misses, dtlb_misses: {lacks}.</p>");
    assert_eq!(html.matches(&line).count(), 1, "{line}");
    assert!(!html.contains("of cycles, itself</th>"));
}

/// A study that asks for no collection does not mention it.
#[test]
fn nothing_was_to_be_collected() {
    let html = page("quick", &sample::quick());
    for words in ["Where the cycles go", "Which functions", "collected"] {
        assert!(!html.contains(words), "{words} is on the page");
    }
}

/// A profile on a page of its own.
#[test]
fn a_profile_alone() {
    let results = sample::collected::collected();
    let profile = results.stacks(0).unwrap();
    let html = workahead_report::render_profile(profile).unwrap();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("profile.html"), &html).unwrap();
    assert_eq!(alone::faults(&html), [""; 0]);
    for words in ["Where cycles go, by function", "1,435 samples in 15.0 s", "aria-label=\"Flame"] {
        assert!(html.contains(words), "{words} is not on the page");
    }
    assert!(!html.contains("The flame graph is of the first sample"));
}

/// Texts by a study's author are shown as text, whatever they look like.
#[test]
fn words_from_outside_bring_nothing_in() {
    const MARKED: &str = "</h1><img src=//example.org/x.png> <script>url(http://a)</script>";
    let text = sample::QUICK.replacen("title = \"", &format!("title = \"{MARKED}"), 1);
    assert_ne!(text, sample::QUICK);
    let html = page("words", &sample::results("words", &text, &|_| 10.0));
    assert!(html.contains("&lt;script&gt;url("), "the title is shown as it was written");
}

/// A setting may be a text of a megabyte, and stands at each bar and cell.
#[test]
fn long_texts_do_not_fill_the_page() {
    let long = "x y ".repeat(15_000);
    let queries: Vec<String> = (1..=20).map(|queries| queries.to_string()).collect();
    let text = format!(
        "title = 'Long'\nquestion = 'Which?'\nengine = 'duckdb'\n\
         [axes]\nnote = ['{long}1', '{long}2']\nqueries = [{}]\n\
         [method]\nrepetitions = 2\nbaseline = {{ queries = 1 }}\ncharts = [\n\
         {{ kind = 'bars', by = 'note', series = 'queries' }},\n\
         {{ kind = 'curves', x = 'queries', series = 'note' }},\n]\n",
        queries.join(", ")
    );
    let html = page("long", &sample::results("long", &text, &|_| 10.0));
    assert!(html.len() < 1 << 20, "{}", html.len());
    assert_eq!(html.matches(&long).count(), 2, "in the study's text");
    // A line of each value and its name, on a laptop and on a phone: cut names are the same.
    assert_eq!(html.matches("<g class=\"series ").count(), 8);
    assert_eq!(html.matches("is too long for this page").count(), 2);
    assert_eq!(html.matches(", more than 1.5 MB</li>").count(), 2);
}

/// The reader of tags refuses what it is there to refuse: it is not that it sees nothing.
#[test]
fn fetched_resources_and_open_tags_are_found() {
    let html = page("found", &sample::sizes());
    let body = |put: &str| html.replacen("<h1>", &format!("{put}<h1>"), 1);
    let sheet = |put: &str| html.replacen("</style>", &format!("{put}</style>"), 1);
    for put in [
        "<script></script>",
        "<img src=\"x.png\">",
        "<link rel=\"icon\" href=\"data:,\">",
        "<svg><use href=\"https://example.org/a.svg\"/></svg>",
        "<svg><use xlink:href=\"//example.org/a.svg\"/></svg>",
        "<p onclick=\"go()\"></p>",
        "<p style=\"background: url(//example.org/a)\"></p>",
        "<a href=\"javascript:go()\">go</a>",
        "<p title=unquoted></p>",
        "<b><i></b></i>",
        "<p>",
        "</p>",
        "<p",
    ] {
        assert_ne!(alone::faults(&body(put)), [""; 0], "{put}");
    }
    for put in ["@import 'a.css';", "a { background: URL( 'HTTPS://example.org/a' ) }"] {
        assert_ne!(alone::faults(&sheet(put)), [""; 0], "{put}");
    }
    // A citation waits for a click, an anchor stays here, text is text, data is in the page.
    for put in [
        "<a href=\"https://doi.org/10.1145/1\">Zhou et al.</a>",
        "<a href=\"#cells\">below</a>",
        "<p>https://example.org, src=, @import</p>",
    ] {
        assert_eq!(alone::faults(&body(put)), [""; 0], "{put}");
    }
    assert_eq!(alone::faults(&sheet("a { background: url(\"data:image/png;base64,\") }")), [""; 0]);
}
