"""Fetches the third-party assets of the pages: `python -m app.assets`, called by make.

htmx and the fonts come out of registry packages, so pip is all that is needed, and nothing of theirs is committed. A
package's file must have the sha256 written here. Fonts are cut down to the letters that the pages use. When everything
is in place and this recipe has not changed, nothing is fetched and nothing is written: later starts work offline.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

VENDOR = Path(__file__).parent.parent / "static" / "vendor"
STAMP = "recipe.sha256"
FONT_TOOLS = ("fonttools==4.68.0", "brotli==1.2.1")


@dataclass(frozen=True)
class Package:
    """A wheel on the registry, and the digest that its file must have."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class Letters:
    """What is kept of a font: code points, layout features, and whether the MATH table is wanted."""

    text: str
    ranges: tuple[tuple[int, int], ...] = ()
    features: tuple[str, ...] = ("kern", "liga", "tnum", "lnum")

    def unicodes(self) -> list[int]:
        in_ranges = {code for first, last in self.ranges for code in range(first, last + 1)}
        return sorted(in_ranges | {ord(letter) for letter in self.text})


@dataclass(frozen=True)
class Asset:
    """One file of static/vendor: which member of which package it is made from, and how."""

    file: str
    package: Package
    member: str
    letters: Letters | None = None  # None: taken as it is


HTMX = Package("django-htmx", "1.29.0", "0ec5be1645ed71e6787bd75e0250624f00274ac3bb1730f07b6629a95688929b")
SERIF = Package("font-source-serif-pro", "0.0.1", "38dd9a8d8027d22aa8ef2d10d27d7c558701b32772ff9f3790f509577e91dca4")
SANS = Package("font-source-sans-pro", "0.0.1", "2250396f565a0fea35726e56059216d1d5d75071d64d075ebdfec183b4b85765")
MATH = Package("ziamath", "0.13", "67a9b9714101fc90c2d6d0328e578f3ac311fb007644f2bbb9314ba2bc1c1459")

LATIN = Letters(text="‐‑–—‘’‚“”„•…′″←↑→↓−×÷≈≠≤≥\u2009\u202f", ranges=((0x20, 0x7E), (0xA0, 0xFF)))
DIGITS = Letters(text="0123456789., =≠−")
# Upright letters and digits, Greek, the italic letters that <mi> turns into, operators, and the brackets that stretch.
FORMULA = Letters(
    text="‖…′″⁄∂∇∏∑−∓∗∘√∝∞∣∥∧∨∩∪∫∼≈≠≡≤≥≪≫⊂⊆⊕⊗⋅⋯⌈⌉⌊⌋⟨⟩⏞⏟ℎ←↑→↓↔⇒⇔∀∃∈∉\u2061\u2062\u2063",
    ranges=((0x20, 0x7E), (0xA0, 0xFF), (0x391, 0x3C9), (0x1D434, 0x1D467), (0x1D6E2, 0x1D71B)),
    features=("kern", "ssty", "dtls", "flac"),
)

_SERIF_FILES = "font_source_serif_pro/files"
_SANS_FILES = "font_source_sans_pro/files"
ASSETS = (
    Asset("htmx.min.js", HTMX, "django_htmx/static/django_htmx/htmx-2.min.js"),
    Asset("serif.woff2", SERIF, f"{_SERIF_FILES}/SourceSerifPro-Regular.ttf", LATIN),
    Asset("serif-italic.woff2", SERIF, f"{_SERIF_FILES}/SourceSerifPro-It.ttf", LATIN),
    Asset("sans.woff2", SANS, f"{_SANS_FILES}/SourceSansPro-Regular.ttf", LATIN),
    Asset("sans-semibold.woff2", SANS, f"{_SANS_FILES}/SourceSansPro-Semibold.ttf", LATIN),
    Asset("sans-digits.woff2", SANS, f"{_SANS_FILES}/SourceSansPro-Light.ttf", DIGITS),
    Asset("math.woff2", MATH, "ziamath/fonts/STIXTwoMath-Regular.ttf", FORMULA),
    Asset("LICENSE-serif.txt", SERIF, f"{_SERIF_FILES}/LICENSE.txt"),
    Asset("LICENSE-sans.txt", SANS, f"{_SANS_FILES}/LICENSE.txt"),
)
NOTICES = """Files in this folder and their licences. All were taken from packages on the Python registry.

htmx.min.js: htmx 2.0.10, copyright Big Sky Software, Zero-Clause BSD licence: permission to use, copy, modify and/or
  distribute this software for any purpose with or without fee is hereby granted. The software is provided "as is".
serif.woff2, serif-italic.woff2: cut down from Source Serif Pro, copyright Adobe, SIL Open Font License 1.1, in
  LICENSE-serif.txt. "Source" is a reserved font name: these files carry another.
sans.woff2, sans-semibold.woff2, sans-digits.woff2: the same from Source Sans Pro, in LICENSE-sans.txt.
math.woff2: cut down from STIX Two Math, copyright 2001-2020 The STIX Fonts Project Authors
  (https://github.com/stipub/stixfonts), SIL Open Font License 1.1: https://scripts.sil.org/OFL
"""


