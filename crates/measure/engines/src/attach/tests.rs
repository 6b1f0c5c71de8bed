//! URLs, right and wrong.

use super::*;

fn parse(text: &str) -> Result<Target, String> {
    Target::parse(text, Access::Write).map_err(|error| error.to_string())
}

fn host(host: &str, port: u16) -> Place {
    Place::Host(host.to_owned(), port)
}

#[test]
fn urls_lead_to_servers() {
    for (text, place, user, password, database) in [
        ("postgres://ada@db.example/shop", host("db.example", 5432), "ada", None, "shop"),
        ("postgresql://ada:p%40ss@h:7/s", host("h", 7), "ada", Some("p@ss"), "s"),
        ("postgres://ada:a@b@[::1]:7/s", host("::1", 7), "ada", Some("a@b"), "s"),
        ("mysql://ada@h/s", host("h", 3306), "ada", None, "s"),
        ("mariadb://ada:@:3306/s", host("localhost", 3306), "ada", Some(""), "s"),
        (
            "postgres://ada@/s?host=/run/postgresql&sslmode=prefer",
            Place::Socket("/run/postgresql/.s.PGSQL.5432".into()),
            "ada",
            None,
            "s",
        ),
        (
            "postgres://ada@:7/s?host=/run",
            Place::Socket("/run/.s.PGSQL.7".into()),
            "ada",
            None,
            "s",
        ),
        (
            "mysql://ada@/s?socket=/run/mysqld/mysqld.sock",
            Place::Socket("/run/mysqld/mysqld.sock".into()),
            "ada",
            None,
            "s",
        ),
    ] {
        let target = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let address = &target.address;
        assert_eq!(address.place, place, "{text}");
        assert_eq!(address.user, user, "{text}");
        assert_eq!(address.password.as_deref(), password, "{text}");
        assert_eq!(address.database, database, "{text}");
        assert!(address.settings.is_empty(), "{text}");
        let mysql = text.starts_with('m');
        assert_eq!(target.software == Software::MariaDb, mysql, "{text}");
    }
}

#[test]
fn encryption_has_the_words_of_both_products() {
    for (query, mode, roots) in [
        ("", TlsMode::Prefer, None),
        ("?sslmode=disable", TlsMode::Disable, None),
        ("?ssl-mode=PREFERRED", TlsMode::Prefer, None),
        ("?sslmode=require", TlsMode::Require, None),
        ("?sslmode=require&sslrootcert=a.pem", TlsMode::VerifyCa, Some("a.pem")),
        ("?ssl-mode=VERIFY_CA&ssl-ca=/a%20b", TlsMode::VerifyCa, Some("/a b")),
        ("?ssl-mode=VERIFY_IDENTITY", TlsMode::VerifyFull, None),
        ("?sslmode=verify-full&sslrootcert=system", TlsMode::VerifyFull, None),
    ] {
        for scheme in ["postgres", "mysql"] {
            let target = parse(&format!("{scheme}://ada@h/s{query}")).unwrap();
            let roots = roots.map(PathBuf::from);
            assert_eq!(target.address.tls, Tls { mode, roots }, "{query}");
        }
    }
}

#[test]
fn the_default_user_is_the_one_of_this_process() {
    let target = parse("postgres:///s?host=/run").unwrap();
    assert_eq!(Some(target.address.user.as_str()), own_name().as_deref());
}

#[test]
fn sessions_are_read_only_by_default() {
    for text in ["postgres://a@h/s", "mysql://a@h/s"] {
        let target = Target::parse(text, Access::ReadOnly).unwrap();
        assert!(target.address.read_only && !target.superuser);
    }
}

#[test]
fn wrong_urls_are_refused_in_one_line_without_the_password() {
    for (text, says) in [
        ("localhost", "begins with postgres:// or mysql://"),
        ("oracle://ada:secret@h/s", "unknown scheme `oracle://`"),
        ("postgres://ada:secret@h:99999/s", "the port is not a number from 1 to 65535"),
        ("postgres://ada:secret@h:0/s", "the port is not a number from 1 to 65535"),
        ("postgres://ada:secret@h", "names no database"),
        ("postgres://ada:secret/1@h/s", "the port is not a number from 1 to 65535: write a `/`"),
        ("postgres://ada:secret@h/s?sslmode=always", "`sslmode=always` is unknown"),
        ("mysql://ada:secret@h/s?ssl-ca=f", "verifies nothing without a mode that does"),
        ("postgres://ada:secret@h/s?colour=red", "unknown parameter `colour`"),
        ("postgres://ada:secret%4@h/s", "two digits of base 16"),
        ("mysql://ada:secret@h/s?socket=run", "`socket=run` is not a path"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
        assert!(!error.contains("secret") && !error.contains('\n'), "{text}: {error}");
    }
}

#[test]
fn a_password_is_not_shown() {
    let target = parse("postgres://ada:secret@h/s").unwrap();
    assert!(!format!("{target:?}").contains("secret"));
}

#[test]
fn a_password_is_cut_out_of_its_url() {
    for (text, without, password) in [
        (
            "postgres://ada:secret@h:7/s?sslmode=require",
            "postgres://ada@h:7/s?sslmode=require",
            "secret",
        ),
        ("mysql://ada:a@b%2fc:@[::1]/s", "mysql://ada@[::1]/s", "a@b/c:"),
        ("postgres://:p@/s", "postgres://@/s", "p"),
        ("postgres://ada:@h", "postgres://ada@h", ""),
        ("postgres://ada:p@?host=/run", "postgres://ada@?host=/run", "p"),
    ] {
        let split = Target::split_password(text).unwrap();
        assert_eq!(split, (without.to_owned(), password.to_owned()), "{text}");
        assert_eq!(Target::split_password(without), None);
    }
    for text in
        ["postgres://ada@h:7/s", "postgres://h:7/a:b@c", "ada:secret@h", "postgres://a:%4@h"]
    {
        assert_eq!(Target::split_password(text), None, "{text}");
    }
}
