"""Traces as Jaeger's query API tells them.

Reads only: HTTP requests to `PODYARD_JAEGER_URL`. Never asks the bus: what is not in Jaeger is not here.
"""
