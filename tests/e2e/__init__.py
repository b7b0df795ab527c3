"""The services as processes: one lab for all tests that need nothing else (`conftest.here`), for others one of their own."""
