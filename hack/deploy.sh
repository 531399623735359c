#!/usr/bin/env bash
# Installs Parley into a cluster, from IMAGE, and waits until it works.
# usage: [IMAGE=...] deploy.sh KUBECTL KUBECONFIG
set -euo pipefail
cd "$(dirname "$0")/.."
k=("$1" --kubeconfig "$2")

there=$("${k[@]}" -n parley-system get deployments -o name --ignore-not-found 2>/dev/null || true)
"${k[@]}" apply --server-side --force-conflicts -k "$(hack/overlay.sh)" >/dev/null
# Clusters from Kubernetes 1.36 on can stamp who created what.
kinds=$("${k[@]}" get --raw /apis/admissionregistration.k8s.io/v1)
if [[ $kinds == *'"mutatingadmissionpolicies"'* ]]; then
  "${k[@]}" apply --server-side --force-conflicts -k config/admission/stamp >/dev/null
fi
# The image of the same name may be newer than the one that runs.
[ -z "$there" ] || "${k[@]}" -n parley-system rollout restart deployment parley-manager parley-gateway >/dev/null
for d in parley-manager parley-gateway; do
  "${k[@]}" -n parley-system rollout status deployment "$d" --timeout=120s >/dev/null || {
    echo "deployment $d does not become ready: is the image ${IMAGE:-parley.dev/parley:dev} in the cluster? Its pods:" >&2
    "${k[@]}" -n parley-system get pods >&2
    exit 1
  }
done
# An API server needs some seconds until it can stamp objects of kinds that are new to it.
tries=0
until said=$("${k[@]}" -n parley-system create --dry-run=server -f config/samples/chat.yaml 2>&1); do
  [ $((tries += 1)) -lt 120 ] || { echo "a Chat cannot be created: $said" >&2; exit 1; }
  sleep 0.5
done
echo "Parley is installed in namespace parley-system"
