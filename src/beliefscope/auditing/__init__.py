"""Audits of anyone's agent: `audit(agent, pomdp)` plays it, tracks beliefs, and says what its memory holds of them."""

from beliefscope.auditing.adapters import (
    AuditedAgent,
    EquinoxAgent,
    FunctionAgent,
    JAXAgent,
    SettableAgent,
    as_agent,
)
from beliefscope.auditing.audit import audit
from beliefscope.auditing.histories import Episodes
from beliefscope.auditing.logs import Log, log_from_arrays, read_log
from beliefscope.auditing.result import Audit, Checkpoint, Returns
from beliefscope.auditing.settable import settable

__all__ = [
    "Audit",
    "AuditedAgent",
    "Checkpoint",
    "Episodes",
    "EquinoxAgent",
    "FunctionAgent",
    "JAXAgent",
    "Log",
    "Returns",
    "SettableAgent",
    "as_agent",
    "audit",
    "log_from_arrays",
    "read_log",
    "settable",
]
