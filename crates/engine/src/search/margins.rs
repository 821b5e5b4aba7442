//! How far the search trusts its estimates, in plies and centipawns. All of it is integer arithmetic.

/// Plies that checks may add to a line.
pub(crate) const MOST_EXTENSIONS: i32 = 16;
/// Depth from which a null move is tried.
pub(crate) const NULL_FROM: i32 = 3;
/// Depth from which a node without a move from the table is searched a ply less.
pub(crate) const REDUCED_FROM: i32 = 4;
/// Depth from which the policy network is asked for its opinion, which takes as long as some twenty-five nodes.
pub(crate) const POLICY_FROM: i32 = 8;
/// Depths up to which the cuts near the leaves are made.
pub(crate) const REVERSE_DEPTH: i32 = 8;
pub(crate) const RAZOR_DEPTH: i32 = 3;
pub(crate) const FUTILE_DEPTH: i32 = 7;
pub(crate) const EXCHANGE_DEPTH: i32 = 8;
/// What a capture may gain beyond the value of what it takes, in quiescence.
pub(crate) const DELTA: i32 = 150;

/// Plies that a null move saves.
pub(crate) fn null_reduction(depth: i32, above: i32) -> i32 {
    4 + depth / 4 + (above / 200).min(3)
}

/// How far the estimate has to be above beta.
pub(crate) fn reverse(depth: i32, improving: bool) -> i32 {
    80 * (depth - i32::from(improving))
}

/// How far the estimate has to be below alpha.
pub(crate) fn razor(depth: i32) -> i32 {
    120 + 180 * depth
}

/// What a quiet move may gain with so many plies left.
pub(crate) fn futility(left: i32) -> i32 {
    100 + 90 * left
}

/// Moves after which no more quiet ones are tried.
pub(crate) fn late_moves(depth: i32, improving: bool) -> i32 {
    (3 + depth * depth) / (2 - i32::from(improving))
}

/// What a move may lose on its square.
pub(crate) fn exchange(is_noisy: bool, depth: i32, left: i32) -> i32 {
    if is_noisy { -90 * depth } else { -24 * left * left }
}

/// Plies that a later move is searched less, in 1024ths: 0.75 + ln(depth) ln(count) / 2.25.
#[inline]
pub(crate) fn reduction(depth: i32, count: i32) -> i32 {
    REDUCTIONS[depth.clamp(0, 63) as usize][count.clamp(0, 63) as usize]
}

/// What is added to that, in 1024ths, by what is known of node and move.
pub(crate) fn adjustment(wide: bool, improving: bool, gives_check: bool, in_check: bool, past: i32) -> i32 {
    let mut more = 0;
    if wide {
        more -= 1024;
    }
    if !improving {
        more += 512;
    }
    if gives_check || in_check {
        more -= 1024;
    }
    more - past / 12
}

static REDUCTIONS: [[i32; 64]; 64] = {
    let mut table = [[0; 64]; 64];
    let mut depth = 1;
    while depth < 64 {
        let mut count = 1;
        while count < 64 {
            table[depth][count] = 768 + ln(depth as u64) * ln(count as u64) / 2304;
            count += 1;
        }
        depth += 1;
    }
    table
};

/// The natural logarithm of a whole number, in 1024ths: binary digits of the logarithm to the base 2 by squaring.
const fn ln(n: u64) -> i32 {
    let whole = n.ilog2();
    // 1 <= mantissa < 2, with 30 bits behind the point.
    let mut mantissa = (n << 30) >> whole;
    let (mut log, mut digit) = ((whole as u64) << 20, 1 << 19);
    while digit > 0 {
        mantissa = (mantissa * mantissa) >> 30;
        if mantissa >= 2 << 30 {
            mantissa >>= 1;
            log += digit;
        }
        digit >>= 1;
    }
    // ln 2 = 726817 / 2^20.
    ((log * 726_817) >> 30) as i32
}

#[cfg(test)]
mod tests {
    use super::{ln, reduction};

    #[test]
    fn logarithms_are_right() {
        for n in 1..=64 {
            let exact = (n as f64).ln() * 1024.0;
            assert!((f64::from(ln(n)) - exact).abs() < 1.5, "{n}: {} {exact}", ln(n));
        }
    }

    #[test]
    fn reductions_grow() {
        assert_eq!(reduction(1, 1), 768);
        for depth in 2..63 {
            for count in 2..63 {
                assert!(reduction(depth, count) <= reduction(depth + 1, count));
                assert!(reduction(depth, count) <= reduction(depth, count + 1));
            }
        }
        assert_eq!(reduction(20, 20) / 1024, 4);
        assert_eq!(reduction(100, 300), reduction(63, 63));
    }
}
