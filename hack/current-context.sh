#!/usr/bin/env bash
# Writes a kubeconfig of the current context alone, so that what follows stays with this cluster, and says which it is.
# usage: [KUBECONFIG=...] current-context.sh KUBECTL FILE
set -euo pipefail
kubectl=$1 file=$2

command -v "$kubectl" >/dev/null || { echo "$kubectl is not in PATH: install kubectl, or name one by KUBECTL=..." >&2; exit 1; }
mkdir -p "$(dirname "$file")"
rm -f "$file"
(umask 077 && "$kubectl" config view --raw --flatten --minify >"$file")
server=$("$kubectl" --kubeconfig "$file" config view -o 'jsonpath={.clusters[0].cluster.server}')
"$kubectl" --kubeconfig "$file" version >/dev/null 2>&1 || {
  echo "no cluster answers at $server, which the current context of KUBECONFIG=${KUBECONFIG:-$HOME/.kube/config} names" >&2
  exit 1
}
echo "the cluster: context $("$kubectl" --kubeconfig "$file" config current-context), $server"
