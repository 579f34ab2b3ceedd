"""Access control: checks of the Host and Origin headers, the token, and the headers of every
response."""

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote, unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names of this machine; a page of another site reaches the server only under another name (DNS
rebinding)."""
COOKIE = "azero_token"
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
"""The charts of a run carry style attributes; the address may carry the token."""


class Refusal(Exception):
    """A request that is not carried out; the message is one plain sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Guard:
    """Middleware that passes allowed requests to the application, and refuses others with one
    sentence of JSON."""

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        """Guard `app`; with a `token` any host name is allowed, because only visitors know it."""
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            given = self._check(scope)
        except Refusal as refusal:
            answer = JSONResponse({"error": str(refusal)}, refusal.status)
            await answer(scope, receive, send_with_headers)
            return
        if given is not None:
            # The token would stay in the browser's history.
            cookie = f"{_cookie_name(scope)}={quote(given, safe='')}"
            redirect = RedirectResponse(
                "/" + scope["path"].lstrip("/"),
                303,
                {"set-cookie": f"{cookie}; Path=/; HttpOnly; SameSite=Strict"},
            )
            await redirect(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> str | None:
        """Return the token if it is in the address, which then becomes a cookie.

        Raises:
          Refusal: the request is not answered.
        """
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._token is None and _name(host) not in LOOPBACK:
            raise Refusal(421, "this server answers only to the names of its own machine")
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise Refusal(403, "requests from pages of other sites are refused")
        if headers.get("sec-fetch-site") == "cross-site" and scope["method"] != "GET":
            raise Refusal(403, "requests from pages of other sites are refused")
        if self._token is None:
            return None
        in_address = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])
        if scope["method"] == "GET" and self._is_token(in_address[0]):
            return in_address[0]
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if self._is_token(bearer) or self._is_token(_cookie(headers, _cookie_name(scope))):
            return None
        raise Refusal(401, "open the address with the token that azero web has printed")

    def _is_token(self, given: str) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given.encode(), self._token.encode())


def _name(host: str) -> str:
    """Return the name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _cookie_name(scope: Scope) -> str:
    """Return the cookie's name, which has the server's port: a browser sends the cookies of one
    server to all servers of the machine."""
    return f"{COOKIE}_{scope['server'][1]}"


def _cookie(headers: Headers, name: str) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if morsel is None else unquote(morsel.value)
