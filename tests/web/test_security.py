"""What stands before the routes: headers on every answer, no request from another site, no oversized body."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.datastructures import Headers

from app.web.security import MAX_BODY_BYTES, MAX_QUERY_BYTES, is_same_origin
from tests.web.routes import addresses
from tests.web.sites import LESSON, make_app

HERE = "http://testserver"
SAME = [
    {},
    {"sec-fetch-site": "same-origin"},
    {"sec-fetch-site": "none"},
    {"sec-fetch-site": "same-origin", "origin": HERE},
    {"sec-fetch-site": "same-origin", "origin": "https://testserver"},
    {"origin": HERE},
    {"origin": "HTTP://TESTSERVER"},
    {"referer": f"{HERE}/lessons/split-three-ways?volume.P=8"},
    {"origin": HERE, "referer": "http://elsewhere.example/"},
]
CROSS = [
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": ""},
    {"sec-fetch-site": "SAME-ORIGIN"},
    {"sec-fetch-site": "cross-site", "origin": HERE},
    {"sec-fetch-site": "same-origin", "origin": "http://elsewhere.example"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://elsewhere.example"},
    {"origin": "http://testserver.elsewhere.example"},
    {"origin": "http://elsewhere.example/testserver"},
    {"origin": "http://testserver@elsewhere.example"},
    {"origin": "http://elsewhere.example#testserver"},
    {"origin": "http://testserver:8000"},
    {"origin": "http://testserver."},
    {"origin": "http://sub.testserver"},
    {"origin": "ftp://testserver"},
    {"origin": "testserver"},
    {"origin": "//testserver"},
    {"origin": "http://[::1"},
    {"origin": "http://elsewhere.example", "referer": f"{HERE}/"},
    {"referer": "http://elsewhere.example/testserver"},
    {"referer": "about:blank"},
    {"referer": "http://testserver@elsewhere.example/"},
]


OURS = ["127.0.0.1", "127.0.0.1:8000", "127.8.0.1", "localhost:8000", "LOCALHOST", "a.localhost", "[::1]:8000", "[::1]",
        "course.example.org", "Course.Example.org:443"]
NOT_OURS = ["elsewhere.example", "elsewhere.example:8000", "localhost.elsewhere.example", "127.0.0.1.elsewhere.example",
            "elsewhere.example@localhost", "localhost@elsewhere.example", "localhost/elsewhere", "notlocalhost", "10.0.0.1",
            "course.example.org.", "x.course.example.org", "[::1", "[::2]", "", "0.0.0.0"]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """A site that answers under one name beside the machine's own."""
    app = make_app(tmp_path_factory.mktemp("named"), hosts="course.example.org")
    yield app
    app.state.site.database.close()


@pytest.mark.parametrize("host", OURS)
def test_a_request_for_one_of_our_names_is_answered(named: FastAPI, host: str) -> None:
    assert TestClient(named).get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", NOT_OURS)
def test_a_request_for_any_other_name_is_refused(named: FastAPI, host: str) -> None:
    """Whoever owns that name could make it lead here, and their page would pass for ours."""
    client = TestClient(named)
    question = f"{LESSON}/checkpoints/eight-gpus"
    for method, address in [("GET", LESSON), ("GET", "/api/predict/data_parallel"), ("POST", question)]:
        assert client.request(method, address, headers={"host": host}, data={"answer": "56"}).status_code == 421


def test_on_all_addresses_any_name_is_answered_until_somebody_names_them(tmp_path: Path) -> None:
    app = make_app(tmp_path, host="0.0.0.0", hosts="")
    assert TestClient(app).get("/healthz", headers={"host": "box.example.org:8000"}).status_code == 200
    app.state.site.database.close()


def multiple(*pairs: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.encode(), value.encode()) for name, value in (("host", "testserver"), *pairs)])


@pytest.mark.parametrize("headers", SAME)
def test_our_own_forms_and_command_lines_are_same_origin(headers: dict[str, str]) -> None:
    assert is_same_origin(Headers({"host": "testserver", **headers}))


