"""The demo: a story in ten steps, each of which counts only when it is seen in what the services stored.

Duty: play real manifests and events through the services' public doors, and read back what they did. Never in
here: a step that is taken as done because a request was accepted, or knowledge of a service's inside.

- `manifests/`  the Kubernetes manifests of the story
- `evidence`    everything the services store, as it comes, and waiting for it
- `actions`     what a person would do: apply, delete, publish signals
- `story`       the steps: do something, see what it led to
- `theatre`     the lab that it is played in; `afresh` takes away what an earlier telling left
- `stage`       the demo on a terminal
"""
