"""The services as processes: one lab (`conftest.here`), for tests that need something else one of their
own."""
