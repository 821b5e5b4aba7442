use std::path::PathBuf;

use super::*;

fn uci(game: &PgnGame) -> String {
    let start = game.start_fen.as_deref().map_or_else(Chess::start, |f| Chess::from_fen(f).unwrap());
    let mut line = Line::new(start);
    game.moves.iter().for_each(|m| line.play(*m));
    line.move_texts().join(" ")
}

fn games(bytes: &[u8]) -> Vec<PgnGame> {
    parse_pgn(&text::decode(bytes).0)
}

fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

const TWO: &str =
    "[Event \"a\"]\n[White \"Jose\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n[Event \"b\"]\n\n1. d4 *\n";

#[test]
fn p1_byte_order_mark_latin_1_and_crlf() {
    let plain = games(TWO.as_bytes());
    assert_eq!(plain.iter().map(uci).collect::<Vec<_>>(), ["e2e4 e7e5 g1f3", "d2d4"]);
    assert_eq!(games(&[b"\xEF\xBB\xBF", TWO.as_bytes()].concat()), plain);
    assert_eq!(games(TWO.replace('\n', "\r\n").as_bytes()), plain);
    let latin: Vec<u8> = TWO.bytes().map(|b| if b == b'o' { 0xE9 } else { b }).collect();
    let (latin_text, odd) = text::decode(&latin);
    let read = parse_pgn(&latin_text);
    assert_eq!(read[0].tag("White"), Some("J\u{e9}se"));
    assert_eq!(read.iter().map(uci).collect::<Vec<_>>(), plain.iter().map(uci).collect::<Vec<_>>());
    assert_eq!(odd, Some((2, 1)), "and it is said where");
    let (_dir, path) = file("x.pgn", &latin);
    assert!(read_book(&path, None, OnBad::Skip).unwrap().warnings[0].contains("x.pgn:2"));
    for (mark, bytes) in [(b"\xFF\xFE", u16::to_le_bytes as fn(u16) -> [u8; 2]), (b"\xFE\xFF", u16::to_be_bytes)] {
        let wide: Vec<u8> = mark.iter().copied().chain(TWO.encode_utf16().flat_map(bytes)).collect();
        let (_dir, path) = file("wide.pgn", &wide);
        assert_eq!(read_pgn(&path).unwrap().0, plain);
    }
}

#[test]
fn p2_blank_lines_anywhere() {
    let a = "[Event \"a\"]\n[Site \"x\"]\n1. e4 e5 1-0\n[Event \"b\"]\n[Site \"y\"]\n1. d4 d5 0-1\n";
    assert_eq!(games(a.as_bytes()).iter().map(uci).collect::<Vec<_>>(), ["e2e4 e7e5", "d2d4 d7d5"]);
    let b = "[Event \"a\"]\n[Site \"x\"]\n\n\n1. e4 e5 1-0\n";
    assert_eq!(games(b.as_bytes()).iter().map(uci).collect::<Vec<_>>(), ["e2e4 e7e5"]);
    let c = "[Event \"a\"]\n\n[Site \"x\"]\n\n1. e4\n\ne5 1-0\n";
    assert_eq!(games(c.as_bytes()).iter().map(uci).collect::<Vec<_>>(), ["e2e4 e7e5"]);
    let without_tags = games(b"1. e4 e5 1-0\n\n1. d4 d5 1/2-1/2");
    assert_eq!(without_tags.iter().map(uci).collect::<Vec<_>>(), ["e2e4 e7e5", "d2d4 d7d5"]);
    let empty = games(b"[Event \"a\"]\n[Result \"*\"]\n\n*\n[Event \"b\"]\n\n1. e4 *\n");
    assert_eq!(empty.iter().map(|g| g.moves.len()).collect::<Vec<_>>(), [0, 1], "a game without moves is still one");
}

