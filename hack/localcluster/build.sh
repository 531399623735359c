#!/usr/bin/env bash
# Builds the programs of the local cluster from Go modules and keeps them in the user's cache directory,
# in a directory named after everything they are made from. Prints that directory; progress goes to stderr.
#
#   build.sh envtest           etcd, kube-apiserver, kube-controller-manager, kubectl (no root, no C compiler)
#   build.sh all               those, and a node: scheduler, kubelet, containerd, runc, CNI plugins, pause image
#   build.sh --print envtest   only print the directory, build nothing
#   build.sh --packages all    only print the packages of the programs that are still to be built, build nothing
#
# The result is CACHE/cluster-<key>/{envtest,node}. A set appears whole or not at all: it is built in a
# temporary directory beside it and renamed in. Two builds at once wait for each other.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
say() { echo "cluster-binaries: $*" >&2; }
fail() { say "$*"; exit 1; }

only=
case ${1:-} in --print | --packages) only=$1; shift ;; esac
want=${1:-}
case $want in envtest | all) ;; *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac

command -v go >/dev/null || fail "go is not in PATH: install Go 1.21 or later, which fetches the release that go.mod names"
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' "$here/go.mod") # it comes as a module like any other
export GOTOOLCHAIN
if [ -z "${GOFLAGS:-}" ]; then
  GOFLAGS=$(sed -n 's/^GO_BUILD_FLAGS := //p' "$here/../go.mk")
  export GOFLAGS
fi
export CGO_ENABLED=0

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

# The key: pins, this script, the sources of what goes into the pause image, the compiler, the platform.
key() {
  {
    go version
    go env GOOS GOARCH
    cd "$here"
    grep '^GO_BUILD_FLAGS' ../go.mk
    for f in build.sh go.mod binaries/go.mod binaries/go.sum cmd/pause/*.go cmd/ocipack/*.go internal/image/*.go; do
      case $f in *_test.go) continue ;; esac
      echo "$f $(sha256 <"$f")"
    done
  } | sha256 | cut -c1-16
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/parley
dir=$cache/cluster-$(key)
if [ "$only" = --print ]; then echo "$dir"; exit; fi

# version MODULE is its version in binaries/go.mod.
version() { awk -v module="$1" '$1 == module && NF > 1 { print $2; exit }' "$here/binaries/go.mod"; }

# programs prints the packages of the programs that are still to be built, but for runc.
programs() {
  [ -d "$dir/envtest" ] || printf '%s\n' go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kubectl}
  if [ "$want" = all ] && ! [ -d "$dir/node" ]; then
    printf '%s\n' k8s.io/kubernetes/cmd/{kube-scheduler,kubelet} \
      github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr} \
      github.com/containernetworking/plugins/plugins/{main/bridge,ipam/host-local}
  fi
}
if [ "$only" = --packages ]; then programs; exit; fi

complete() {
  [ -d "$dir/envtest" ] && { [ "$want" = envtest ] || [ -d "$dir/node" ]; }
}
if complete; then echo "$dir"; exit; fi

if [ "$want" = all ]; then
  [ "$(go env GOOS)" = linux ] || fail "a node runs on Linux only; here only '$0 envtest' works"
  missing=
  for c in gcc pkg-config; do command -v $c >/dev/null || missing+=" $c"; done
  [ -n "$missing" ] || pkg-config --exists libseccomp || missing+=" libseccomp-dev"
  [ -z "$missing" ] || fail "missing for building runc:$missing. Run hack/setup.sh as root, or install them your way"
fi

mkdir -p "$dir"
if command -v flock >/dev/null; then
  exec 9>"$dir/lock"
  if ! flock -n 9; then
    say "another build of the same programs is running, waiting for it"
    flock 9
  fi
  if complete; then echo "$dir"; exit; fi
  rm -rf "$dir"/building.* # left by a build that was killed; nobody else is building while we hold the lock
fi

tmp=$(mktemp -d "$dir/building.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/envtest" "$tmp/node/cni" "$tmp/node/images" "$tmp/bin"
started=$SECONDS
lap() { say "$1 ($((SECONDS - started)) s)"; }

# One "go build" for all programs without cgo: compiling and linking overlap.
build_programs() { # PACKAGE...
  local k8s minor ld="-s" p plan=()
  k8s=$(version k8s.io/kubernetes)
  minor=${k8s#v1.}; minor=${minor%%.*}
  for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    ld+=" -X $p.gitVersion=$k8s -X $p.gitMajor=1 -X $p.gitMinor=$minor -X $p.gitTreeState=clean"
    ld+=" -X $p.gitCommit=$k8s -X $p.buildDate=1970-01-01T00:00:00Z"
  done
  ld+=" -X github.com/containerd/containerd/v2/version.Version=$(version github.com/containerd/containerd/v2)"
  [ -z "${BUILD_PLAN:-}" ] || plan=(-plan="$BUILD_PLAN")
  (cd "$here/../.." && go build -o "$tmp/bin/" ./hack/gobuild)
  (cd "$here/binaries" && "$tmp/bin/gobuild" -label=cluster-binaries ${plan[@]+"${plan[@]}"} -- \
    -tags=grpcnotrace,no_btrfs,no_zfs,no_devmapper,no_aufs,no_rdt,nri_no_wasm "-ldflags=$ld" "-o=$tmp/bin/" "$@")
  if [ -e "$tmp/bin/server" ]; then mv "$tmp/bin/server" "$tmp/bin/etcd"; fi
}

build_runc() {
  local runc
  runc=$(version github.com/opencontainers/runc)
  (cd "$here/binaries" && CGO_ENABLED=1 go build -tags=seccomp "-ldflags=-s -X main.version=${runc#v}" -o "$tmp/node/" \
    github.com/opencontainers/runc)
  lap "runc $runc built"
}

build_pause() {
  (cd "$here" && go build -ldflags=-s -o "$tmp/bin/" ./cmd/pause ./cmd/ocipack)
  "$tmp/bin/ocipack" -o "$tmp/node/images/pause.tar" -ref localhost/pause:dev -entrypoint /pause \
    -user 65535:65535 "$tmp/bin/pause=/pause" >/dev/null
}

say "building from source: $(programs | xargs -n 1 basename | tr '\n' ' ')(kept in $dir)"
# shellcheck disable=SC2046 # The packages are words.
build_programs $(programs)
lap "Kubernetes, etcd and containerd built"
if [ "$want" = all ]; then
  build_runc
  build_pause
  (cd "$tmp/bin" && mv kube-scheduler kubelet containerd containerd-shim-runc-v2 ctr ../node/ && mv bridge host-local ../node/cni/)
fi
if [ ! -d "$dir/envtest" ]; then
  mv "$tmp"/bin/{etcd,kube-apiserver,kube-controller-manager,kubectl} "$tmp/envtest/"
  mv "$tmp/envtest" "$dir/envtest"
fi
if [ "$want" = all ]; then mv "$tmp/node" "$dir/node"; fi
lap "done"
echo "$dir"
