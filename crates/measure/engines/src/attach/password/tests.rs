//! Passwords of variables and files, and files that others may read.

use std::fs::{Permissions, set_permissions, write};

use super::super::Access;
use super::*;

const PGPASS: &str = "\
# host:port:database:user:password
db.example:5432:shop:bea:for bea
db.example:*:shop:ada:p\\:a\\\\ss:not this
db.example:5433:*:ada:never
\\*:5432:shop:cara:a host of that name
/run/own:7:*:*:own socket
localhost:5432:*:*:local
*:5432:s\\:hop:*:escaped
too:few:fields
";

fn target(url: &str) -> Target {
    Target::parse(url, Access::ReadOnly).unwrap()
}

#[test]
fn the_first_line_that_matches_has_the_password() {
    for (url, password) in [
        ("postgres://bea@db.example/shop", Some("for bea")),
        ("postgres://ada@db.example/shop", Some("p:a\\ss")),
        ("postgres://ada@db.example:5433/shop", Some("p:a\\ss")),
        ("postgres://ada@db.example:5433/other", Some("never")),
        ("postgres://cara@db.example/shop", None),
        ("postgres://ada@db.example/s:hop", Some("escaped")),
        ("postgres://ada@localhost/x", Some("local")),
        ("postgres://ada@/x?host=/run/postgresql", Some("local")),
        ("postgres://ada@:7/x?host=/run/own", Some("own socket")),
        ("postgres://ada@/x?host=/run/own", None),
    ] {
        assert_eq!(of_pgpass(PGPASS, &target(url)).as_deref(), password, "{url}");
    }
}

#[test]
fn the_last_password_of_the_clients_groups_counts() {
    for (text, password) in [
        ("[client]\npassword=secret\n", Some("secret")),
        ("[client]\nuser=ada\npassword = \"se#cret\" # ours\n", Some("se#cret")),
        ("[client]\npassword=sec#ret", Some("sec")),
        ("[client]\npassword='it\\'s\\sso'", Some("it's so")),
        ("[client]\npassword=a=b\\q\\\\", Some("a=b\\q\\")),
        ("[client]\npassword=a\n[mysql]\npassword=b\n[server]\npassword=c", Some("b")),
        ("[mariadb]\r\n  password=b\r\n", Some("b")),
        ("[client]\n;password=a\n#password=a\npassword\npasswords=a", None),
        ("password=a\n[mysqldump]\npassword=b", None),
    ] {
        assert_eq!(of_my_cnf(text).as_deref(), password, "{text}");
    }
}

#[test]
fn the_nearest_source_counts() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str| home.path().join(name);
    for (name, text) in [
        (".pgpass", "*:*:*:*:home"),
        ("other", "*:*:*:*:other"),
        (".my.cnf", "[client]\npassword=my"),
    ] {
        write(file(name), text).unwrap();
        set_permissions(file(name), Permissions::from_mode(0o600)).unwrap();
    }
    let found = |url: &str, set: &[(&str, &str)]| {
        let mut target = target(url);
        let warning = target.find_password(&|name| match name {
            "HOME" => Some(home.path().into()),
            name => set.iter().find(|(set, _)| *set == name).map(|(_, value)| value.into()),
        });
        (target.address.password, warning)
    };
    let password = |url: &str, set: &[(&str, &str)]| found(url, set).0.unwrap();
    let (ours, product) = ((VARIABLE, "ours"), ("PGPASSWORD", "product"));
    let other = file("other");
    let passfile = ("PGPASSFILE", other.to_str().unwrap());
    assert_eq!(password("postgres://a:url@h/s", &[ours]), "url");
    assert_eq!(password("postgres://a@h/s", &[passfile, product, ours]), "ours");
    assert_eq!(password("postgres://a@h/s", &[passfile, product]), "product");
    assert_eq!(password("postgres://a@h/s", &[passfile]), "other");
    assert_eq!(password("postgres://a@h/s", &[]), "home");
    assert_eq!(password("mysql://a@h/s", &[product, ours]), "ours");
    assert_eq!(password("mysql://a@h/s", &[product]), "my");

    for (name, url, mode) in
        [(".pgpass", "postgres://a@h/s", 0o640), (".my.cnf", "mysql://a@h/s", 0o602)]
    {
        set_permissions(file(name), Permissions::from_mode(mode)).unwrap();
        let (password, warning) = found(url, &[]);
        let warning = warning.unwrap();
        assert_eq!(password, None, "{name}");
        assert!(warning.contains("is ignored") && !warning.contains('\n'), "{warning}");
        assert!(warning.contains(&format!("chmod 600 {}", file(name).display())), "{warning}");
    }
    assert_eq!(found("postgres://a@h/s", &[("PGPASSFILE", "/nowhere")]), (None, None));
    assert_eq!(found("postgres://a@h/s", &[("PGPASSFILE", "/dev/zero")]), (None, None));
}

#[test]
fn a_refusal_for_want_of_a_password_is_known() {
    let mut target = target("mysql://ada@h/s");
    let refusal = SessionError::Failed(
        "h:3306 refuses: Access denied for user 'ada'@'h' (using password: NO) (error 1045)".into(),
    );
    assert!(target.lacks_password(&refusal));
    assert!(!target.lacks_password(&SessionError::Failed("Unknown database".into())));
    target.address.password = Some("secret".to_owned());
    assert!(!target.lacks_password(&refusal));
}