#[test]
fn p4_variations_glyphs_and_odd_spellings() {
    let main = "1. e4 $1 e5 (1... c5 2. Nf3 (2. Nc3 $6) d6) 2. Nf3 Nc6 3. Bc4 Bc5$5 (3... Nf6 4. d3 $13) 4. O-O 1-0";
    let game = &games(main.as_bytes())[0];
    assert_eq!(uci(game), "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1");
    assert_eq!(game.result, Some(games::GameResult::WhiteWins));
    assert_eq!(uci(&games(main.replace("O-O", "0-0").as_bytes())[0]), uci(game));
    let comment = &games(b"1. f3 e5 2. g4 Qh4# {0-1}")[0];
    assert_eq!((uci(comment).as_str(), comment.result), ("f2f3 e7e5 g2g4 d8h4", None), "a comment is no result");
    let promotion = &games(b"[FEN \"8/P6k/8/8/8/8/8/K7 w - - 0 1\"]\n1. a8Q *")[0];
    assert_eq!(uci(promotion), "a7a8q");
    let passant = "[FEN \"4k3/8/8/4pP2/8/8/8/4K3 w - e6 0 1\"]\n1. fxe6 e.p. *";
    assert_eq!(uci(&games(passant.as_bytes())[0]), "f5e6");
    assert_eq!(uci(&games(passant.replace(" e.p.", "ep").as_bytes())[0]), "f5e6");
    let odd = "1.e4! e5?! ; a line [x]\n% a line for programs (\n2.Nf3!? {[%clk 1:00]\n[Event \"no\"]} Nc6 +/- 3. Bb5 N a6 = 1/2-1/2";
    let game = &games(odd.as_bytes())[0];
    assert_eq!((uci(game).as_str(), game.result), ("e2e4 e7e5 g1f3 b8c6 f1b5 a7a6", Some(games::GameResult::Draw)));
    let escaped = &games(b"[Event \"a \\\"b\\\" \\\\ c\"]  [Site \"s]\"]\n1. e4 *")[0];
    assert_eq!((escaped.tag("Event"), escaped.tag("Site")), (Some("a \"b\" \\ c"), Some("s]")));
}

#[test]
fn faults_are_located_and_do_not_spread() {
    let text = "[Event \"a\"]\n1. e4 e5\n2. Ke3 *\n[Event \"b\"]\n1. d4 (1. c4\n\n[Event \"c\"]\n1. c4 *\n[Event \"d\"]\n1. e4 {no end\n";
    let read = games(text.as_bytes());
    assert_eq!(
        read.iter().map(|g| g.fault.as_ref().map(|f| f.0)).collect::<Vec<_>>(),
        [Some(3), Some(7), None, Some(10)]
    );
    assert!(read[0].fault.as_ref().unwrap().1.contains("move 2: `Ke3`"));
    let (_dir, path) = file("x.pgn", text.as_bytes());
    let error = read_book(&path, None, OnBad::Stop).unwrap_err().to_string();
    assert!(error.contains("x.pgn:3") && error.contains("`Ke3`"), "strict where that is asked for: {error}");
    let book = read_book(&path, None, OnBad::Skip).unwrap();
    assert_eq!(book.openings.len(), 1);
    assert!(book.warnings[0].contains("x.pgn: 3 of 4 games"), "{:?}", book.warnings);
    assert!(book.warnings[0].contains("the first at line 3: move 2: `Ke3`"), "{:?}", book.warnings);
}

#[test]
fn epd_and_fen_lines() {
    let text = "# a comment\n\
        rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - id \"King's pawn\"; hmvc 0;\r\n\
        \n\
        rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n\
        4k3/8/8/8/8/8/4P3/4K3 w - -;\n\
        4k3/8/8/8/8/8/4P3/4K3 w - - 12 40 bm e4;\n";
    for (name, bytes) in
        [("b.epd", text.as_bytes().to_vec()), ("b.epd.zst", zstd::bulk::compress(text.as_bytes(), 3).unwrap())]
    {
        let (_dir, path) = file(name, &bytes);
        let book = read_book(&path, None, OnBad::Skip).unwrap();
        let names: Vec<&str> = book.openings.iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names, ["King's pawn".to_owned(), format!("{name}:4"), format!("{name}:5"), format!("{name}:6")]);
        let fens: Vec<Option<&str>> = book.openings.iter().map(|o| o.start_fen.as_deref()).collect();
        assert_eq!(fens[0], Some("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"));
        assert_eq!(fens[1], None, "the standard position");
        assert_eq!(fens[3], Some("4k3/8/8/8/8/8/4P3/4K3 w - - 12 40"));
    }
}

