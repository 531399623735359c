#!/usr/bin/env bash
# Installs Parley into a cluster, applies a Chat, and shows its reply as it streams. "make demo" calls it, with a cluster of
# its own or, with USE_CURRENT_CONTEXT=1, with that of KUBECONFIG's current context.
#
#   KUBECONFIG      the cluster
#   KUBECTL         the kubectl to use (default: kubectl)
#   IMAGE           the image to install (default: parley.dev/parley:dev); a scripted model needs that of "make image"
#   DEMO_LOCAL      set by make when the cluster is the project's own
#   DEVCLUSTER      how to call the project's own cluster, for its way out to a provider
#   OPENAI_API_KEY, ANTHROPIC_API_KEY   if one is set, the model is that provider's; else a scripted one answers
set -euo pipefail
cd "$(dirname "$0")/.."

kubectl=${KUBECTL:-kubectl}
export KUBECONFIG=${KUBECONFIG:-$HOME/.kube/config}
command -v "$kubectl" >/dev/null || { echo "demo: kubectl is not in PATH" >&2; exit 1; }
k() { "$kubectl" "$@"; }
step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "${@/#kubectl/$kubectl}"; }

k version >/dev/null 2>&1 || {
  echo "demo: no cluster answers at KUBECONFIG=${KUBECONFIG:-}. Name one that does, or run make demo as root for a local one" >&2
  exit 1
}

step "Installing Parley"
hack/deploy.sh "$kubectl" "$KUBECONFIG"
k apply --server-side --force-conflicts -f config/demo/namespace.yaml >/dev/null
k -n demo delete chats,chatmessages --all --wait >/dev/null

# model PROVIDER KEY SAMPLE HOST: a real provider's ChatModelConfig with the key in a Secret. Pods of the project's own
# cluster have no way out of it; there, calls go through a forwarder on this machine.
model() {
  k -n demo create secret generic "$1" --from-literal=api-key="$2" --dry-run=client -o yaml | k apply --server-side --force-conflicts -f - >/dev/null
  k -n demo apply --server-side --force-conflicts -f "$3" >/dev/null
  if [ -n "${DEMO_LOCAL:-}" ]; then
    local at
    at=$($DEVCLUSTER egress "https://$4")
    k -n demo patch chatmodelconfig default --type merge -p "{\"spec\":{\"baseURL\":\"$at${5:-}\"}}" >/dev/null
  fi
  echo "The model is $1's."
}

scripted() {
  k -n demo create configmap scripted-model --from-file=demo.yaml=test/modelserver/testdata/demo.yaml --dry-run=client -o yaml |
    k apply --server-side --force-conflicts -f - >/dev/null
  k -n demo delete pod scripted-model --ignore-not-found --wait >/dev/null
  sed "s|image: parley.dev/parley:dev|image: ${IMAGE:-parley.dev/parley:dev}|" config/demo/model.yaml |
    k apply --server-side -f - >/dev/null
  k -n demo wait pod/scripted-model --for=condition=Ready --timeout=120s >/dev/null
  local ip
  ip=$(k -n demo get pod scripted-model -o 'jsonpath={.status.podIP}')
  k -n demo apply --server-side --force-conflicts -f - >/dev/null <<EOF
apiVersion: parley.dev/v1beta1
kind: ChatModelConfig
metadata: {name: default}
spec: {default: true, provider: openai-compatible, model: scripted, baseURL: "http://$ip:8080/v1"}
EOF
  echo "The model is scripted: set OPENAI_API_KEY or ANTHROPIC_API_KEY for a real one."
}

k -n demo delete chatmodelconfig default --ignore-not-found >/dev/null
if [ -n "${ANTHROPIC_API_KEY:-}" ]; then
  model anthropic "$ANTHROPIC_API_KEY" config/samples/anthropic.yaml api.anthropic.com
elif [ -n "${OPENAI_API_KEY:-}" ]; then
  model openai "$OPENAI_API_KEY" config/samples/openai.yaml api.openai.com /v1
else
  scripted
fi

# What follows is done with the rights and the token of the demo's account, which kubectl chat needs for the gateway.
mkdir -p .parley bin
admin=$KUBECONFIG
you=$PWD/.parley/demo.kubeconfig
k config view --raw --flatten --minify >"$you"
chmod 600 "$you"
KUBECONFIG=$you k config set-credentials you --token="$(k -n demo create token you --duration=24h)" >/dev/null
KUBECONFIG=$you k config set-context --current --user=you --namespace=demo >/dev/null
export KUBECONFIG=$you
[ -e bin/kubectl ] || ln -sf "$(command -v "$kubectl")" bin/kubectl
export PATH=$PWD/bin:$PATH

step "A chat, in one manifest"
cat config/samples/chat.yaml
run kubectl apply -f config/samples/chat.yaml
# follow CHAT: shows what is said until the turn is over.
follow() {
  echo "\$ kubectl chat tail $1 --history"
  kubectl-chat tail "$1" --history &
  tail=$!
  trap 'kill $tail 2>/dev/null || true' EXIT
  k wait "chat/$1" --for=condition=Ready --timeout=300s >/dev/null
  kill $tail 2>/dev/null || true
  wait $tail 2>/dev/null || true
  echo
}
step "Its reply, as the model says it"
follow hello

step "Go on"
echo '$ kubectl chat send hello "And what time is it there?"'
kubectl-chat send hello "And what time is it there?"
echo

step "A chat that works: a platform team offers a template, and a chat names it"
image=${TOOLBOX_IMAGE:-busybox:1.37}
[ -n "${DEMO_LOCAL:-}" ] || image=busybox:1.37
sed "s|image: busybox:1.37|image: $image|" config/samples/workspace-template.yaml |
  KUBECONFIG=$admin k -n demo apply --server-side --force-conflicts -f - >/dev/null
cat config/samples/workspace.yaml
run kubectl apply -f config/samples/workspace.yaml
follow worker

step "What the cluster holds now"
run kubectl get chats,workspaces
run kubectl get pods -l parley.dev/component=workspace
run kubectl get chatmessages --field-selector spec.chatRef.name=hello

cat <<EOF

$(printf '\033[1mYour turn\033[0m')
  export KUBECONFIG=$you PATH=$PWD/bin:\$PATH
  kubectl chat send hello "..."                         continue this chat
  kubectl apply -f my-chat.yaml                         your own manifest: see config/samples and docs/
  OPENAI_API_KEY=... make demo                          the same with a real model (or ANTHROPIC_API_KEY)
EOF
if [ -n "${DEMO_LOCAL:-}" ]; then echo "  make clean                                            stop the cluster and remove all of this"; fi
