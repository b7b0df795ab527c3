"""What people read: pure functions from data to rich renderables. No bus, no clock (pass `now`), no
printing."""
