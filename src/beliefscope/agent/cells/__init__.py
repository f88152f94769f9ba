"""Recurrent cells: LSTM, GRU, BRC, nBRC and MGU, and the interface for your own cell."""

from beliefscope.agent.cells.bistable import BRC, NBRC
from beliefscope.agent.cells.gated import GatedCell
from beliefscope.agent.cells.gru import GRU
from beliefscope.agent.cells.interface import Cell
from beliefscope.agent.cells.lstm import LSTM
from beliefscope.agent.cells.mgu import MGU

CELLS = {cell.__name__: cell for cell in (LSTM, GRU, BRC, NBRC, MGU)}  # by the names that stored runs have

__all__ = ["BRC", "CELLS", "GRU", "LSTM", "MGU", "NBRC", "Cell", "GatedCell"]
