"""What several test packages share, each thing once.

- `objects`   pods and nodes, as manifests or decoded
- `stored`    messages of CLUSTER, as their writers make them
- `stream`    the CLUSTER stream without a bus
- `cluster`   CLUSTER on a bus, as api, agents and the binder write it
- `services`  a service in this process
- `whole`     all services in this process, and a person
- `buses`     a bus on a real server or on the model of one
- `holding`   context managers for fixtures
- `lasting`   what takes long to start, one for many tests
- `spans`     a sink that keeps spans
- `story`     what the demo must say
- `waiting`   `eventually`
- `plays`     how property tests play, and one play again
- `kept`      what takes long to make, kept between runs
- `otlp_sink`, `extender_server`  who receives spans; an HTTP extender

Rules about scheduling never stand here, and nothing here is imported by the product.
"""
