//! DBmbench's queries on real servers: right answers in both forms, and the paper's plans on
//! request.

use std::time::Duration;

use workahead_engines::attach::Target;
use workahead_engines::fill::fill;
use workahead_engines::load::{Load, Until};
use workahead_engines::server::Explain;
use workahead_study::engine::Stop;
use workahead_workloads::client::{Moment, Outcome, Workload};
use workahead_workloads::dbmbench::{Bounds, Dbmbench, Form, Options, Plan, Query, pinning};
use workahead_workloads::session::Dialect;

use crate::shared;

fn small(query: Query, plan: Plan, form: Form) -> Options {
    let sizes = Options { t1_rows: 20_000, t2_rows: 3_000, ..Options::of_paper(query) };
    Options { plan, form, bounds: Bounds::Random, ..sizes }
}

fn check(workload: &Dbmbench, target: &Target, when: Moment) {
    let mut connection = target.connect().unwrap();
    for condition in workload.check(connection.session(), when).unwrap() {
        let options = workload.options();
        assert_eq!(condition.outcome, Outcome::Holds, "{options:?} {condition:?}");
    }
}

/// Checks the operators of the paper's plan and their order.
fn assert_plan(workload: &Dbmbench, target: &Target, dialect: Dialect) {
    let options = workload.options();
    let explained = workload.explained(dialect).unwrap().swap_remove(0);
    let mut connection = target.connect().unwrap();
    for setting in &explained.settings {
        connection.session().run(setting).unwrap();
    }
    let plan = connection.plan(&explained.text, Explain::Planned).unwrap().text;
    let operators = pinning(dialect, options.query, Plan::Paper).unwrap().operators;
    let mut rest = plan.as_str();
    for operator in operators {
        // As a whole word of the JSON, so that an index scan does not match an index-only scan.
        let word = match *operator {
            "filesort" => "\"filesort\"".to_owned(),
            operator => format!("\"{operator}\""),
        };
        let Some(at) = rest.find(&word) else { panic!("{options:?} lacks {word}: {plan}") };
        rest = &rest[at + word.len()..];
    }
}

fn answers(target: &Target, dialect: Dialect) {
    let first = Dbmbench::new(small(Query::Utpcc, Plan::Paper, Form::IntoResult)).unwrap();
    fill(target, &first, &Stop::new()).unwrap_or_else(|error| panic!("{error}"));
    for query in Query::ALL {
        for (plan, form) in [
            (Plan::Paper, Form::IntoResult),
            (Plan::Native, Form::IntoResult),
            (Plan::Paper, Form::ToClient),
            (Plan::Native, Form::ToClient),
        ] {
            let workload = Dbmbench::new(small(query, plan, form)).unwrap();
            let mut connection = target.connect().unwrap();
            for statement in workload.arrange(dialect) {
                connection.session().run(&statement).unwrap();
            }
            connection.session().run("delete from result").unwrap();
            check(&workload, target, Moment::Loaded);
            let load = Load {
                workload: &workload,
                connector: target,
                clients: 2,
                rate: None,
                warmup: Duration::ZERO,
                until: Until::Count(12),
                cpus: None,
            };
            let driven = load.drive(&Stop::new(), &mut |_| {}).unwrap();
            assert_eq!(driven.done(), 12);
            check(&workload, target, Moment::Drained);
            if plan == Plan::Paper {
                assert_plan(&workload, target, dialect);
            }
        }
    }
}

#[test]
fn queries_answer_rightly_by_the_papers_plan_and_their_own_on_postgres() {
    let server = shared::postgres();
    server.create_database("dbmbench").unwrap();
    answers(&server.target("dbmbench"), Dialect::Postgres);
}

#[test]
fn queries_answer_rightly_by_the_papers_plan_and_their_own_on_mariadb() {
    let server = shared::mariadb();
    server.create_database("dbmbench").unwrap();
    answers(&server.target("dbmbench"), Dialect::MariaDb);
}
