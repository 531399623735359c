#!/usr/bin/env bash
# Prints the size of the project by what Git tracks: lines of the product and of its tests, and words of documentation.
set -euo pipefail
cd "$(dirname "$0")/.."

tests='(_test\.go|\.test\.tsx?)$|^test/'
generated='(^|/)zz_generated[^/]*\.go$'
vendored='^internal/gateway/page/ui/vendor/'

# lines and words count what the files named on the standard input have.
lines() { xargs -r -d '\n' cat | wc -l; }
words() { xargs -r -d '\n' cat | wc -w; }
# tracked prints the tracked files whose names match the first expression and not the second.
tracked() { git ls-files | grep -E "$1" | grep -vE "$2" || true; }

product="$tests|^hack/|$generated|$vendored"
page='^internal/gateway/page/ui/'
generated_docs='^docs/reference/(status|tools|errors)\.md$'
decisions='^docs/decisions/'
row() { printf '%-58s %7d %s\n' "$1" "$2" "$3"; }

row 'product: Go without tests, test/, hack/, zz_generated*' "$(tracked '\.go$' "$product" | lines)" lines
row 'product: CSS and JavaScript of the page without vendor/' "$(tracked "$page.*\.(css|m?js)$" "$product" | lines)" lines
row 'product: TypeScript of plugins/headlamp' "$(tracked '^plugins/.*\.tsx?$' "$product" | lines)" lines
row 'tests: Go tests, Go in test/' "$(tracked "$tests" '^hack/' | grep '\.go$' | lines)" lines
row 'tests: TypeScript of plugins/headlamp' "$(tracked '\.test\.tsx?$' '^hack/' | lines)" lines
row 'tools: Go in hack/ with its tests' "$(tracked '^hack/.*\.go$' "$generated" | lines)" lines
row 'generated: zz_generated*.go' "$(tracked "$generated" '^$' | lines)" lines
row 'docs: docs/ without the next two, README, CONTRIBUTING' \
  "$(tracked '^(docs/.*|README|CONTRIBUTING)\.md$' "$generated_docs|$decisions" | words)" words
row 'docs: decisions' "$(tracked "$decisions" '^$' | words)" words
row 'docs: generated' "$(tracked "$generated_docs" '^$' | words)" words
