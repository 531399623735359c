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
# An API server needs some seconds until it enforces new policies, has read their parameters, and can stamp objects of
# kinds that are new to it. Until then it refuses every chat, or none.
is_in_force() {
  if said=$("${k[@]}" -n parley-system create --dry-run=server -f - <<Y 2>&1
apiVersion: parley.dev/v1beta1
kind: ChatMessage
metadata: {name: hello-prompt}
spec: {chatRef: {name: hello}, content: Hello}
Y
  ); then
    said="the admission policy parley-messages is not in force"
    return 1
  fi
  [[ $said == *"names that end in -prompt"* ]] || return 1
  said=$("${k[@]}" -n parley-system create --dry-run=server -f config/samples/chat.yaml 2>&1)
}
tries=0
until is_in_force; do
  [ $((tries += 1)) -lt 120 ] || { echo "the admission policies are not ready: $said" >&2; exit 1; }
  sleep 0.5
done
echo "Parley is installed in namespace parley-system"