#[test]
fn u12_an_illegal_position_is_never_an_opening() {
    let (_dir, path) = file("b.fen", b"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\n4k3/8/8/8/8/8/8/8 w - - 0 1\n");
    let error = read_openings(&path, OnBad::Stop).unwrap_err().to_string();
    assert!(error.contains("b.fen:2") && error.contains("not a legal chess position"), "{error}");
    let book = read_book(&path, None, OnBad::Skip).unwrap();
    assert_eq!(book.openings.len(), 1);
    assert!(book.warnings[0].contains("1 of 2 lines") && book.warnings[0].contains("line 2"), "{:?}", book.warnings);
    let (_dir, path) = file("b.fen", b"hello world\n");
    let error = read_openings(&path, OnBad::Skip).unwrap_err().to_string();
    assert!(error.contains("holds no opening") && error.contains("line 1: `hello world`"), "{error}");
    let error = read_openings(&file("e.epd", b"\n").1, OnBad::Skip).unwrap_err().to_string();
    assert!(error.contains("no opening"), "{error}");
}

/// The openings of a book by their moves or positions, and its warnings in one text.
fn read(name: &str, bytes: &[u8], plies: Option<usize>) -> (Vec<String>, String) {
    let (_dir, path) = file(name, bytes);
    let book = read_book(&path, plies, OnBad::Skip).unwrap_or_else(|e| panic!("{name}: {e}"));
    let shown = |o: Opening| {
        let game = PgnGame { start_fen: o.start_fen.clone(), moves: o.moves, ..PgnGame::default() };
        o.start_fen.unwrap_or_else(|| uci(&game))
    };
    (book.openings.into_iter().map(shown).collect(), book.warnings.join("\n"))
}

fn refusal(name: &str, bytes: &[u8], plies: Option<usize>) -> String {
    let (_dir, path) = file(name, bytes);
    read_book(&path, plies, OnBad::Skip).unwrap_err().to_string()
}

#[test]
fn zstd_is_told_by_content_and_may_begin_with_frames_to_pass_over() {
    let packed = |text: &str| zstd::bulk::compress(text.as_bytes(), 3).unwrap();
    let skippable = |byte: u8| [&[byte, 0x2A, 0x4D, 0x18, 5, 0, 0, 0][..], b"abcde"].concat();
    let two = ["[Event \"a\"]\n1. e4 *\n", "[Event \"b\"]\n1. d4 *\n"].map(packed);
    for first in [skippable(0x50), skippable(0x5F), [skippable(0x51), skippable(0x52)].concat(), Vec::new()] {
        for name in ["x.pgn.zst", "x.pgn", "x"] {
            let bytes = [&first[..], &two[0], &skippable(0x53), &two[1]].concat();
            assert_eq!(read(name, &bytes, None).0, ["e2e4", "d2d4"], "{name}");
        }
    }
}

const GOOD: &str = "[Event \"good\"]\n\n1. c4 e5 2. Nc3 Nf6 3. Nf3 Nc6 4. g3 d5 5. cxd5 Nxd5 *\n";

#[test]
fn what_comes_after_the_plies_of_a_game_is_not_looked_at() {
    for bad in ["4. Ba4 Z0 5. O-O *", "4. Ba4 Ke3 *", "4. Ba4 {no end", "4. Ba4 (4. Bxc6 *"] {
        let text = format!("[Event \"a\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 {bad}\n");
        let (openings, warnings) = read("x.pgn", text.as_bytes(), Some(6));
        assert_eq!((openings.join("|").as_str(), warnings.as_str()), ("e2e4 e7e5 g1f3 b8c6 f1b5 a7a6", ""), "{bad}");
        let why = refusal("x.pgn", text.as_bytes(), Some(9));
        assert!(why.contains("1 of 1 games cannot be used") && why.contains("at line "), "{bad}: {why}");
    }
}

