"""`Ties`: which identities hang together, since rows moved from one to the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ties:
    known: np.ndarray
    """The hashes of identities that rows left or reached, in order."""
    least: np.ndarray
    """The least hash of those that each hangs together with, itself included."""

    def ends(self, hashed: np.ndarray) -> np.ndarray:
        """For each hash one that stands for all that it hangs together with."""
        if not len(self.known):
            return hashed
        near = np.minimum(np.searchsorted(self.known, hashed), len(self.known) - 1)
        return np.where(self.known[near] == hashed, self.least[near], hashed)


def ties_of(moves: np.ndarray) -> Ties:
    """
    Args:
        moves: Two rows of hashes: each move, from one to the other.

    >>> ties_of(np.array([[1, 5, 7, 9], [2, 2, 8, 9]], np.uint64)).ends(np.arange(10, dtype="u8"))
    array([0, 1, 1, 3, 4, 1, 6, 7, 7, 9], dtype=uint64)
    """
    known, places = np.unique(moves, return_inverse=True)
    one, other = places.reshape(moves.shape)
    root = np.arange(len(known))
    while True:
        # The greater root follows the less, and each then skips what it follows: a chain of a
        # million moves is one after twenty rounds.
        low, high = np.minimum(root[one], root[other]), np.maximum(root[one], root[other])
        if np.array_equal(low, high):
            return Ties(known, known[root])
        np.minimum.at(root, high, low)
        while not np.array_equal(root, further := root[root]):
            root = further
