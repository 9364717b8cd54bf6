#!/usr/bin/env bash
# Gets what the tests need beside Python packages: a browser, and on CI a PostgreSQL server. As root it installs them with
# apt; otherwise it says what will be left out. With CI=true, leaving something out is a failure.
set -euo pipefail

left_out() {
  echo "Left out: $1"
  [ "${CI:-}" != true ]
}

apt_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

has_browser() {
  command -v chromium chromium-browser google-chrome >/dev/null 2>&1 ||
    compgen -G "$HOME/.cache/ms-playwright/chromium-*/chrome-linux*/chrome" >/dev/null
}

has_postgres() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null; }

if ! has_browser; then
  echo "No Chromium found; installing one."
  apt_install chromium fonts-dejavu-core || .venv/bin/python -m playwright install chromium ||
    left_out "browser tests. Install Chromium, or run '.venv/bin/python -m playwright install --with-deps chromium'."
fi
if ! has_postgres; then
  { [ "${CI:-}" = true ] && apt_install postgresql; } ||
    left_out "tests on PostgreSQL. Install a PostgreSQL server (its initdb is enough); CI=true installs it as root."
fi
