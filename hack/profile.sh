#!/usr/bin/env bash
# Profiles the CPU of every program that has part in a turn, while 100 chats get messages: bin/profiles/. "make profile" has
# installed Parley in the local cluster, with profiling.
# usage: profile.sh KUBECTL KUBECONFIG
set -euo pipefail
cd "$(dirname "$0")/.."
kubectl=$1 kubeconfig=$2 seconds=8
k() { "$kubectl" --kubeconfig "$kubeconfig" "$@"; }
out=bin/profiles
rm -rf "$out" && mkdir -p "$out"

mkdir -p .parley/profiling
cat >.parley/profiling/kustomization.yaml <<Y
resources: [../../$(hack/overlay.sh)]
components: [../../config/profiling]
Y
k apply --server-side --force-conflicts -k .parley/profiling >/dev/null
for d in parley-manager parley-gateway; do k -n parley-system rollout status deployment "$d" --timeout=60s >/dev/null; done

# It installs Parley as it was, at its end.
: >"$out/load.log"
hack/bench.sh "$kubectl" "$kubeconfig" -load=30s >"$out/load.log" 2>&1 &
load=$!
until grep -q '^busy' "$out/load.log"; do # The first round warms up.
  kill -0 "$load" 2>/dev/null || { cat "$out/load.log" >&2; exit 1; }
  sleep 1
done
# Pods and etcd listen in the cluster's own network namespace.
etcd=$(pgrep -x -f "[^ ]*etcd --data-dir=$PWD/.parley/cluster/.*" | head -1)
in_cluster() { nsenter -n -t "$etcd" "$@"; }
# ip NAMESPACE SELECTOR: the address of a pod that stays.
ip() {
  k -n "$1" get pods -l "$2" --field-selector=status.phase=Running \
    -o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.status.podIP}}{{"\n"}}{{end}}{{end}}' | sed -n 1p
}
generation=$(ip bench parley.dev/component=generation)
declare -A addresses=(
  [etcd]=127.0.0.1:2379 [generator]=$generation:8082 [relay]=$generation:7071
  [manager]=$(ip parley-system app.kubernetes.io/component=manager):8080
  [gateway]=$(ip parley-system app.kubernetes.io/component=gateway):8082
)
k get --raw "/debug/pprof/profile?seconds=$seconds" >"$out/kube-apiserver.pprof" & pids=($!)
for name in "${!addresses[@]}"; do
  in_cluster curl -sSf -o "$out/$name.pprof" "http://${addresses[$name]}/debug/pprof/profile?seconds=$seconds" & pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
wait "$load"
for profile in "$out"/*.pprof; do
  go tool pprof -top "$profile" 2>/dev/null >"${profile%.pprof}.txt"
  printf '%-16s %s\n' "$(basename "$profile" .pprof)" "$(sed -n 's/^Duration: //p' "${profile%.pprof}.txt")"
done
echo "profiles: $out/*.pprof, for go tool pprof" >&2
