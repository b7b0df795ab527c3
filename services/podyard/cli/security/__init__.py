"""The trust boundary as files: who may do what on NATS, the keys and certificates for it, the servers'
configuration.

Duty: one table of identities (`identities`), turned into NATS accounts (`accounts`), key files (`keys`,
`authority`) and a directory with all of it (`directory`); streams and mirrors made by their administrators
(`mirrors`); what an older release did not make (`completing`); by what the Kubernetes API is served
(`kube_files`); keys replaced while everything works: the files (`rotation`, of the authority `succession`),
the servers (`servers`), the order of both (`rotating`). Never in here: a secret in what is printed, logged or
raised; a file that others may read; a directory overwritten; a key taken away before its successor works.

Three accounts, because permissions alone do not protect a stream from a user of its own account:

- CORE  the services, and the streams that they write. Permissions inside stop mistakes, not a hostile
  service.
- EDGE  people, bridges, node agents. No JetStream of its own. It writes into CORE only through single
  exported subjects.
- READ  mirrors of CORE's streams, which EDGE reads. A reader names the subject to which a consumer delivers,
  and nobody checks that subject; so consumers live where no subject leads into CORE but those that steer the
  mirrors themselves.
"""
