use proptest::prelude::*;

use super::*;
use crate::Rng;

/// A position of a random game, after so many plies or at its end.
fn random_position(seed: u64, plies: usize) -> PolicyChess {
    let (mut rng, mut game, mut moves) = (Rng::new(seed), PolicyChess::start(), Vec::new());
    for _ in 0..plies {
        if game.generate(&mut moves) != Outcome::Ongoing {
            break;
        }
        game.play(moves[rng.below(moves.len())]);
    }
    game
}

/// The planes as the text of a FEN's first two fields.
fn text_of(packed: &Packed) -> String {
    let piece = |bit: usize| {
        let plane = (0..12).find(|plane| packed.bits[*plane] >> bit & 1 == 1);
        plane.map(|plane| char::from(b"PNBRQKpnbrqk"[plane]))
    };
    let row = |row: usize| (0..8).map(|file| piece(row * 8 + file).map_or("1".to_owned(), String::from)).collect();
    let rows: Vec<String> = (0..8).map(row).collect();
    format!("{} {}", rows.join("/"), if packed.bits[12] == 0 { 'w' } else { 'b' })
}

/// The same of a position's own FEN.
fn fields(game: &PolicyChess) -> String {
    let mut text = game.fen();
    for n in 1..=8 {
        let (rows, rest) = text.split_once(' ').unwrap();
        text = format!("{} {rest}", rows.replace(&n.to_string(), &"1".repeat(n)));
    }
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

fn name(square: u16) -> String {
    format!("{}{}", char::from(b'a' + (square & 7) as u8), square / 8 + 1)
}

/// By text alone: rows of characters and names of squares moved about, and the rules asked about the result.
fn image_by_text(game: &PolicyChess, m: Move, turned: bool, mirror_ranks: bool, mirror_files: bool) -> Option<String> {
    let fields = fields(game);
    let (rows, turn) = fields.split_once(' ').unwrap();
    let board: Vec<Vec<char>> = rows.split('/').map(|row| row.chars().collect()).collect();
    let place = |row: usize, file: usize| {
        let (row, file) = if turned { (file, row) } else { (row, file) };
        (if mirror_ranks { 7 - row } else { row }, if mirror_files { 7 - file } else { file })
    };
    let mut image = vec![vec!['1'; 8]; 8];
    for (row, file) in (0..64).map(|i| (i / 8, i % 8)) {
        let (to_row, to_file) = place(row, file);
        image[to_row][to_file] = board[row][file];
    }
    let rows: Vec<String> = image.into_iter().map(|row| row.into_iter().collect()).collect();
    let text = format!("{} {turn}", rows.join("/"));
    let position = PolicyChess::from_fen(&format!("{text} - - 0 1")).ok()?;
    let square = |square: u16| {
        let (row, file) = place(7 - usize::from(square / 8), usize::from(square % 8));
        name(((7 - row) * 8 + file) as u16)
    };
    let (from, to) = (square(m.0 & 63), square(m.0 >> 6 & 63));
    let legal = position.legal_moves().iter().any(|m| position.move_text(*m).starts_with(&format!("{from}{to}")));
    legal.then(|| format!("{text} {from}{to}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Exactly those of the eight that are legal positions with a legal move, and the identity is not among them.
    #[test]
    fn images_are_the_legal_ones_of_the_eight(seed: u64, plies in 0usize..250, choice: usize) {
        let game = random_position(seed, plies);
        let moves = game.legal_moves();
        prop_assume!(!moves.is_empty());
        let m = moves[choice % moves.len()];
        let mut found: Vec<String> = game.images(&[game.index(m)]).iter().map(|image| {
            assert!(image.legal.windows(2).all(|w| w[0] < w[1]) && image.legal.contains(&image.wanted[0]));
            format!("{} {}{}", text_of(&image.packed), name(image.wanted[0] / 64), name(image.wanted[0] % 64))
        }).collect();
        let kinds = (1..8).map(|kind| (kind & 4 != 0, kind & 2 != 0, kind & 1 != 0));
        let mut expected: Vec<String> = kinds.filter_map(|(t, r, f)| image_by_text(&game, m, t, r, f)).collect();
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }

    /// Planes hold the board of the FEN; indices are those of the legal moves' squares.
    #[test]
    fn planes_and_indices_are_those_of_the_text(seed: u64, plies in 0usize..250) {
        let game = random_position(seed, plies);
        prop_assert_eq!(text_of(&game.pack()), fields(&game));
        let moves = game.legal_moves();
        let mut legal = Vec::new();
        game.legal_indices(&mut legal);
        let mut expected: Vec<u16> = moves.iter().map(|m| {
            let text = game.move_text(*m);
            let square = |at: usize| {
                let name = &text.as_bytes()[at..at + 2];
                u16::from(name[1] - b'1') * 8 + u16::from(name[0] - b'a')
            };
            square(0) * 64 + square(2)
        }).collect();
        prop_assert!(expected.is_sorted());
        expected.dedup();
        prop_assert_eq!(&legal, &expected);
        for m in moves {
            prop_assert_eq!(game.index_in(&legal, m), Some(game.index(m)));
        }
        prop_assert_eq!(game.index_in(&legal, Move(0)), None);
    }
}

fn images(fen: &str, m: &str) -> Vec<Image> {
    let game = PolicyChess::from_fen(fen).unwrap();
    let index = game.index(game.parse_move(m).unwrap());
    game.images(&[index])
}

#[test]
fn pawns_keep_their_direction_and_rights_are_dropped() {
    // Without pawns the rules have all eight symmetries.
    assert_eq!(images("8/3k4/8/8/2R5/8/5K2/8 w - - 0 1", "c4c7").len(), 7);
    // The pawns of the start lie on the seventh rank when they are turned round: only files can be mirrored.
    let mirrored = images("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "e2e4");
    assert_eq!(mirrored.len(), 1);
    assert_eq!(mirrored[0].wanted, [11 * 64 + 27], "e2e4 is d2d4 in the mirror");
    // Castling and the capture in passing are legal on the identity alone; another move keeps its images, in which
    // the right to castle is gone.
    let castling = "4k3/8/8/8/8/8/8/4K2R w K - 0 1";
    assert!(images(castling, "e1g1").is_empty());
    let step = images(castling, "e1d1");
    assert_eq!(step.len(), 7);
    let own = PolicyChess::from_fen(castling).unwrap();
    assert!(step.iter().all(|image| image.legal.len() + 1 == own.legal_moves().len()));
    let passing = "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1";
    assert!(images(passing, "e5d6").is_empty());
    assert_eq!(images(passing, "e5e6").len(), 1);
}

#[test]
fn promotions_share_an_index() {
    let game = PolicyChess::from_fen("8/4P3/8/8/8/8/k7/2K5 w - - 0 1").unwrap();
    let mut legal = Vec::new();
    game.legal_indices(&mut legal);
    let promotions = ["e7e8q", "e7e8n"].map(|text| game.index(game.parse_move(text).unwrap()));
    assert_eq!(promotions, [52 * 64 + 60; 2]);
    assert_eq!(legal.iter().filter(|i| **i == promotions[0]).count(), 1);
    assert_eq!(game.legal_moves().len(), legal.len() + 3);
}
