#!/usr/bin/env bash
# Measures Parley in a cluster: a table on the terminal, the figures in bin/bench.json. "make bench" has installed Parley.
# With BENCH_OUT=bin/bench-NAME.json what it measures is a part of the benchmark, and goes there alone.
# usage: [IMAGE=...] [BENCH_OUT=...] bench.sh KUBECTL KUBECONFIG [flags of the bench]
set -euo pipefail
cd "$(dirname "$0")/.."
kubectl=$1 kubeconfig=$2
shift 2
image=${IMAGE:-parley.dev/parley:dev}
k() { "$kubectl" --kubeconfig "$kubeconfig" "$@"; }

# The figures are those of one manager and one gateway.
k -n parley-system scale deployment parley-manager parley-gateway --replicas=1 >/dev/null
k -n parley-system wait deployment parley-manager parley-gateway --for=jsonpath='{.status.replicas}'=1 --timeout=60s >/dev/null
k delete namespace bench --ignore-not-found --wait >/dev/null
k delete namespace -l parley-bench --wait >/dev/null
k apply --server-side -f - >/dev/null <<Y
apiVersion: v1
kind: Namespace
metadata: {name: bench}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: bench, namespace: bench}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: parley-bench}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: bench, namespace: bench}]
---
apiVersion: v1
kind: Pod
metadata: {name: model, namespace: bench}
spec:
  containers:
  - {name: model, image: "$image", command: [/scripted-model], args: ["--listen=:8080"]}
Y
trap 'k delete clusterrolebinding parley-bench --ignore-not-found >/dev/null; k apply --server-side --force-conflicts -k "$(hack/overlay.sh)" >/dev/null' EXIT
k -n bench wait pod/model --for=condition=Ready --timeout=60s >/dev/null
model=$(k -n bench get pod model -o 'jsonpath={.status.podIP}'):8080
args=$(printf ',"%s"' "--model=$model" "--toolbox=${TOOLBOX_IMAGE:-}" "$@")
k apply --server-side -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: run, namespace: bench}
spec:
  serviceAccountName: bench
  restartPolicy: Never
  containers:
  - {name: run, image: "$image", command: [/bench], args: [${args#,}]}
Y
k -n bench wait pod/run --for=jsonpath='{.status.containerStatuses[0].started}'=true --timeout=60s >/dev/null
# Its progress and its table go to the terminal; the figures are the lines from "{" on.
k -n bench logs -f run | tee bin/bench.log | sed -u '/^{$/,$d' >&2
k -n bench wait pod/run --for=jsonpath='{.status.phase}'=Succeeded --timeout=20s >/dev/null || exit 1
grep -q '^{$' bin/bench.log || exit 0 # It measured nothing.
out=${BENCH_OUT:-bin/bench.json}
{
  sed -n '/^{$/,$p' bin/bench.log | sed '$d' | sed '$s/$/,/'
  # By "make bench-streams", which needs a control plane of its own.
  printf '  "generator": %s,\n' "$(cat bin/bench-generator.json 2>/dev/null || echo null)"
  # By "make bench-gateway", "make bench-writes", "make bench-memory" and "make bench-deletion", as well.
  printf '  "gateway": %s,\n' "$(cat bin/bench-gateway.json 2>/dev/null || echo null)"
  printf '  "api_server": %s,\n' "$(cat bin/bench-writes.json 2>/dev/null || echo null)"
  printf '  "manager": %s,\n' "$(cat bin/bench-manager.json 2>/dev/null || echo null)"
  printf '  "deletion": %s\n}\n' "$(cat bin/bench-deletion.json 2>/dev/null || echo null)"
} >"$out"
[ "$out" = bin/bench.json ] || sed -n '/^{$/,$p' bin/bench.log >"$out"
k delete namespace bench --wait=false >/dev/null
k delete namespace -l parley-bench --wait=false >/dev/null
echo "figures: $out" >&2
