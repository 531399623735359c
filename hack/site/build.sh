#!/usr/bin/env bash
# Builds the site of the documentation: OUT/VERSION, and the same in OUT for links without a version. Other versions in OUT
# stay, and OUT/versions.html lists all.
# usage: build.sh VERSION OUT
set -euo pipefail
version=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$(dirname "$0")"

command -v hugo >/dev/null || { echo "site: hugo is not in PATH: install your system's package" >&2; exit 1; }
rm -rf "${out:?}/$version"
HUGO_PARAMS_VERSION=$version hugo --quiet --destination "$out/$version" --cacheDir "$out/.cache"
rm -rf "$out/.cache"
cp -r "$out/$version/." "$out/"
{
  printf '<!doctype html><title>Versions</title><ul>\n'
  for folder in "$out"/v[0-9]*/; do
    [ -d "$folder" ] || continue
    name=$(basename "$folder")
    printf '<li><a href="%s/">%s</a></li>\n' "$name" "$name"
  done
  printf '</ul>\n'
} >"$out/versions.html"
