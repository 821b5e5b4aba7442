"""A reader of policy.onnx that shares nothing with the program: planes by python-chess, inference by onnxruntime.

Arguments: the ONNX file, a file with one FEN a line, and where to write the logits of each as 4096 little-endian
floats. Prints for each FEN the likeliest legal move as `from * 64 + to`.
"""

import sys

import chess
import numpy as np
import onnxruntime


def planes(board: chess.Board) -> np.ndarray:
    """Planes P N B R Q K p n b r q k, then ones if Black is to move; the first row is the eighth rank."""
    out = np.zeros((13, 8, 8), dtype=np.float32)
    for square, piece in board.piece_map().items():
        plane = piece.piece_type - 1 + (0 if piece.color == chess.WHITE else 6)
        out[plane, 7 - chess.square_rank(square), chess.square_file(square)] = 1
    if board.turn == chess.BLACK:
        out[12] = 1
    return out


def main() -> None:
    onnx, fens, logits_file = sys.argv[1:]
    boards = [chess.Board(line) for line in open(fens).read().splitlines()]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    run = lambda x: session.run(["logits"], {"planes": x})[0]
    logits = run(np.stack([planes(board) for board in boards]))
    assert logits.shape == (len(boards), 4096), logits.shape
    # The batch is of any size.
    np.testing.assert_allclose(run(planes(boards[0])[None]), logits[:1], atol=1e-4)
    logits.astype("<f4").tofile(logits_file)
    for board, row in zip(boards, logits):
        print(max({m.from_square * 64 + m.to_square for m in board.legal_moves}, key=lambda index: row[index]))


main()
