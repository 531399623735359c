#!/usr/bin/env bash
# Lets many chats talk in the local cluster while what they run on is killed, and checks that nothing was lost, repeated or
# left over. "make soak" has brought the cluster up, loaded the image and installed Parley. The log is .parley/soak/soak.log;
# where something does not hold, what was found and all logs are beside it.
# usage: DEVCLUSTER="command of the local cluster" soak.sh KUBECTL KUBECONFIG [flags of the soak]
set -euo pipefail
cd "$(dirname "$0")/.."
kubectl=$1 kubeconfig=$2
shift 2
sudo=$([ "$(id -u)" = 0 ] || command -v sudo)

for d in parley-manager parley-gateway; do
  "$kubectl" --kubeconfig "$kubeconfig" -n parley-system rollout status deployment "$d" --timeout=60s >/dev/null
done
CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -o bin/soak ./test/soak
$sudo rm -rf .parley/soak
mkdir -p .parley/soak
$sudo bin/soak "--kubeconfig=$kubeconfig" "--devcluster=${DEVCLUSTER:-}" "$@" 2>&1 | tee .parley/soak/soak.log
