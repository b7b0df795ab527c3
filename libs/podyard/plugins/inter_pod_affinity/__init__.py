"""InterPodAffinity: pods near other pods, or apart from them.

    terms           one pod's terms, compiled
    placed_terms    the index of all placed pods' terms; domain_counts: pods by topology domain
    incoming        the pod to be scheduled, its terms resolved
    filtering, scoring, hints    the rules; plugin: the extension points
    obstacles, own_hints         why it rejects, and what helps then that the reference does not know of

Nothing here goes through pods one by one when a pod is judged: what a cycle needs is kept up to date as pods
come and go.
"""