#[test]
fn games_that_cannot_be_played_are_skipped_and_named() {
    for (bad, named) in [
        ("1. e4 e5 2. Nf3 Nc6 3. d4 exd4 4. Nxd4 -- 5. Nc3 *", "move 4: `--` is a null move"),
        ("1. e4 Z0 2. d4 *", "`Z0` is a null move"),
        ("1. e4 e5 2. Ke3 *", "`Ke3`"),
        ("[Result \"1-0\"]\n\n1-0", "neither moves nor a position"),
        ("[FEN \"8/8/8/8/8/8/8/8 w - - 0 1\"]\n\n1. e4 *", "not a legal chess position"),
        ("[SetUp \"1\"]\n\n1. e4 *", "`SetUp`"),
        ("[Variant \"Crazyhouse\"]\n\n1. e4 *", "`Crazyhouse`"),
        (
            "[Variant \"Chess960\"]\n[FEN \"bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFhf - 0 1\"]\n\n1. g3 *",
            "`Chess960`",
        ),
        ("[Variant \"chess 960\"]\n\n1. e4 *", "`chess 960`"),
        // A castling right that only Chess960 knows, without the word.
        ("[FEN \"bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFhf - 0 1\"]\n\n1. g3 *", "bbqnnrkr"),
        ("[FEN \"1r2k1r1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w KQkq - 0 1\"]\n\n1. e4 *", "1r2k1r1"),
    ] {
        let text = format!("[Event \"bad\"]\n{bad}\n\n{GOOD}");
        let (openings, warnings) = read("x.pgn", text.as_bytes(), Some(10));
        assert_eq!(openings, ["c2c4 e7e5 b1c3 g8f6 g1f3 b8c6 g2g3 d7d5 c4d5 f6d5"], "{bad}");
        assert!(warnings.contains("1 of 2 games") && warnings.contains(named), "{bad}: {warnings}");
        let (_dir, path) = file("x.pgn", text.as_bytes());
        let strict = read_book(&path, Some(10), OnBad::Stop).unwrap_err().to_string();
        assert!(strict.contains("x.pgn:") && strict.contains(named), "{strict}");
    }
    for standard in ["Standard", "From Position", "chess", "?", ""] {
        let text = format!("[Variant \"{standard}\"]\n{GOOD}");
        assert_eq!(read("x.pgn", text.as_bytes(), Some(2)).0, ["c2c4 e7e5"], "{standard}");
    }
    let position = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";
    let text = format!("[Event \"a\"]\n[SetUp \"1\"]\n[FEN \"{position}\"]\n\n*\n");
    assert_eq!(read("x.pgn", text.as_bytes(), None), (vec![position.to_owned()], String::new()));
}

#[test]
fn castling_that_standard_chess_lacks_is_skipped_in_epd_too() {
    let lines = "bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFhf - 0 1\n\
                 rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1\n\
                 r3k1r1/8/8/8/8/8/8/R3K1R1 w KQkq - 0 1\n";
    let (openings, warnings) = read("x.epd", lines.as_bytes(), None);
    assert_eq!(openings, ["rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"]);
    assert!(warnings.contains("2 of 3 lines") && warnings.contains("line 1: "), "{warnings}");
}

#[test]
fn what_is_no_text_is_named() {
    let gzip = refusal("x.pgn", b"\x1f\x8b\x08\0\0\0\0\0\0\x03abc", None);
    assert!(gzip.contains("x.pgn") && gzip.contains("gzip data: unpack it"), "{gzip}");
    // Four entries of a Polyglot book: key, move, weight, learn, each big-endian.
    let polyglot: Vec<u8> =
        (0..4u8).flat_map(|i| [0x46, 0x3B, 0x96, 0x18, 0x16, 0x91, 0xFC, i, 3, 0x1C, 0, 9, 0, 0, 0, 0]).collect();
    let wide: Vec<u8> = GOOD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, bytes) in [("book.bin", &polyglot), ("x.pgn", &wide)] {
        let why = refusal(name, bytes, None);
        assert!(why.contains(name) && why.contains("not text"), "{why}");
    }
    for (name, bytes) in [
        ("x", &b"BZh91AY&SY"[..]),
        ("x", b"\xFD7zXZ\0\0"),
        ("x", b"PK\x03\x04\x14"),
        ("x", b"\x01\x02\x1b[31m hello\n"),
    ] {
        let why = refusal(name, bytes, None);
        assert!(why.contains("expected EPD or FEN lines") && !why.chars().any(char::is_control), "{why:?}");
    }
    let odd = refusal("x.epd", "hello\u{7} world \u{1b}[31m\n".repeat(9).as_bytes(), None);
    assert!(!odd.chars().any(char::is_control), "{odd:?}");
}

#[test]
fn games_shorter_than_the_plies_are_counted() {
    let mated = "[Event \"m\"]\n1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0\n";
    let why = refusal("x.pgn", mated.as_bytes(), Some(16));
    assert!(why.contains("1 of 1 games are over") && why.contains("checkmate after 7 plies"), "{why}");
    let (openings, warnings) = read("x.pgn", format!("{mated}{GOOD}{mated}").as_bytes(), Some(16));
    assert_eq!(openings.len(), 1);
    assert!(warnings.contains("2 of 3 games are over by their opening's end"), "{warnings}");
    assert!(
        warnings.contains("1 of 3 games are shorter than `plies` = 16") && warnings.contains("10 plies"),
        "{warnings}"
    );
}

