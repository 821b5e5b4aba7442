use games::{Chess, Game};
use shakmaty::{Color, Role, Square};

use super::{PawnCache, evaluate};
use crate::board::Board;
use crate::features::Features;
use crate::taper::{FULL_PHASE, Taper};
use crate::testing::{FENS, board, random_positions};
use crate::weights::{PLACED, TEMPO, VALUES};

fn value(fen: &str) -> i32 {
    evaluate(&board(fen), &Features::default(), &mut PawnCache::new())
}

/// A FEN with colors exchanged and ranks turned over.
fn mirrored(fen: &str) -> String {
    let mut fields = fen.split(' ');
    let swap = |text: &str| -> String {
        text.chars()
            .map(|c| if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() })
            .collect()
    };
    let ranks: Vec<String> = fields.next().unwrap().split('/').rev().map(swap).collect();
    let turn = if fields.next() == Some("w") { "b" } else { "w" };
    let castling = swap(fields.next().unwrap());
    let passing: String = fields
        .next()
        .unwrap()
        .chars()
        .map(|c| {
            if c == '3' {
                '6'
            } else if c == '6' {
                '3'
            } else {
                c
            }
        })
        .collect();
    format!("{} {turn} {castling} {passing} {}", ranks.join("/"), fields.collect::<Vec<_>>().join(" "))
}

/// Piece-square tables are the right way up: by number, for both colors.
#[test]
fn piece_square_values_stand_the_right_way_up() {
    let at = |color: Color, role: Role, square: Square| PLACED[color as usize][role as usize - 1][square as usize];
    let pawn = |square| at(Color::White, Role::Pawn, square);
    assert_eq!((pawn(Square::E7).middle, pawn(Square::E7).end), (135, 128));
    assert_eq!((pawn(Square::E2).middle, pawn(Square::E2).end), (51, 112));
    assert_eq!((pawn(Square::H7).middle, pawn(Square::A2).middle), (106, 46));
    let more = |better: Taper, worse: Taper| better.middle > worse.middle && better.end > worse.end;
    assert!(more(pawn(Square::E7), pawn(Square::E2)) && more(pawn(Square::A7), pawn(Square::A2)));
    let king = |square| at(Color::White, Role::King, square);
    assert_eq!((king(Square::G1).middle, king(Square::E4).middle), (69, -82));
    assert_eq!((king(Square::E4).end, king(Square::A8).end), (34, -55));
    assert_eq!(at(Color::White, Role::Knight, Square::B1).middle, 301);
    assert_eq!(at(Color::White, Role::Rook, Square::H1).middle, 340);
    for role in Role::ALL {
        for square in Square::ALL {
            assert_eq!(at(Color::Black, role, square.flip_vertical()), -at(Color::White, role, square));
        }
    }
}

#[test]
fn an_advanced_pawn_outscores_one_at_home_and_a_castled_king_one_in_the_middle() {
    for (better, worse) in [
        ("8/4P3/8/k7/8/8/8/6K1 w - - 0 1", "8/8/8/k7/8/8/4P3/6K1 w - - 0 1"),
        ("6k1/8/8/8/K7/8/4p3/8 b - - 0 1", "6k1/4p3/8/8/K7/8/8/8 b - - 0 1"),
        (
            "rnbq1rk1/ppppbppp/5n2/4p3/4P3/3B1N2/PPPP1PPP/RNBQ1RK1 w - - 0 1",
            "rnbq1rk1/ppppbppp/5n2/4p3/4P3/3BKN2/PPPP1PPP/RNBQ1R2 w - - 0 1",
        ),
        (
            "rnbq1rk1/ppppbppp/5n2/4p3/4P3/3B1N2/PPPP1PPP/RNBQ1RK1 b - - 0 1",
            "rnbq1r2/ppppbppp/4kn2/4p3/4P3/3B1N2/PPPP1PPP/RNBQ1RK1 b - - 0 1",
        ),
    ] {
        assert!(value(better) > value(worse) + 20, "{better} {} {worse} {}", value(better), value(worse));
    }
}

/// With every part and with each part alone.
#[test]
fn mirrored_positions_have_exactly_opposite_values() {
    let mut sets = vec![Features::default(), Features::none()];
    for (name, _) in Features::OPTIONS {
        let mut one = Features::none();
        one.set(name, true);
        sets.push(one);
    }
    let mut cache = PawnCache::new();
    let mut different = 0;
    random_positions(1, |game, _| {
        let mirror = Chess::from_fen(&mirrored(&game.fen())).unwrap();
        for features in &sets {
            // In the mover's view they are equal, so in White's view opposite.
            let own = evaluate(&Board::from(game.position()), features, &mut cache);
            let other = evaluate(&Board::from(mirror.position()), features, &mut cache);
            assert_eq!(own, other, "{} {features:?}", game.fen());
            different += usize::from(own != 0);
        }
    });
    assert!(different > 10_000, "{different}");
}

#[test]
fn every_part_says_something() {
    let all = Features::default();
    for (name, fen) in [
        ("PawnStructure", FENS[4]),
        ("BishopPair", FENS[1]),
        ("RookFiles", FENS[8 + 1]),
        ("MinorPieces", FENS[1]),
        ("Threats", FENS[1]),
        ("Mobility", FENS[1]),
        ("KingSafety", FENS[1]),
        ("DrawScaling", "4k3/8/8/8/8/8/8/1N2K1N1 w - - 0 1"),
    ] {
        let mut without = all;
        without.set(name, false);
        let fen = if name == "BishopPair" { "4k3/8/8/8/8/8/8/2B1KB2 w - - 0 1" } else { fen };
        let (with, less) = (value(fen), evaluate(&board(fen), &without, &mut PawnCache::new()));
        if name == "RookFiles" {
            assert_eq!(with, less, "both have the same");
        } else {
            assert_ne!(with, less, "{name}");
        }
    }
    let rook = board("1nbqkbn1/p7/8/8/8/8/P7/1RBQKBN1 w - - 0 1");
    let mut without = all;
    without.set("RookFiles", false);
    assert!(evaluate(&rook, &all, &mut PawnCache::new()) > evaluate(&rook, &without, &mut PawnCache::new()));
}

#[test]
fn phases_and_sums_are_those_of_the_pieces() {
    assert_eq!(board(FENS[0]).phase(), FULL_PHASE);
    assert_eq!((board(FENS[0]).placed(), value(FENS[0])), (Taper::ZERO, VALUES[TEMPO].middle));
    assert_eq!(board("4k3/8/8/8/8/8/8/Q3K2R w K - 0 1").phase(), 6);
}
