"""One real host: what is left of it, who says that it is about to be too little, and its processes.

Duty: measures memory, file systems, processes and what each pod uses, as the kubelet counts it; wakes the
agent when memory runs out between two looks; runs containers as processes, each in a cgroup, and ends them.
Never in here: whether a pod is admitted, started again or evicted (the agent's core decides), anything about
the bus or about facts.

cgroups of version 1 (controllers mounted apart) and 2 (one tree). Everything takes the places where the
kernel shows itself as parameters: `root` (`/sys/fs/cgroup`), `proc` (`/proc`). What cannot be done raises
`errors.HostError`, whose text is a sentence: what, where, and what to do.

    node = hierarchies.checked(node_cgroup)              # "": the machine; else a cgroup with a memory limit
    hierarchy = hierarchies.find()                       # version 1 or 2; HostError if there are none
    readings = Readings(hierarchy, node, nodefs=state)   # HostError: the node cannot be read
    for sentence in readings.notes: ...                  # what is not measured, or not as one would think
    measured = await readings.read(now, processes.used()) # Measured; HostError says all that failed
    readings.layout()

    notifier = Notifier(hierarchy, node)                 # HostError: told at the start, polling instead
    notifier.watch(measured.memory, thresholds)          # after each reading; bytes that must be left
    why = await notifier.wait()                          # a sentence: look now

    async with Processes(hierarchy, node, state, tell=on_ended, now=clock.now) as processes:
        processes.found, processes.notes                 # what an earlier agent started, with its state
        await processes.limit_all(limits)                # of all pods: allocatableMemory.available
        await processes.make(pod, limits)                # cgroup and directory of a pod; again: other limits
        started = await processes.start(pod.uid, command) # NotStarted: the container ended before it began
        await processes.stop(pod.uid, grace_s)           # SIGTERM, grace, SIGKILL; again with less: sooner
        await processes.remove(pod.uid)                  # kills what is left; cgroup and directory are gone

`tell` is given an `Ended` for each container that was started, once, on the event loop. Those that ended
while no agent lived are in `found`, and not told. The limits of a pod that was found hold as they were; after
a restart of the machine they are gone: `make` it again.

Modules: `errors`, `files` (reads and writes of the kernel's files), `hierarchies` (where cgroups are),
`groups` (what one cgroup uses), `limits` (what it may use), `machine` (what the machine has), `disks` (file
systems and directories), `readings`, `notifier`, `records` (values), `store` (what the runtime keeps on
disk), `processes`, `starting` (launchers), and `launcher`, the small process that stays with each container.
"""
