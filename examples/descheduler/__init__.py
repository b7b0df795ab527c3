"""Plugins of the descheduler as a user writes them: `retiring_nodes` evicts, `quiet_hours` says who may go.
`policy.yaml` enables them as `package.module:Class`."""
