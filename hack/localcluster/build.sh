#!/usr/bin/env bash
# Builds the programs of the local cluster from Go modules and keeps them in the user's cache directory,
# in a directory named after everything they are made from. Prints that directory; progress goes to stderr.
#
#   build.sh envtest           etcd, kube-apiserver, kube-controller-manager, kubectl (no root, no C compiler)
#   build.sh all               those, and a node: scheduler, kubelet, containerd, runc, CNI plugins, pause image
#   build.sh --print envtest   only print the directory, build nothing
#
# The result is CACHE/cluster-<key>/{envtest,node}. A set appears whole or not at all: it is built in a
# temporary directory beside it and renamed in. Two builds at once wait for each other.
set -euo pipefail

CONTAINERD=v2.4.2
CNI=v1.9.1
RUNC=v1.5.2

here=$(cd "$(dirname "$0")" && pwd)
say() { echo "cluster-binaries: $*" >&2; }
fail() { say "$*"; exit 1; }

print_only=
if [ "${1:-}" = --print ]; then print_only=1; shift; fi
want=${1:-}
case $want in envtest | all) ;; *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac

command -v go >/dev/null || fail "go is not in PATH: install Go 1.21 or later, which fetches the release that go.mod names"
GOTOOLCHAIN=$(sed -n 's/^toolchain //p' "$here/go.mod") # it comes as a module like any other
export GOTOOLCHAIN

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

# The key: pins, this script, the sources of what goes into the pause image, the compiler, the platform.
key() {
  {
    go version
    go env GOOS GOARCH
    cd "$here"
    for f in build.sh go.mod binaries/go.mod binaries/go.sum cmd/pause/*.go cmd/ocipack/*.go internal/image/*.go; do
      case $f in *_test.go) continue ;; esac
      echo "$f $(sha256 <"$f")"
    done
  } | sha256 | cut -c1-16
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/parley
dir=$cache/cluster-$(key)
if [ -n "$print_only" ]; then echo "$dir"; exit; fi

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
mkdir -p "$tmp/envtest" "$tmp/node/cni" "$tmp/node/images" "$tmp/gobin"
export GOGC=400 GOFLAGS="-trimpath -buildvcs=false -gcflags=all=-dwarf=false"
started=$SECONDS
lap() { say "$1 ($((SECONDS - started)) s)"; }

# install_into DIR ARGS...: "go install pkg@version" reads that module's own go.mod when run outside any module.
install_into() {
  local into=$1; shift
  (cd / && GOBIN=$into go install "$@")
}

build_kubernetes() { # PROGRAM...
  local k8s minor ld p total pkgs=()
  k8s=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' "$here/binaries/go.mod")
  minor=${k8s#v1.}; minor=${minor%%.*}
  ld="-s -w"
  for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    ld+=" -X $p.gitVersion=$k8s -X $p.gitMajor=1 -X $p.gitMinor=$minor -X $p.gitTreeState=clean"
    ld+=" -X $p.gitCommit=$k8s -X $p.buildDate=1970-01-01T00:00:00Z"
  done
  for p in "$@"; do
    case $p in etcd) pkgs+=(go.etcd.io/etcd/server/v3) ;; *) pkgs+=("k8s.io/kubernetes/cmd/$p") ;; esac
  done
  # One "go build" for all of them: compiling and linking overlap, which saves a third of the time.
  cd "$here/binaries"
  say "downloading the modules of Kubernetes and etcd"
  total=$(CGO_ENABLED=0 go list -deps "${pkgs[@]}" 2>/dev/null | wc -l || true) # "go build" says what is wrong.
  CGO_ENABLED=0 go build -v -ldflags="$ld" -o "$tmp/gobin/" "${pkgs[@]}" 2>&1 | "$here/../progress.sh" 'cluster-binaries: Kubernetes and etcd' "$total"
  cd "$here"
  if [ -e "$tmp/gobin/server" ]; then mv "$tmp/gobin/server" "$tmp/gobin/etcd"; fi
}

build_node() {
  say "building containerd, runc and the CNI plugins (1 to 2 minutes)"
  CGO_ENABLED=0 install_into "$tmp/node" -tags no_btrfs,no_zfs,no_devmapper,no_aufs \
    -ldflags="-s -w -X github.com/containerd/containerd/v2/version.Version=$CONTAINERD" \
    github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr}@$CONTAINERD
  lap "containerd $CONTAINERD built"
  CGO_ENABLED=0 install_into "$tmp/node/cni" -ldflags='-s -w' \
    github.com/containernetworking/plugins/plugins/main/bridge@$CNI \
    github.com/containernetworking/plugins/plugins/ipam/host-local@$CNI
  CGO_ENABLED=1 install_into "$tmp/node" -tags seccomp -ldflags="-s -w -X main.version=${RUNC#v}" \
    github.com/opencontainers/runc@$RUNC
  lap "CNI plugins $CNI and runc $RUNC built"
  (cd "$here" && CGO_ENABLED=0 go build -ldflags='-s -w' -o "$tmp/gobin/" ./cmd/pause ./cmd/ocipack)
  "$tmp/gobin/ocipack" -o "$tmp/node/images/pause.tar" -ref localhost/pause:dev -entrypoint /pause \
    -user 65535:65535 "$tmp/gobin/pause=/pause" >/dev/null
}

programs=()
[ -d "$dir/envtest" ] || programs+=(etcd kube-apiserver kube-controller-manager kubectl)
[ "$want" = envtest ] || programs+=(kube-scheduler kubelet)
say "building from source: ${programs[*]} (5 to 11 minutes the first time on 2 cores, then cached in $dir)"
build_kubernetes "${programs[@]}"
lap "Kubernetes and etcd built"
if [ "$want" = all ]; then
  build_node
  mv "$tmp/gobin/kube-scheduler" "$tmp/gobin/kubelet" "$tmp/node/"
fi
if [ ! -d "$dir/envtest" ]; then
  mv "$tmp"/gobin/{etcd,kube-apiserver,kube-controller-manager,kubectl} "$tmp/envtest/"
  mv "$tmp/envtest" "$dir/envtest"
fi
if [ "$want" = all ]; then mv "$tmp/node" "$dir/node"; fi
lap "done"
echo "$dir"
