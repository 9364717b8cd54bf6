"""Third-party assets: checked, cut down, complete, and made once."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

from app import assets

LATIN_FONTS = ("serif.woff2", "serif-italic.woff2", "sans.woff2", "sans-semibold.woff2")


def font(name: str) -> TTFont:
    return TTFont(assets.VENDOR / name)


def test_a_package_with_another_digest_is_refused() -> None:
    with pytest.raises(assets.AssetRefused, match="was not used"):
        assets.checked(assets.HTMX, b"something else")


def test_what_is_complete_is_not_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this must work offline")

    monkeypatch.setattr(subprocess, "run", refuse)
    assert assets.is_complete(assets.VENDOR)
    assert assets.main() == 0


def test_a_package_that_cannot_be_fetched_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                           capsys: pytest.CaptureFixture[str]) -> None:
    def unreachable(*_: object) -> bytes:
        raise assets.AssetRefused("no network")

    monkeypatch.setattr(assets, "VENDOR", tmp_path)
    monkeypatch.setattr(assets, "build", unreachable)
    assert assets.main() == 1
    assert "no network" in capsys.readouterr().err


def test_a_broken_build_is_not_complete(tmp_path: Path) -> None:
    def unreachable(*_: object) -> bytes:
        raise assets.AssetRefused("no network")

    with pytest.raises(assets.AssetRefused):
        assets.build(tmp_path, unreachable)
    assert not assets.is_complete(tmp_path)


@pytest.mark.parametrize("name", LATIN_FONTS)
def test_text_fonts_have_the_letters_and_signs_of_the_pages(name: str) -> None:
    letters = font(name).getBestCmap()
    missing = [sign for sign in "AzÄß09.,:;×≠≤≥−–’“”…" if ord(sign) not in letters]
    assert missing == []


def test_a_cut_font_carries_no_reserved_name_and_keeps_its_licence() -> None:
    for name in LATIN_FONTS:
        records = {record.nameID for record in font(name)["name"].names}
        assert records <= {0, 13, 14}
        assert 13 in records
    assert "SIL OPEN FONT LICENSE" in (assets.VENDOR / "LICENSE-serif.txt").read_text().upper()


def test_the_math_font_still_stretches() -> None:
    math = font("math.woff2")
    assert "MATH" in math
    assert ord("𝑃") in math.getBestCmap()


def test_the_fonts_of_a_page_weigh_less_than_60_kilobytes() -> None:
    assert sum((assets.VENDOR / name).stat().st_size for name in (*LATIN_FONTS, "sans-digits.woff2")) < 60_000


def test_the_same_font_gives_the_same_bytes() -> None:
    small = assets.Letters("0123456789")
    whole = io.BytesIO()
    font("sans.woff2").save(whole)
    assert assets.cut_font(whole.getvalue(), small) == assets.cut_font(whole.getvalue(), small)
