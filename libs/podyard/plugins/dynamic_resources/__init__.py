"""DynamicResources: the claims for devices that a pod uses must exist. Pods without claims pass.

Never in here: choosing devices. A pod that has claims is refused with a reason that says so.
"""