class AssetRefused(Exception):
    """A package could not be fetched, or is not the one this file names."""


def recipe() -> str:
    """The digest of this file: another version, letter or package means that the assets are made anew."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def is_complete(vendor: Path) -> bool:
    """Whether every asset is there and was made by this recipe."""
    stamp = vendor / STAMP
    return stamp.is_file() and stamp.read_text() == recipe() and all((vendor / asset.file).is_file() for asset in ASSETS)


def download(package: Package, folder: Path) -> bytes:
    """The wheel's bytes, checked. pip brings it, so mirrors and proxies configured for pip are used."""
    pip("download", "--no-deps", "--only-binary=:all:", "--dest", str(folder), f"{package.name}=={package.version}")
    [wheel] = folder.glob(f"{package.name.replace('-', '_')}-{package.version}-*.whl")
    return checked(package, wheel.read_bytes())


def pip(*arguments: str) -> None:
    """Runs pip with what it says kept back, unless it fails."""
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    if finished.returncode != 0:
        why = f"This failed: pip {' '.join(arguments)}. Check the network and run make again."
        raise AssetRefused(f"{finished.stderr.strip()}\n{why}")


def checked(package: Package, wheel: bytes) -> bytes:
    """The same bytes, or AssetRefused."""
    found = hashlib.sha256(wheel).hexdigest()
    if found != package.sha256:
        raise AssetRefused(f"{package.name} {package.version} has sha256 {found}, not {package.sha256}: it was not used.")
    return wheel


def cut_font(font: bytes, letters: Letters) -> bytes:
    """The font with these letters only, as WOFF2.

    A trimmed font counts as modified, and a modified one may not carry a reserved name: of the name table only copyright
    (0) and licence (13, 14) stay. Timestamps are left alone, so the same font gives the same bytes.
    """
    from fontTools import subset  # type: ignore[import-untyped]  # brought by `font_tools`; the web process never loads it

    options = subset.Options(flavor="woff2", hinting=False, layout_features=list(letters.features), name_IDs=[0, 13, 14],
                             notdef_outline=True, recalc_timestamp=False)
    loaded = subset.load_font(io.BytesIO(font), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=letters.unicodes())
    subsetter.subset(loaded)
    cut = io.BytesIO()
    subset.save_font(loaded, cut, options)
    return cut.getvalue()


@contextmanager
def font_tools() -> Iterator[None]:
    """fontTools and brotli: those installed, else pinned ones in a folder that is gone afterwards."""
    if importlib.util.find_spec("fontTools") and importlib.util.find_spec("brotli"):
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        pip("install", "--target", folder, *FONT_TOOLS)
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)


def build(vendor: Path, fetch: Callable[[Package, Path], bytes] = download) -> list[str]:
    """Makes every asset in `vendor` and returns their names. The stamp is written last, so a broken build is made again."""
    vendor.mkdir(parents=True, exist_ok=True)
    (vendor / STAMP).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wheels = {package: fetch(package, Path(folder)) for package in dict.fromkeys(asset.package for asset in ASSETS)}
    with font_tools():
        _make_all(vendor, wheels)
    _write(vendor / "NOTICES.txt", NOTICES.encode())
    _write(vendor / STAMP, recipe().encode())
    return [asset.file for asset in ASSETS]


def _make_all(vendor: Path, wheels: Mapping[Package, bytes]) -> None:
    for asset in ASSETS:
        with zipfile.ZipFile(io.BytesIO(wheels[asset.package])) as wheel:
            taken = wheel.read(asset.member)
        _write(vendor / asset.file, taken if asset.letters is None else cut_font(taken, asset.letters))


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all: a server that starts meanwhile never reads half a file."""
    beside = path.with_suffix(path.suffix + ".new")
    beside.write_bytes(content)
    os.replace(beside, path)


def main(arguments: Sequence[str] = ()) -> int:
    if is_complete(VENDOR) and "--force" not in arguments:
        return 0
    try:
        made = build(VENDOR)
    except AssetRefused as error:
        print(error, file=sys.stderr)
        return 1
    print(f"static/vendor: {', '.join(made)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
