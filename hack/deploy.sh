#!/usr/bin/env bash
# Installs Parley into a cluster and waits until it works.
# usage: deploy.sh KUBECTL KUBECONFIG
set -euo pipefail
cd "$(dirname "$0")/.."
k=("$1" --kubeconfig "$2")

there=$("${k[@]}" -n parley-system get deployments -o name --ignore-not-found 2>/dev/null || true)
"${k[@]}" apply --server-side --force-conflicts -k config/default >/dev/null
# The image of the same name may be newer than the one that runs.
[ -z "$there" ] || "${k[@]}" -n parley-system rollout restart deployment parley-manager parley-gateway >/dev/null
for d in parley-manager parley-gateway; do
  "${k[@]}" -n parley-system rollout status deployment "$d" --timeout=120s >/dev/null || {
    echo "deployment $d does not become ready: is the image parley.dev/parley:dev in the cluster? Its pods:" >&2
    "${k[@]}" -n parley-system get pods >&2
    exit 1
  }
done
echo "Parley is installed in namespace parley-system"
