"""HTTP extenders: the calls that `podyard.framework.extenders` asks for, made.

Duty: kube-scheduler's extender protocol v1 over HTTP: filter, prioritize, preempt and bind, with each
extender's time limit and TLS. Never in here: a decision. What an answer means, and whether an extender may
fail, is the framework's business; here every failure is an answer with an `error`.
"""

from podyard.extenders.client import NO_CLIENTS, ExtenderClients, clients_of, described

__all__ = ["NO_CLIENTS", "ExtenderClients", "clients_of", "described"]
