"""`azero web`: a board in the browser."""

import math

from tyro.conf import Positional


def web(
    players: Positional[tuple[str, ...]] = (),
    port: int | None = None,
    browser: bool = True,
    host: str = "127.0.0.1",
    token: str | None = None,
    visits_limit: int = 10_000,
    seconds_limit: float = 60.0,
) -> None:
    """Play, analyse and review games on a page in the browser, and watch runs learn.

    Args:
      players: what to play with: a network that ships (go9; azero models lists them), the directory
        of a run or of an exported network, or a player as azero match has them. The page lets you
        choose between several; default all that ship.
      port: of the page; default 8361, or a free one if that is taken.
      browser: open the page in your browser.
      host: the address to listen on. Any but this machine's own (127.0.0.1) needs a token.
      token: what visitors have to know; default a random one, which is printed, where it is needed.
      visits_limit: most visits of one search.
      seconds_limit: longest search in seconds.
    """
    from azero.engines.web.limits import WebLimits
    from azero.engines.web.serve import serve

    if visits_limit < 1 or not 0 < seconds_limit < math.inf:
        raise ValueError("--visits-limit is at least 1, and --seconds-limit a number above 0")
    if port is not None and not 0 <= port < 2**16:
        raise ValueError(f"--port is from 0 to 65535, not {port}")
    serve(
        players,
        host=host,
        port=port,
        token=token,
        opens_browser=browser,
        limits=WebLimits(visits=visits_limit, seconds=seconds_limit),
    )