@pytest.mark.parametrize("headers", CROSS)
def test_whatever_names_another_site_is_not_same_origin(headers: dict[str, str]) -> None:
    assert not is_same_origin(Headers({"host": "testserver", **headers}))


@pytest.mark.parametrize("pairs", [
    [("origin", HERE), ("origin", "http://elsewhere.example")],
    [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
    [("referer", f"{HERE}/"), ("referer", "http://elsewhere.example/")],
])
def test_a_repeated_header_must_agree_with_itself(pairs: list[tuple[str, str]]) -> None:
    assert not is_same_origin(multiple(*pairs))


def unsafe(app: FastAPI) -> Iterator[tuple[str, str]]:
    return ((method, address) for method, address in addresses(app) if method not in ("GET", "HEAD"))


def test_every_unsafe_route_refuses_every_cross_site_request(web_app: FastAPI, client: TestClient) -> None:
    routes = list(unsafe(web_app))
    assert routes
    for method, address in routes:
        for headers in CROSS:
            response = client.request(method, address, headers=headers, data={"answer": "56"})
            assert response.status_code == 403, (method, address, headers)
            assert "set-cookie" not in response.headers


def test_every_answer_says_what_a_browser_may_do_with_it(web_app: FastAPI, client: TestClient) -> None:
    for method, address in [*addresses(web_app), ("GET", "/nothing"), ("PUT", "/"), ("POST", "/theme")]:
        headers = client.request(method, address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy, address
        assert "script-src 'self';" in policy
        assert "style-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert len(headers["x-request-id"]) == 16


def test_head_is_answered_with_the_headers_of_get_and_no_body(web_app: FastAPI, client: TestClient) -> None:
    for method, address in addresses(web_app):
        if method == "GET":
            got, head = client.get(address), client.head(address)
            assert head.status_code == got.status_code, address
            assert head.headers.get("content-type") == got.headers.get("content-type")
            assert head.content == b""


def test_no_page_has_inline_script_style_or_handler(client: TestClient) -> None:
    for address in ("/", LESSON, "/me", "/nothing"):
        html = client.get(address).text
        assert not re.search(r"<style|<script>|\s(style|on[a-z]+)=", html), address


def test_a_body_of_more_than_a_megabyte_is_refused_where_its_length_is_declared(client: TestClient) -> None:
    response = client.post(f"{LESSON}/checkpoints/eight-gpus", data={"answer": "5" * MAX_BODY_BYTES})
    assert response.status_code == 413
    assert "too much" in response.text


def test_a_body_of_more_than_a_megabyte_is_refused_while_it_arrives(client: TestClient) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"answer="
        for _ in range(11):
            yield b"5" * 100_000

    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post(f"{LESSON}/checkpoints/eight-gpus", content=chunks(), headers=headers).status_code == 413


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
@pytest.mark.parametrize("address", [LESSON, "/figures/volume", "/", "/me"])
def test_a_query_that_no_page_makes_comes_back_once_at_most(
    client: TestClient, address: str, headers: dict[str, str]
) -> None:
    """Lessons repeat their query in every form, so that a long one would come back many times over."""
    query = "&".join(f"volume.{number:x}=" for number in range(MAX_QUERY_BYTES // 10))
    response = client.get(f"{address}?{query}", headers=headers)
    assert response.status_code == 422
    assert "This address is too long" in response.text
    assert len(response.content) < 2 * len(query) + 10_000


@pytest.mark.parametrize("length", ["-1", "ten", "1" * 40])
def test_a_length_that_is_no_length_is_refused(client: TestClient, length: str) -> None:
    assert client.post("/theme", content=b"", headers={"content-length": length}).status_code == 413


def test_a_get_changes_nothing_in_the_database(web_app: FastAPI, client: TestClient) -> None:
    file = web_app.state.site.database.file
    client.post(f"{LESSON}/checkpoints/eight-gpus", data={"answer": "56"})
    before = file.read_bytes()
    for method, address in addresses(web_app):
        if method == "GET" and address != "/readyz":  # its purpose is to write
            client.get(address)
    assert file.read_bytes() == before
