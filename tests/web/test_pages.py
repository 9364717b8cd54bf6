"""Pages as anybody gets them: the map, a lesson, the theme, and what they say where runs are off."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.web.theme import local_address
from tests.web.sites import LESSON, make_app


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    app = make_app(tmp_path_factory.mktemp("no-torch"), runs=False)
    yield app
    app.state.site.database.close()


def test_the_map_names_eleven_lessons_and_opens_those_that_are_there(client: TestClient) -> None:
    page = client.get("/").text
    assert page.count('class="i"') == 11
    assert 'href="/lessons/split-three-ways"' in page
    assert "/lessons/choosing" not in page
    assert "Begin with lesson 1" in page


def test_a_lesson_that_is_coming_cannot_be_opened(client: TestClient) -> None:
    response = client.get("/lessons/choosing")
    assert response.status_code == 404
    assert "The lesson Choosing is still being written." in response.text
    assert 'href="/lessons/split-three-ways"' in response.text


def test_a_lesson_has_its_seven_sections_in_order(client: TestClient) -> None:
    page = client.get(LESSON).text
    slugs = ["hook", "intuition", "formalize", "play", "worked-example", "checkpoint", "summary"]
    places = [page.index(f'<section id="{slug}">') for slug in slugs]
    assert places == sorted(places)


def test_a_lesson_keeps_the_values_of_its_address(client: TestClient) -> None:
    page = client.get(f"{LESSON}?volume.P=8").text
    assert 'name="volume.P" value="8"' in page
    assert 'name="volume.P" value="4"' in client.get(LESSON).text


def test_an_address_with_a_value_that_no_figure_takes_is_refused_with_a_message_beside_the_field(client: TestClient) -> None:
    response = client.get(f"{LESSON}?volume.P=99")
    assert response.status_code == 422
    assert "must be a whole number from 1 to 64" in response.text


def test_pages_are_for_no_shared_cache(client: TestClient) -> None:
    assert client.get(LESSON).headers["cache-control"] == "private, no-cache"


def test_pages_are_compressed(client: TestClient) -> None:
    assert client.get(LESSON).headers["content-encoding"] == "gzip"


def test_every_local_link_of_a_page_leads_somewhere(client: TestClient) -> None:
    for page in ("/", LESSON, "/me", "/nothing"):
        html = client.get(page).text
        for address in set(re.findall(r'(?:href|src|action)="(/[^"#]*)', html)):
            response = client.get(address.replace("&amp;", "&"))
            assert response.status_code in (200, 303, 405), address
        anchors = set(re.findall(r'href="#([^"]+)"', html)) - {"world", "m-data", "m-tensor", "m-pipeline", "m-shard"}
        for anchor in anchors:
            assert f'id="{anchor}"' in html, anchor


def test_no_page_uses_an_id_twice(client: TestClient) -> None:
    for page in ("/", LESSON, "/me", "/nothing"):
        ids = re.findall(r'\sid="([^"]+)"', client.get(page).text)
        assert sorted(ids) == sorted(set(ids)), page


def test_with_torch_a_lesson_offers_the_run(client: TestClient) -> None:
    page = client.get(LESSON).text
    assert "Run it for real" in page
    assert "Runs are off" not in page


def test_without_torch_the_lessons_are_served_say_that_runs_are_off_and_how_a_shell_measures(without_torch: FastAPI) -> None:
    page = TestClient(without_torch).get(LESSON)
    assert page.status_code == 200
    assert "Runs are off on this server: it was installed without PyTorch" in page.text
    assert "worldsize measure data_parallel -P 4 -L 2 -H 4 -T 1" in page.text
    assert "Run it for real" not in page.text


def test_the_theme_is_chosen_without_a_script_and_leads_back(client: TestClient) -> None:
    assert "data-theme" not in client.get("/").text
    response = client.post("/theme", data={"theme": "dark", "next": f"{LESSON}?volume.P=8"})
    assert (response.status_code, response.headers["location"]) == (303, f"{LESSON}?volume.P=8")
    assert '<html lang="en" data-theme="dark">' in client.get("/").text
    client.post("/theme", data={"theme": "system"})
    assert "data-theme" not in client.get("/").text


def test_a_theme_that_is_none_is_refused_and_a_cookie_of_one_is_ignored(client: TestClient) -> None:
    assert client.post("/theme", data={"theme": "red"}).status_code == 422
    assert "data-theme" not in client.get("/", headers={"cookie": 'theme="><script>'}).text


@pytest.mark.parametrize("elsewhere", ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "",
                                       "evil.example", "/\n//evil.example", "/\tevil", "\\\\evil.example"])
def test_the_way_back_never_leads_to_another_site(elsewhere: str) -> None:
    assert local_address(elsewhere) == "/"


def test_the_way_back_keeps_a_local_address() -> None:
    assert local_address("/lessons/split-three-ways?volume.P=8#play") == "/lessons/split-three-ways?volume.P=8#play"


def test_markup_in_an_address_is_shown_as_text(client: TestClient) -> None:
    for address in ("/lessons/<script>alert(1)</script>", f"{LESSON}?volume.P=<script>alert(1)</script>",
                    f"{LESSON}?<script>=1", f"{LESSON}?try.eight-gpus=<script>"):
        assert "<script>" not in client.get(address).text
