#!/usr/bin/env bash
# Fails if a generated file or go.mod is not what its generator makes of the sources. Changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
cp -r api config "$fresh/"
go tool controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/... output:object:dir="$fresh/api/v1alpha1"
go tool controller-gen crd:allowDangerousTypes=true paths=./api/... output:crd:dir="$fresh/config/crd/bases"
if ! diff -r api "$fresh/api" || ! diff -r config/crd "$fresh/config/crd"; then
  echo 'The generated files differ from their sources: run "make generate" and commit the result.' >&2
  exit 1
fi
hack/vendor-page.sh --check
go run ./internal/chat/machine/gen -o docs/status.md -check
go run -tags grpcnotrace ./internal/tools/gen -o docs/tools.md -check
go run ./internal/telemetry/dashboard/gen -o config/grafana/parley.json -check
for module in . test/gitops test/dashboards hack/localcluster hack/agent-sandbox; do
  (cd "$module" && go mod tidy -diff && go mod verify >/dev/null)
done
if [ "$(sed -n 's/^toolchain //p' go.mod test/{gitops,dashboards}/go.mod hack/{tools,agent-sandbox,localcluster,localcluster/binaries}/go.mod | sort | uniq -c | awk '{print $1}')" != 7 ]; then
  echo 'The go.mod files name different toolchains: make their toolchain lines the same.' >&2
  exit 1
fi
if [ "$(grep -ho 'sigs.k8s.io/agent-sandbox v[^ ]*' go.mod hack/agent-sandbox/go.mod | sort -u | wc -l)" != 1 ]; then
  echo 'go.mod and hack/agent-sandbox/go.mod name different versions of agent-sandbox: make them the same.' >&2
  exit 1
fi
unformatted=$(gofmt -l api cmd controllers internal test hack)
if [ -n "$unformatted" ]; then
  printf 'Not formatted (run "make fmt"):\n%s\n' "$unformatted" >&2
  exit 1
fi
echo "generated files, go.mod and formatting are fresh"
