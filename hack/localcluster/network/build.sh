#!/usr/bin/env bash
# Builds the programs of the local cluster's network from Go modules: kube-proxy, CoreDNS, and a controller that enforces
# NetworkPolicies. Prints their directory, in the user's cache, which is named after everything they are made from.
set -euo pipefail
cd "$(dirname "$0")"

GOTOOLCHAIN=$(sed -n 's/^toolchain //p' go.mod)
GOFLAGS=${GOFLAGS:-$(sed -n 's/^GO_BUILD_FLAGS := //p' ../../go.mk)}
export GOTOOLCHAIN GOFLAGS CGO_ENABLED=0

key=$({ go version; go env GOOS GOARCH; echo "$GOFLAGS"; sha256sum build.sh go.mod go.sum ./*/*.go; } | sha256sum | cut -c1-16)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/parley/network-$key
if ! [ -d "$dir" ]; then
  mkdir -p "${dir%/*}"
  tmp=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$tmp"' EXIT
  go build -ldflags=-s -o "$tmp/" ./coredns ./netpol k8s.io/kubernetes/cmd/kube-proxy >&2
  mv -T "$tmp" "$dir" 2>/dev/null || [ -d "$dir" ] # Another build may have been first.
fi
echo "$dir"
