"""Recurrent cells: LSTM, GRU, BRC, nBRC and MGU, and what a cell of one's own must be."""

from beliefscope.agent.cells.brc import BRC
from beliefscope.agent.cells.gated import GatedCell
from beliefscope.agent.cells.gru import GRU
from beliefscope.agent.cells.interface import Cell
from beliefscope.agent.cells.lstm import LSTM
from beliefscope.agent.cells.mgu import MGU
from beliefscope.agent.cells.nbrc import NBRC

__all__ = ["BRC", "GRU", "LSTM", "MGU", "NBRC", "Cell", "GatedCell"]
