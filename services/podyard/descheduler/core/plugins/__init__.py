"""The descheduler's plugins, one module each; `podyard.descheduler.core.registry` lists them."""
