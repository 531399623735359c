#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kube-controller-manager and kubectl of another version of Kubernetes from Go modules. Keeps
# them in the user's cache, and prints their folder, for KUBEBUILDER_ASSETS.
#
#   kubernetes-version.sh 1.33.13
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
version=${1:?"name a version of Kubernetes, such as 1.33.13"}
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' "$root/hack/localcluster/go.mod")
GOFLAGS=$(sed -n 's/^GO_BUILD_FLAGS := //p' "$root/hack/go.mk")
export GOTOOLCHAIN GOFLAGS GOWORK=off CGO_ENABLED=0

dir=${XDG_CACHE_HOME:-$HOME/.cache}/parley/kubernetes-$version-$GOTOOLCHAIN
if [ -d "$dir" ]; then echo "$dir"; exit; fi
mkdir -p "${dir%/*}"
tmp=$(mktemp -d "$dir.building.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# The module of Kubernetes replaces others by folders that are not in it. The proxy has them as modules of version v0.X.Y.
# Nothing that is built imports the samples.
state=$root/.parley/kubernetes/$version
mkdir -p "$state" "$tmp/bin"
source=$(cd "$state" && go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
sed -e "s|=> \./staging/src/\(.*\)|=> \1 v0.${version#1.}|" -e '/k8s\.io\/sample-/d' "$source/go.mod" >"$state/go.mod"
cp --no-preserve=mode "$source/go.sum" "$state/go.sum"

minor=${version#1.}
flags=-s
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $p.gitVersion=v$version -X $p.gitMajor=1 -X $p.gitMinor=${minor%%.*}"
done
echo "building Kubernetes $version from source (kept in $dir)" >&2
(cd "$source" && go build -modfile="$state/go.mod" -mod=mod -ldflags="$flags" -o "$tmp/bin/" \
  ./cmd/kube-apiserver ./cmd/kube-controller-manager ./cmd/kubectl go.etcd.io/etcd/server/v3)
mv "$tmp/bin/server" "$tmp/bin/etcd"
mv "$tmp/bin" "$dir"
echo "$dir"
