"""What cannot be done on a host."""


class HostError(Exception):
    """The text is a sentence for people: what could not be done, where, and what to do."""


class NotStarted(HostError):
    """A container ended before its command ran.

    Reason and exit code are what containerd says: StartError, 128.
    """

    reason = "StartError"
    code = 128
