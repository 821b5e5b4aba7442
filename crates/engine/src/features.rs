//! The parts of search and evaluation that can be taken away, one by one, to see in a match what each is worth.

macro_rules! features {
    ($($(#[$doc:meta])* $field:ident = $name:literal, $default:literal;)*) => {
        /// Which parts are used.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) struct Features { $($(#[$doc])* pub(crate) $field: bool,)* }

        impl Features {
            /// The option of each part and its default, in the order of the answer to `uci`.
            pub(crate) const OPTIONS: &[(&str, bool)] = &[$(($name, $default),)*];

            /// Takes a part in or out by the name of its option; `false` if there is none of this name.
            pub(crate) fn set(&mut self, name: &str, on: bool) -> bool {
                match name {
                    $($name => self.$field = on,)*
                    _ => return false,
                }
                true
            }

            /// The least that searches: alpha-beta on material and piece-square values.
            #[cfg(test)]
            pub(crate) fn none() -> Self {
                Features { $($field: false,)* }
            }
        }

        impl Default for Features {
            fn default() -> Self {
                Features { $($field: $default,)* }
            }
        }
    };
}

features! {
    /// The transposition table.
    table = "Table", true;
    /// Captures and check evasions beyond the nominal depth.
    quiescence = "Quiescence", true;
    /// Other moves than the first are searched with a window of nothing first.
    principal_variation = "PrincipalVariation", true;
    /// A window around the score of the iteration before.
    aspiration = "Aspiration", true;
    /// Cut if the opponent could move twice and still be worse.
    null_move = "NullMove", true;
    /// Moves that give check are searched a ply deeper.
    check_extension = "CheckExtension", true;
    /// Two quiet moves a ply that refuted others are tried early.
    killers = "Killers", true;
    /// Quiet moves are ordered by how they did elsewhere.
    history = "History", true;
    /// ... and how they did after the move before.
    continuation = "Continuation", true;
    /// Captures are told apart by their exchange: losing ones come last.
    exchange_order = "ExchangeOrder", true;
    /// Late quiet moves are searched less deep first.
    late_move_reductions = "LateMoveReductions", true;
    /// Nodes without a move from the table are searched less deep.
    internal_reduction = "InternalReduction", true;
    /// Cut near the leaves if the evaluation is far above the window.
    reverse_futility = "ReverseFutility", true;
    /// Quiescence at once near the leaves if the evaluation is far below the window.
    razoring = "Razoring", true;
    /// No quiet moves near the leaves if the evaluation is below the window.
    futility = "Futility", true;
    /// No quiet moves near the leaves after many.
    late_move_pruning = "LateMovePruning", true;
    /// No moves near the leaves that lose material on their square; no losing captures in quiescence.
    exchange_pruning = "ExchangePruning", true;
    /// No captures in quiescence that cannot reach the window.
    delta_pruning = "DeltaPruning", true;
    /// Passed, isolated, doubled, backward and supported pawns.
    pawn_structure = "PawnStructure", true;
    /// Two bishops.
    bishop_pair = "BishopPair", true;
    /// Rooks on open files.
    rook_files = "RookFiles", true;
    /// Knights and bishops that no pawn drives away, and bishops behind own pawns.
    minor_pieces = "MinorPieces", true;
    /// Pieces under attack, and those that a pawn's step would attack.
    threats = "Threats", true;
    /// Squares that pieces reach.
    mobility = "Mobility", true;
    /// Pawns before the king and attackers around it.
    king_safety = "KingSafety", true;
    /// Endings that are drawn with a small advantage.
    draw_scaling = "DrawScaling", true;
}

#[cfg(test)]
mod tests {
    use super::Features;

    #[test]
    fn every_option_changes_its_part() {
        for (name, default) in Features::OPTIONS {
            let mut features = Features::default();
            assert!(features.set(name, !default) && features != Features::default(), "{name}");
            assert!(features.set(name, *default) && features == Features::default(), "{name}");
        }
        assert!(!Features::default().set("Contempt", true));
        assert_ne!(Features::none(), Features::default());
    }
}
