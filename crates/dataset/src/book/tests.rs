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
    assert!(read_book(&path, None).unwrap().warnings[0].contains("x.pgn:2"));
    assert!(read_book(&file("y.pgn", b"\xFF\xFE[\0").1, None).is_err());
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
    let error = read_book(&file("x.pgn", text.as_bytes()).1, None).unwrap_err().to_string();
    assert!(error.contains("x.pgn:3"), "{error}");
    let variant = games(b"[Variant \"Atomic\"]\n1. e4 *");
    assert!(variant[0].fault.as_ref().unwrap().1.contains("atomic"));
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
        let book = read_book(&path, None).unwrap();
        let names: Vec<&str> = book.openings.iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names, ["King's pawn".to_owned(), format!("{name}:4"), format!("{name}:5"), format!("{name}:6")]);
        let fens: Vec<Option<&str>> = book.openings.iter().map(|o| o.start_fen.as_deref()).collect();
        assert_eq!(fens[0], Some("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"));
        assert_eq!(fens[1], None, "the standard position");
        assert_eq!(fens[3], Some("4k3/8/8/8/8/8/4P3/4K3 w - - 12 40"));
    }
}

#[test]
fn u12_an_illegal_position_is_refused_with_its_line() {
    let (_dir, path) = file("b.fen", b"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\n4k3/8/8/8/8/8/8/8 w - - 0 1\n");
    let error = read_openings(&path).unwrap_err().to_string();
    assert!(error.contains("b.fen:2") && error.contains("not a legal chess position"), "{error}");
    let (_dir, path) = file("b.fen", b"hello world\n");
    assert!(read_openings(&path).unwrap_err().to_string().contains("b.fen:1"));
    assert!(read_openings(&file("e.epd", b"\n").1).unwrap_err().to_string().contains("no opening"));
}

#[test]
fn openings_that_end_the_game_are_left_out() {
    let text = "[Event \"?\"]\n[ECO \"A00\"]\n1. f3 e5 2. g4 Qh4# 0-1\n[Event \"fine\"]\n1. e4 c5 2. Nf3 *\n";
    let (_dir, path) = file("x.pgn", text.as_bytes());
    let book = read_book(&path, None).unwrap();
    assert_eq!(book.openings.len(), 1);
    assert!(book.warnings[0].contains("x.pgn:1") && book.warnings[0].contains("checkmate"), "{:?}", book.warnings);
    let cut = read_book(&path, Some(2)).unwrap();
    assert_eq!(
        cut.openings.iter().map(|o| (o.name.as_str(), o.moves.len())).collect::<Vec<_>>(),
        [("A00", 2), ("fine", 2)]
    );
}
