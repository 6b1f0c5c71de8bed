//! Servers that send without end, or nothing, or damaged keys: given up, and left when the user
//! says so.

mod hostile;
mod process;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hostile::{RunEnd, run};
use process::{Place, interrupt, text, tiny_study};

/// The behaviour of a server once it has received a request.
#[derive(Clone, Copy)]
enum Answer {
    Rows,
    Notices,
    Silence,
    /// To texts with this in them only.
    SilenceTo(&'static str),
    /// In the run.
    SilentRun,
    /// In the run, the length of a row, and nothing of it.
    LongRow,
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[tag][..], &length, body].concat()
}

/// A login without a password; whether the session is for texts of the command's own.
fn log_in(stream: &mut TcpStream) -> io::Result<bool> {
    let mut length = [0; 4];
    let own = loop {
        stream.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        stream.read_exact(&mut body)?;
        // A request of encryption is declined; anything else is the login.
        if body[..2] != [4, 210] {
            break text(&body).contains("pg_catalog");
        }
        stream.write_all(b"N")?;
    };
    let welcome = [
        message(b'R', &[0; 4]),
        message(b'S', b"server_version\x0015.1\0"),
        message(b'S', b"standard_conforming_strings\0on\0"),
        message(b'K', &[0; 8]),
        message(b'Z', b"I"),
    ];
    stream.write_all(&welcome.concat())?;
    Ok(own)
}

/// A login, then a column of texts.
fn serve(mut stream: TcpStream, answer: Answer) -> io::Result<()> {
    let own = log_in(&mut stream)?;
    let column = [&[0, 1][..], b"a\0", &[0; 6], &25_u32.to_be_bytes(), &[255; 6], &[0; 2]].concat();
    let value = [&[0, 1][..], &100_000_u32.to_be_bytes(), &[b'x'; 100_000]].concat();
    let (row, notice) = (message(b'D', &value), message(b'N', b"SNOTICE\0C00000\0Mhello\0\0"));
    let (mut values, mut runs) = (0, false);
    let (mut tag, mut length) = ([0], [0; 4]);
    loop {
        stream.read_exact(&mut tag)?;
        stream.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        stream.read_exact(&mut body)?;
        let said = match (tag[0], answer) {
            (b'P' | b'Q', Answer::SilenceTo(what)) if text(&body).contains(what) => silence(),
            (b'P', _) => {
                values = body.iter().filter(|byte| **byte == b'$').count();
                message(b'1', b"")
            }
            (b'D', _) => {
                let types = 25_u32.to_be_bytes().repeat(values);
                let values = [&(values as u16).to_be_bytes()[..], &types].concat();
                [message(b't', &values), message(b'T', &column)].concat()
            }
            (b'B', _) => message(b'2', b""),
            (b'E', Answer::Rows) => loop {
                stream.write_all(&row)?;
            },
            (b'E', Answer::Notices) => loop {
                stream.write_all(&notice)?;
            },
            (b'E', Answer::Silence) => silence(),
            (b'E', Answer::SilentRun) if runs => silence(),
            (b'E', Answer::LongRow) if runs => {
                stream.write_all(b"D\x3f\xff\xff\xff")?;
                // It leaves in good order, with all read that there is: the Sync too.
                return stream.read_exact(&mut [0; 5]);
            }
            (b'E', _) => message(b'C', b"SELECT 0\0"),
            (b'S', _) => message(b'Z', b"I"),
            (b'Q', _) => {
                runs |= !own && body.starts_with(b"BEGIN");
                [message(b'C', b"SET\0"), message(b'Z', b"I")].concat()
            }
            _ => return Ok(()),
        };
        stream.write_all(&said)?;
    }
}

fn silence() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The length of a message in place of the login, and nothing of it.
fn announce(mut stream: TcpStream) -> io::Result<()> {
    // The request of encryption has eight bytes.
    stream.read_exact(&mut [0; 8])?;
    stream.write_all(b"NR\x3f\xff\xff\xff")?;
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

/// A packet of MySQL's.
fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let [low, middle, high, _] = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&[low, middle, high, number][..], payload].concat()
}

fn receive_packet(stream: &mut TcpStream) -> io::Result<()> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let [low, middle, high, _] = header;
    stream.read_exact(&mut vec![0; u32::from_le_bytes([low, middle, high, 0]) as usize])
}

/// Packets, each continued by the next, in place of a greeting.
fn flood(mut stream: TcpStream) -> io::Result<()> {
    let full = packet(0, &vec![b'x'; 0xff_ffff]);
    loop {
        stream.write_all(&full)?;
    }
}

