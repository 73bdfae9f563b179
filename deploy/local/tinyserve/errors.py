"""The one exception: something the person who started the server can put right."""


class ServeError(Exception):
    """One sentence that says what was found and what to do; printed without a traceback, exit status 2."""
