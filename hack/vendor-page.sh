#!/usr/bin/env bash
# Brings what the page in internal/gateway/page takes from npm, or with --check only holds what is there to its checksums.
# For other versions: change them here, run this, read what has changed, and commit.
set -euo pipefail
cd "$(dirname "$0")/../internal/gateway/page/ui/vendor"

if [ "${1:-}" != --check ]; then
  fresh=$(mktemp -d)
  trap 'rm -rf "$fresh"' EXIT
  # vendor PACKAGE VERSION FILE NAME copies a file of a package under another name, and the package's license.
  vendor() {
    (cd "$fresh" && rm -rf package && tar xzf "$(npm pack --silent "$1@$2")")
    cp "$fresh/package/$3" "$4"
    cp "$fresh/package/LICENSE" "${4%%.*}.LICENSE"
  }
  vendor markdown-it 15.0.3 dist/browser/markdown-it.esm.min.mjs markdown-it.esm.min.mjs
  vendor @highlightjs/cdn-assets 11.11.1 es/highlight.min.js highlight.min.mjs
  vendor temml 0.13.5 dist/temml.min.js temml.min.mjs
  echo 'export default temml;' >> temml.min.mjs
  vendor @mermaid-js/tiny 11.17.2 dist/mermaid.tiny.js mermaid.tiny.js
  sha256sum ./*.mjs ./*.js ./*.LICENSE | sed 's| \./| |' > SHA256SUMS
fi
sha256sum --check --quiet SHA256SUMS || {
  echo "What internal/gateway/page/ui/vendor has is not what npm had: run hack/vendor-page.sh, and change nothing there by hand." >&2
  exit 1
}