/// The login of a MySQL of some version without TLS, by a key.
fn show(mut stream: TcpStream, version: &str, key: &[u8]) -> io::Result<()> {
    // Protocols of 4.1 and later, logins by plugin, no TLS.
    let able = 0x0108_8201_u32.to_le_bytes();
    let greeting = [
        &b"\x0a"[..],
        version.as_bytes(),
        b"\0\x07\0\0\x0012345678\0",
        &able[..2],
        b"\x2d\x02\0",
        &able[2..],
        b"\x15\0\0\0\0\0\0\0\0\0\x00901234567890\0caching_sha2_password\0",
    ];
    stream.write_all(&packet(0, &greeting.concat()))?;
    receive_packet(&mut stream)?;
    stream.write_all(&packet(2, &[1, 4]))?;
    receive_packet(&mut stream)?;
    stream.write_all(&packet(4, &[&[1][..], key].concat()))?;
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

/// A study on an engine, and the URL of a server that does this with its clients.
fn place(
    engine: &str,
    axes: &str,
    serve: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static,
) -> (Place, String) {
    let place = Place::new();
    fs::write(place.path("tiny.toml"), tiny_study(engine, axes, 1)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    (place, format!("{engine}://ada@127.0.0.1:{port}/shop"))
}

/// A study, and the URL of a server that answers so.
fn answering(answer: Answer) -> (Place, String) {
    place("postgres", "clients = [1]", move |stream| serve(stream, answer))
}

/// Runs what must fail with this in one line, and in little memory.
fn fails(place: &Place, url: &str, says: &str) -> RunEnd {
    let ended = run(place, &["study", "run", "tiny.toml", "--no-limits", "--attach", url]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    assert!(ended.said.contains(says), "{}", ended.said);
    assert_eq!(ended.said.lines().count(), 1, "{}", ended.said);
    assert!(ended.resident_kb < 200 << 10, "{} KiB", ended.resident_kb);
    ended
}

#[test]
fn rows_without_end_take_no_memory() {
    let (place, url) = answering(Answer::Rows);
    fails(&place, &url, "its answer has more than 16 MiB");
}

#[test]
fn a_message_takes_no_memory_before_it_comes() {
    let (place, url) = place("postgres", "clients = [1]", announce);
    fails(&place, &url, "its answer has a message of more than 16 MiB");
}

#[test]
fn nor_does_one_of_the_run() {
    let (place, url) = answering(Answer::LongRow);
    let ended = run(&place, &["study", "run", "tiny.toml", "--no-limits", "--attach", &url]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    assert!(ended.said.contains("it closed the connection"), "{}", ended.said);
    assert!(ended.resident_kb < 200 << 10, "{} KiB", ended.resident_kb);
}

#[test]
fn packets_without_end_are_refused() {
    let (place, url) = place("mariadb", "clients = [1]", flood);
    fails(&place, &url, "its answer has a message of more than 16 MiB");
}

#[test]
fn a_key_that_is_none_is_one_line() {
    let long = "A".repeat(200_000).into_bytes();
    let short = b"hello".to_vec();
    let none = "is not one of RSA in PEM";
    for (version, key, says) in [
        ("8.4.0", short.clone(), none),
        ("8.4.0", long, "has more than 4 KiB"),
        // Decimal digits, and none of ASCII.
        ("\u{663}.\u{663}.\u{663}", short, none),
    ] {
        let (place, url) =
            place("mariadb", "clients = [1]", move |stream| show(stream, version, key.as_slice()));
        let ended = fails(&place, &url, says);
        assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    }
}

#[test]
fn a_server_that_keeps_talking_is_given_up() {
    let (place, url) = answering(Answer::Notices);
    fails(&place, &url, "no answer for 20 s");
}

/// A minute is enough for one setting, and not for those of all cells.
#[test]
fn a_server_that_leaves_a_setting_unanswered_is_given_up() {
    let axes = "clients = [1, 2, 3, 4]";
    let silent = Answer::SilenceTo("set_config");
    let (place, url) = place("postgres", axes, move |stream| serve(stream, silent));
    let arguments = ["study", "run", "tiny.toml", "--no-limits", "--out", "out", "--attach", &url];
    let ended = run(&place, &arguments);
    assert_eq!(ended.status.code(), Some(0), "{}", ended.said);
    let record = fs::read_to_string(place.path("out/run.json")).unwrap();
    let says = "the server does not say whether `max_parallel_workers_per_gather` can be set";
    assert_eq!(record.matches(says).count(), 4, "{record}");
    assert!(record.contains("no answer for 20 s"), "{record}");
}

#[test]
fn a_server_that_falls_silent_is_left_wherever_it_does() {
    let study = ["study", "run", "tiny.toml", "--no-limits", "--attach"];
    let writing = ["study", "run", "tiny.toml", "--no-limits", "--allow-writes", "--attach"];
    let capacity = ["capacity", "--for", "60s", "--attach"];
    for (command, silent) in [
        (&study[..], "is_superuser"),
        (&study, "has_table_privilege"),
        (&study, "SHOW server_version"),
        (&study, "set_config"),
        (&study, "SHOW search_path"),
        (&writing, "FROM workahead_data"),
        (&capacity, "is_superuser"),
        (&capacity, "pg_stat_database"),
    ] {
        let (place, url) = answering(Answer::SilenceTo(silent));
        let child = place.start(&[command, &[&url]].concat());
        std::thread::sleep(Duration::from_millis(1500));
        let start = Instant::now();
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        let took = start.elapsed();
        assert!(took < Duration::from_secs(2), "{command:?} at {silent}: it went on for {took:?}");
        let said = text(&output.stderr);
        assert!(said.contains("interrupted"), "{command:?} at {silent}: {said}");
    }
}

#[test]
fn a_silent_server_is_left_at_the_first_interruption() {
    for answer in [Answer::Silence, Answer::SilentRun] {
        let (place, url) = answering(answer);
        let child = place.start(&["study", "run", "tiny.toml", "--no-limits", "--attach", &url]);
        std::thread::sleep(Duration::from_secs(2));
        let start = Instant::now();
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        assert!(start.elapsed() < Duration::from_secs(2), "it went on for {:?}", start.elapsed());
        let said = text(&output.stderr);
        assert!(said.lines().last().is_some_and(|line| line.contains("interrupted")), "{said}");
    }
}
