#!/usr/bin/env bash
# Brings what the page in internal/gateway/page takes from npm, or with --check only holds what is there to its checksums.
# For another version: change it here, run this, read what has changed, and commit.
set -euo pipefail
cd "$(dirname "$0")/../internal/gateway/page/ui/vendor"

version=15.0.3
if [ "${1:-}" != --check ]; then
  fresh=$(mktemp -d)
  trap 'rm -rf "$fresh"' EXIT
  (cd "$fresh" && npm pack --silent "markdown-it@$version" && tar xzf "markdown-it-$version.tgz")
  cp "$fresh/package/dist/browser/markdown-it.esm.min.mjs" .
  cp "$fresh/package/LICENSE" markdown-it.LICENSE
  sha256sum markdown-it.esm.min.mjs markdown-it.LICENSE > SHA256SUMS
fi
sha256sum --check --quiet SHA256SUMS || {
  echo "What internal/gateway/page/ui/vendor has is not what npm had: run hack/vendor-page.sh, and change nothing there by hand." >&2
  exit 1
}
