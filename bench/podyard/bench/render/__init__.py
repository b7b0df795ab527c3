"""What people read of measurements: pure functions from data to rich renderables and pictures. No bus, no
clock, no printing."""
