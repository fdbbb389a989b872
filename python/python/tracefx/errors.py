"""What is refused, as exceptions. Each has a stable code."""

from __future__ import annotations

import builtins
from typing import Any, List, Optional, Tuple


class FxError(Exception):
    """What every exception of tracefx is.

    ``code`` is stable, such as ``FX0301``; ``name`` is its name, such as ``ShapeMismatch``; ``node`` and ``op`` say where it happened,
    ``help`` what to do.
    """

    def __init__(
        self,
        text: str,
        code: str,
        name: str,
        message: str,
        node: Optional[str],
        op: Optional[str],
        notes: List[str],
        help: Optional[str],
    ) -> None:
        super().__init__(text)
        self.code = code
        self.name = name
        self.message = message
        self.node = node
        self.op = op
        self.notes = notes
        self.help = help

    def __reduce__(self) -> Tuple[Any, ...]:
        parts = (self.code, self.name, self.message, self.node, self.op, self.notes, self.help)
        return (type(self), (self.args[0], *parts))


class ArchiveError(FxError):
    """A file is damaged, hostile, or of a kind that is not read here."""


class GraphError(FxError):
    """A graph breaks a rule, or an edit would."""


class OperatorError(FxError):
    """An operator refuses its arguments."""


class NotImplementedError(FxError, builtins.NotImplementedError):
    """An operator, a dtype or an option is not implemented."""


class WireError(FxError):
    """Bytes are not in the format of tracefx."""


class InputError(FxError):
    """Inputs break a constraint of the program."""


class UsageError(FxError):
    """An option is wrong, or a file cannot be read or written."""


class TraceError(FxError):
    """A trace cannot record what a function does."""


class ExportError(FxError):
    """A module cannot be exported."""


class RewriteError(FxError):
    """A pattern, a replacement or a pass does not hold."""


class EngineError(FxError):
    """Memory ran out, or the engine has a bug."""
