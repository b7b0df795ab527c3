"""uvicorn's parts for HTTP/1.1, without its command line.

`import uvicorn` loads that, with click and what starts and watches processes of its own: a service that
serves a page now and then pays for none of it. So the package is not run while its parts are loaded; whoever
imports it afterwards gets it whole.
"""

import importlib.util
import sys

_PACKAGE = "uvicorn"
_is_loaded = _PACKAGE in sys.modules
if not _is_loaded:
    _spec = importlib.util.find_spec(_PACKAGE)
    assert _spec is not None, "it is a dependency"
    sys.modules[_PACKAGE] = importlib.util.module_from_spec(_spec)
try:
    from uvicorn.config import Config as Config
    from uvicorn.protocols.http.h11_impl import H11Protocol as H11Protocol
    from uvicorn.server import ServerState as ServerState
finally:
    if not _is_loaded:
        del sys.modules[_PACKAGE]
