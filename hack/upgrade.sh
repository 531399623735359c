#!/usr/bin/env bash
# Installs the version of the commit in hack/release/baseline into the local cluster, applies the manifests of this version,
# and lets chats talk, run commands and start sub-chats while manager and gateway are moved between the two versions' images,
# back and forth. Checks that nothing was lost, repeated or left over. "make test-upgrade" has started the cluster and loaded
# this version's image.
# usage: DEVCLUSTER="command of the local cluster" [IMAGE=...] upgrade.sh KUBECTL KUBECONFIG [flags of the soak]
set -euo pipefail
cd "$(dirname "$0")/.."
kubectl=$1 kubeconfig=$2
shift 2
new=${IMAGE:-parley.dev/parley:dev} old=parley.dev/parley:baseline
commit=$(cat hack/release/baseline)
tree=$PWD/.parley/baseline
if [ "$(git -C "$tree" rev-parse HEAD 2>/dev/null)" != "$(git rev-parse "$commit^{commit}")" ]; then
  git worktree remove --force "$tree" 2>/dev/null || rm -rf "$tree"
  git worktree prune
  git worktree add --quiet --detach "$tree" "$commit"
fi
make --no-print-directory -C "$tree" image IMAGE="$old" >/dev/null
$DEVCLUSTER load "$tree/bin/parley.tar"
# A later version's may have fields that the earlier one's cannot be merged with.
"$kubectl" --kubeconfig "$kubeconfig" -n parley-system delete deployments parley-manager parley-gateway --ignore-not-found >/dev/null
IMAGE=$old "$tree/hack/deploy.sh" "$kubectl" "$kubeconfig"
echo "the version of commit $commit is upgraded: its definitions, policies and rights first"
IMAGE=$old hack/deploy.sh "$kubectl" "$kubeconfig"
exec hack/soak.sh "$kubectl" "$kubeconfig" --images="$old,$new" "$@"
