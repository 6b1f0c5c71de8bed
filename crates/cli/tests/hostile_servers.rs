//! Servers that send without end, or nothing: given up, and left when the user says so.

mod hostile;
mod process;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hostile::run;
use process::{Place, interrupt, text, tiny_study};

/// What a server does once it has been asked for something.
#[derive(Clone, Copy)]
enum Answer {
    Rows,
    Notices,
    Silence,
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[tag][..], &length, body].concat()
}

/// A login without a password, then a column of texts.
fn serve(mut stream: TcpStream, answer: Answer) -> io::Result<()> {
    let mut length = [0; 4];
    loop {
        stream.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        stream.read_exact(&mut body)?;
        // A request of encryption is declined; anything else is the login.
        if body[..2] != [4, 210] {
            break;
        }
        stream.write_all(b"N")?;
    }
    let welcome = [
        message(b'R', &[0; 4]),
        message(b'S', b"server_version\x0015.1\0"),
        message(b'S', b"standard_conforming_strings\0on\0"),
        message(b'K', &[0; 8]),
        message(b'Z', b"I"),
    ];
    stream.write_all(&welcome.concat())?;
    let column = [&[0, 1][..], b"a\0", &[0; 6], &25_u32.to_be_bytes(), &[255; 6], &[0; 2]].concat();
    let text = [&[0, 1][..], &100_000_u32.to_be_bytes(), &[b'x'; 100_000]].concat();
    let (row, notice) = (message(b'D', &text), message(b'N', b"SNOTICE\0C00000\0Mhello\0\0"));
    let mut tag = [0];
    loop {
        stream.read_exact(&mut tag)?;
        stream.read_exact(&mut length)?;
        io::copy(&mut (&stream).take(u64::from(u32::from_be_bytes(length)) - 4), &mut io::sink())?;
        let said = match tag[0] {
            b'P' => message(b'1', b""),
            b'D' => [message(b't', &[0; 2]), message(b'T', &column)].concat(),
            b'B' => message(b'2', b""),
            b'E' => loop {
                match answer {
                    Answer::Rows => stream.write_all(&row)?,
                    Answer::Notices => stream.write_all(&notice)?,
                    Answer::Silence => std::thread::sleep(Duration::from_secs(1)),
                }
            },
            b'S' => message(b'Z', b"I"),
            b'Q' => [message(b'C', b"SET\0"), message(b'Z', b"I")].concat(),
            _ => return Ok(()),
        };
        stream.write_all(&said)?;
    }
}

/// A study, and the URL of a server that answers so.
fn place(answer: Answer) -> (Place, String) {
    let place = Place::new();
    fs::write(place.path("tiny.toml"), tiny_study("postgres", "clients = [1]", 1)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, answer));
        }
    });
    (place, format!("postgres://ada@127.0.0.1:{port}/shop"))
}

#[test]
fn rows_without_end_take_no_memory() {
    let (place, url) = place(Answer::Rows);
    let ended = run(&place, &["study", "run", "tiny.toml", "--no-limits", "--attach", &url]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    assert!(ended.said.contains("its answer has more than 16 MiB"), "{}", ended.said);
    assert!(ended.resident_kb < 200 << 10, "{} KiB", ended.resident_kb);
}

#[test]
fn a_server_that_keeps_talking_is_given_up() {
    let (place, url) = place(Answer::Notices);
    let ended = run(&place, &["study", "run", "tiny.toml", "--no-limits", "--attach", &url]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    assert!(ended.said.contains("no answer for 20 s"), "{}", ended.said);
}

#[test]
fn a_silent_server_is_left_at_the_first_interruption() {
    let (place, url) = place(Answer::Silence);
    let child = place.start(&["study", "run", "tiny.toml", "--no-limits", "--attach", &url]);
    std::thread::sleep(Duration::from_secs(2));
    let start = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "it went on for {:?}", start.elapsed());
    let said = text(&output.stderr);
    assert!(said.contains("interrupted") && said.lines().count() == 1, "{said}");
}
