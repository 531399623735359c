#!/usr/bin/env bash
# Lets many chats talk in a cluster while what they run on is killed, and checks that nothing was lost, repeated or
# left over. "make soak" has installed Parley. The log is .parley/soak/soak.log; where something does not hold, what was found
# and all logs are beside it. With DEVCLUSTER the cluster is the local one, whose processes root may kill.
# usage: [DEVCLUSTER="command of the local cluster"] [IMAGE=...] soak.sh KUBECTL KUBECONFIG [flags of the soak]
set -euo pipefail
cd "$(dirname "$0")/.."
kubectl=$1 kubeconfig=$2
shift 2
sudo=$([ -z "${DEVCLUSTER:-}" ] || [ "$(id -u)" = 0 ] || command -v sudo)

for d in parley-manager parley-gateway; do
  "$kubectl" --kubeconfig "$kubeconfig" -n parley-system rollout status deployment "$d" --timeout=60s >/dev/null
done
go build -o bin/soak ./test/soak
$sudo rm -rf .parley/soak
mkdir -p .parley/soak
$sudo bin/soak "--kubeconfig=$kubeconfig" "--devcluster=${DEVCLUSTER:-}" "--image=${IMAGE:-parley.dev/parley:dev}" "$@" 2>&1 | tee .parley/soak/soak.log