/// Each is read as the same game, or is skipped by name, and none changes the game after it.
#[test]
fn spellings_in_the_wild() {
    let expected = "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 e1g1";
    for text in [
        "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. O-O *",
        "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. 0-0 *",
        "1. e2e4 e7e5 2. g1f3 b8c6 3. f1b5 a7a6 4. e1g1 *",
        "1. e2-e4 e7-e5 2. Ng1-f3 Nb8-c6 3. Bf1-b5 a7-a6 4. 0-0 *",
        "1. Pe4 e5 2. ♘f3 ♞c6 3. ♗b5 ♟a6 4. O-O *",
        "1. e4! $1 e5?! $6 2. Nf3!! Nc6 $14 3. Bb5 N a6 D 4. O-O $146 *",
        "1. e4 {[%clk 0:10:00]} e5 {[%eval 0.3] [%clk 0:09:59]} 2. Nf3 Nc6 3. Bb5 a6 4. O-O *",
        "1. e4 e5 (1... c5 2. Nf3 (2. Nc3 Nc6 (2... d6)) d6) 2. Nf3 Nc6 3. Bb5 a6 4. O-O *",
        "% an escape ( { line\n1. e4 e5\n% 2. Ke2\n2. Nf3 Nc6 3. Bb5 a6 4. O-O *",
        "1.e4 e5 2.Nf3 Nc6 3.Bb5 a6 4.O-O ; the rest ( is { a comment\n*",
        "1. e4 e5\r\n2. Nf3 Nc6\r\n3. Bb5 a6\r\n4. O-O *",
    ] {
        let text = format!("\u{feff}[Event \"a \\\"quoted\\\" ] name\"]\n\n{text}\n\n{GOOD}");
        let (openings, warnings) = read("x.pgn", text.as_bytes(), Some(7));
        assert_eq!(openings, [expected, "c2c4 e7e5 b1c3 g8f6 g1f3 b8c6 g2g3"], "{text}");
        assert_eq!(warnings, "", "{text}");
    }
    // Promotions and captures by coordinates.
    for (fen, san, written) in [
        ("1n5k/P7/8/8/8/8/8/K7 w - - 0 1", "a7b8n", ["axb8=N", "a7xb8=N", "a7b8n", "axb8N"]),
        ("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", "e4d5", ["exd5", "e4xd5", "e4:d5", "e4d5"]),
        ("4k3/8/8/3p4/8/4N3/8/4K3 w - - 0 1", "e3d5", ["Nxd5", "Ne3xd5", "Ne3-d5", "e3d5"]),
    ] {
        for text in written {
            let game = format!("[FEN \"{fen}\"]\n\n1. {text} *\n");
            assert_eq!(uci(&parse_pgn(&game)[0]), san, "{text}");
        }
    }
    // A last game that breaks off, anywhere.
    let last = "[Event \"cut\"]\n\n1. d4 d5 {a comment} 2. c4 (2. Nf3 Nf6) e6 *\n";
    for end in 0..last.len() {
        let (openings, _) = read("x.pgn", format!("{GOOD}{}", &last[..end]).as_bytes(), Some(2));
        assert_eq!(openings[0], "c2c4 e7e5", "{end}");
        assert!(
            openings.len() <= 2 && openings.get(1).is_none_or(|o| "d2d4 d7d5".starts_with(o.as_str())),
            "{end}: {openings:?}"
        );
    }
}

#[test]
fn openings_that_end_the_game_are_left_out() {
    let text = "[Event \"?\"]\n[ECO \"A00\"]\n1. f3 e5 2. g4 Qh4# 0-1\n[Event \"fine\"]\n1. e4 c5 2. Nf3 *\n";
    let (_dir, path) = file("x.pgn", text.as_bytes());
    let book = read_book(&path, None, OnBad::Skip).unwrap();
    assert_eq!(book.openings.len(), 1);
    assert!(book.warnings[0].contains("line 1: checkmate"), "{:?}", book.warnings);
    let cut = read_book(&path, Some(2), OnBad::Skip).unwrap();
    assert_eq!(
        cut.openings.iter().map(|o| (o.name.as_str(), o.moves.len())).collect::<Vec<_>>(),
        [("A00", 2), ("fine", 2)]
    );
}
