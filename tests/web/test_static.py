"""Files of static/: kept for a year under the address that carries their hash, never stale."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.web.static import KEEP_A_YEAR, AssetsMissing, load_statics

STYLE = re.compile(r"/static/app\.css\?v=[0-9a-f]{16}")


def style_address(client: TestClient) -> str:
    found = STYLE.search(client.get("/").text)
    assert found is not None
    return found.group()


def test_a_file_under_its_current_hash_is_kept_for_a_year(client: TestClient) -> None:
    assert client.get(style_address(client)).headers["cache-control"] == KEEP_A_YEAR


@pytest.mark.parametrize("query", ["", "?v=0000000000000000"])
def test_a_file_under_another_address_is_asked_for_every_time(client: TestClient, query: str) -> None:
    response = client.get(f"/static/app.css{query}")
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-cache"


def test_a_browser_that_has_this_version_gets_no_body(client: TestClient) -> None:
    etag = client.get("/static/app.css").headers["etag"]
    again = client.get("/static/app.css", headers={"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")


def test_text_is_compressed_once_and_fonts_never(client: TestClient) -> None:
    style = client.get("/static/app.css", headers={"accept-encoding": "gzip"})
    assert style.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in client.get("/static/vendor/serif.woff2").headers
    assert "content-encoding" not in client.get("/static/app.css", headers={"accept-encoding": "identity"}).headers


@pytest.mark.parametrize("headers", [{"accept-encoding": "gzip"}, {"accept-encoding": "identity"}])
def test_a_cache_is_told_once_what_an_answer_depends_on(client: TestClient, headers: dict[str, str]) -> None:
    def vary(path: str, **more: str) -> list[str]:
        return client.get(f"/static/{path}", headers={**headers, **more}).headers.get_list("vary")

    etag = client.get("/static/app.css").headers["etag"]
    assert vary("app.css") == vary("app.css", **{"if-none-match": etag}) == ["Accept-Encoding"]
    assert vary("vendor/serif.woff2") == []


def test_fonts_in_a_style_sheet_carry_their_hash(client: TestClient) -> None:
    style = client.get("/static/app.css").text
    fonts = re.findall(r'url\("([^"]+)"\)', style)
    assert len(fonts) == 6
    for address in fonts:
        assert client.get(address).headers["cache-control"] == KEEP_A_YEAR


def test_every_font_that_a_page_loads_ahead_is_one_of_its_style_sheet(client: TestClient) -> None:
    ahead = re.findall(r'<link rel="preload" href="([^"]+)" as="font"', client.get("/").text)
    assert len(ahead) == 2
    assert set(ahead) <= set(re.findall(r'url\("([^"]+)"\)', client.get("/static/app.css").text))


@pytest.mark.parametrize("path", ["nothing.css", "../README.md", "%2e%2e/README.md", "vendor", "vendor/recipe.sha256", ""])
def test_nothing_but_the_files_of_static_is_served(client: TestClient, path: str) -> None:
    assert client.get(f"/static/{path}").status_code == 404


def test_without_vendor_the_site_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(AssetsMissing, match="make"):
        load_statics(tmp_path)


def test_the_compressed_form_is_the_file(tmp_path: Path) -> None:
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "recipe.sha256").touch()
    (tmp_path / "a.css").write_text("a { color: red }\n" * 50)
    (tmp_path / "small.css").write_text("a { color: red }")
    statics = load_statics(tmp_path)
    assert statics.url("a.css").startswith("/static/a.css?v=")
    with pytest.raises(KeyError):
        statics.url("b.css")
    file = statics._files["a.css"]
    assert file.gzipped is not None
    assert gzip.decompress(file.gzipped) == file.content
    assert statics._files["small.css"].gzipped is None
