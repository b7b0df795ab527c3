"""The scheduling framework: what a plugin is, when it is asked, and how its answers become one decision.

Duty: the extension points of kube-scheduler v1.36.2 in vectorised form, profiles, one scheduling cycle over a
node table, the judgement of one pod on one node, cluster events and their registry.
Never in here: a plugin, I/O, a clock (times are arguments), logging, telemetry, the bus.

- `status`          what a plugin answers, and what the queue does next
- `cycle_state`     what plugins keep for themselves during one cycle
- `interfaces`      one small Protocol an extension point; `optional_hooks` what a plugin may have besides
- `pod_info`, `snapshot`   what a plugin is shown of the pod and of the cluster
- `answers`         what a plugin may answer; `faults` what plugins did amiss
- `profile`         plugins of a profile, by extension point, with weights and digest; `expansion` which
  those are
- `one_at_a_time`   plugins that prefer to look at one node at a time
- `prefilter`, `feasibility`, `scoring`, `cycle`   one scheduling cycle, shared by pods of equal signature
- `sharing`, `layers`, `score_layers`   which pods share results, and the results that they share
- `normalizing`     the normalisation that most Score plugins share
- `row_judge`       one pod on one row, with the pods counted that are to have room there
- `rivals`          who is to have room on which node, though not there yet
- `post_filtering`  PostFilter, when no node takes the pod
- `extenders`, `consulting`   HTTP extenders: what they are asked, and what a cycle makes of it
- `confirming`      Reserve and Permit; `volume_choices` what Reserve chose, on its way to PreBind
- `diagnosis`       why a pod fits nowhere: counts, examples and the reference's text; `grouping` its counts
- `details`         what stands in its way on the nearest node, with numbers and names, for people
- `rehearsal`       a cycle without an attempt, told of every node, for people
- `plugin_times`    what plugins took, and which looked at a pod, for metrics
- `permits`         pods that wait at Permit
- `one_node`        one pod on one node, for the binder
- `events`, `event_registry`   what wakes a parked pod; `hint_sharing` which parked pods share an answer
"""
