"""DefaultBinder: the binder itself writes the binding."""
