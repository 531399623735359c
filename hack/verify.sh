#!/usr/bin/env bash
# Fails if a generated file or go.mod is not what its generator makes of the sources. Changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

# Nothing here lives long: collecting garbage takes a seventh of the time of the compiler.
export GOGC=off GOMEMLIMIT=3GiB
fresh=$(mktemp -d)
trap 'kill "${modules:-}" 2>/dev/null || true; rm -rf "$fresh"' EXIT
cp -r api config "$fresh/"
# With empty caches this waits for downloads. What is compiled meanwhile needs the processors.
check_modules() {
  local module
  for module in . test/archive test/signin test/gitops test/dashboards hack/localcluster hack/localcluster/binaries hack/agent-sandbox hack/tools hack/release; do
    (cd "$module" && go mod tidy -diff) || { echo "$module/go.mod is not tidy: run \"go mod tidy\" in $module" >&2; return 1; }
  done
}
check_modules &
modules=$!
# "go tool" would compile it, and all that it imports, with other flags.
generator=sigs.k8s.io/controller-tools/cmd/controller-gen
go run $generator object:headerFile=hack/boilerplate.go.txt paths=./api/... output:object:dir="$fresh/api/v1beta1"
go run $generator crd:allowDangerousTypes=true paths=./api/... output:crd:dir="$fresh/config/crd/bases"
if ! diff -r api "$fresh/api" || ! diff -r config/crd "$fresh/config/crd"; then
  echo 'The generated files differ from their sources: run "make generate" and commit the result.' >&2
  exit 1
fi
hack/vendor-page.sh --check
go run ./hack/gen -check
go run ./hack/versions
wait "$modules"
unformatted=$(gofmt -l api cmd config controllers internal test hack)
if [ -n "$unformatted" ]; then
  printf 'Not formatted (run "make fmt"):\n%s\n' "$unformatted" >&2
  exit 1
fi
echo "generated files, go.mod and formatting are fresh"
