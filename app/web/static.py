"""The files of static/: read once, hashed and compressed once, served from memory.

There are a dozen small ones. An address carries its file's hash (/static/app.css?v=3f2a...), so a browser may keep it for
a year and still never shows a stale one. Addresses inside style sheets get theirs when the file is read.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from app.errors import AppError, NotFound

STATIC_DIR = Path(__file__).resolve().parent.parent.parent / "static"
STYLE_ADDRESS = re.compile(r'url\("(?P<path>[^":#]+)"\)')
KINDS = {".css", ".js", ".svg", ".woff2", ".txt"}
COMPRESSED = {"text/css", "text/javascript", "image/svg+xml", "text/plain"}
SMALLEST_COMPRESSED = 800  # bytes; below, gzip saves nothing
KEEP_A_YEAR = "public, max-age=31536000, immutable"
ASK_EVERY_TIME = "no-cache"
mimetypes.add_type("font/woff2", ".woff2")
mimetypes.add_type("text/javascript", ".js")


class AssetsMissing(AppError):
    """static/vendor has not been made: pages would have no fonts and no htmx."""


class StaticFileNotFound(NotFound):
    """No file of static/ has this name."""

    kind = "file"


@dataclass(frozen=True)
class StaticFile:
    """One file as it is sent. `gzipped` is None where compressing gains nothing, as with fonts."""

    content: bytes
    gzipped: bytes | None
    media_type: str
    version: str


class Statics:
    """Every file of a folder by its path in it."""

    def __init__(self, files: Mapping[str, StaticFile]) -> None:
        self._files = files

    def url(self, path: str) -> str:
        """The address of a file, with its version. A template that names a file which is not there does not render."""
        return f"/static/{path}?v={self._files[path].version}"

    def response(self, request: Request, path: str) -> Response:
        """The file, compressed where the browser takes that; 304 where it already has this version."""
        file = self._files.get(path)
        if file is None:
            raise StaticFileNotFound(path)
        etag = f'"{file.version}"'
        current = request.query_params.get("v") == file.version
        headers = {"ETag": etag, "Cache-Control": KEEP_A_YEAR if current else ASK_EVERY_TIME}
        varying = headers if file.gzipped is None else {**headers, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=varying)
        if file.gzipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
            encoded = {**varying, "Content-Encoding": "gzip"}
            return Response(file.gzipped, media_type=file.media_type, headers=encoded)
        return Response(file.content, media_type=file.media_type, headers=headers)  # GZipMiddleware adds its Vary


def load_statics(folder: Path = STATIC_DIR) -> Statics:
    """Raises AssetsMissing where `python -m app.assets` has not been run."""
    if not (folder / "vendor" / "recipe.sha256").is_file():
        raise AssetsMissing("Fonts and htmx are missing. Run make, or python -m app.assets, once with a network.")
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in KINDS)
    files = {path.relative_to(folder).as_posix(): _read(path, path.read_bytes()) for path in paths}
    for path in (folder / name for name in list(files) if name.endswith(".css")):
        name = path.relative_to(folder).as_posix()
        files[name] = _read(path, _with_versions(files[name].content.decode(), files).encode())
    return Statics(files)


def _read(path: Path, content: bytes) -> StaticFile:
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    worthwhile = media_type in COMPRESSED and len(content) >= SMALLEST_COMPRESSED
    gzipped = gzip.compress(content, 9, mtime=0) if worthwhile else None
    return StaticFile(content, gzipped, media_type, hashlib.sha256(content).hexdigest()[:16])


def _with_versions(style: str, files: Mapping[str, StaticFile]) -> str:
    return STYLE_ADDRESS.sub(lambda found: f'url("/static/{found["path"]}?v={files[found["path"]].version}")', style)
