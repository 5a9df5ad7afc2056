"""What can go wrong, each with a sentence."""


class SluiceError(Exception):
    """All of this package's errors."""


class BrokerSilent(SluiceError):
    """No broker answered for the client's timeout."""


class Refused(SluiceError):
    """The broker did not take a request; nothing changed.

    reason: the refusal's name (docs/messages.md), such as "group-exists"; field: what is at fault, or
    None; retry_after: seconds after which to try again, where that can help, or None.
    """

    def __init__(self, text, reason, field=None, retry_after_ms=None):
        super().__init__(text)
        self.reason = reason
        self.field = field
        self.retry_after = None if retry_after_ms is None else retry_after_ms / 1000


class OtherLedger(SluiceError):
    """The broker has another ledger than before, in which the stream is shorter."""
