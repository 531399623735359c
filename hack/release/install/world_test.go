// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const system = "parley-system"

// toolbox is an image with a shell.
var toolbox = os.Getenv("TOOLBOX_IMAGE")

// newNamespace creates a namespace in which Pod Security enforces the restricted profile, with a login for the
// registry. It is deleted when the test ends.
func newNamespace(t *testing.T, name string, labels ...string) {
	t.Helper()
	apply(t, "", fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}`, name,
		strings.Join(append(labels, `pod-security.kubernetes.io/enforce: restricted`), ", ")))
	t.Cleanup(func() { kubectl(t, "delete", "namespace", name, "--ignore-not-found") })
	login := write(t, t.TempDir(), ".dockerconfigjson", registryLogin)
	kubectl(t, "-n", name, "create", "secret", "generic", "registry", "--type=kubernetes.io/dockerconfigjson",
		"--from-file="+login)
}

// newWorld creates a namespace for chats with a scripted model. The model calls a tool in a workspace first.
func newWorld(t *testing.T, name string, labels ...string) {
	t.Helper()
	newNamespace(t, name, labels...)
	apply(t, name, strings.ReplaceAll(model, "IMAGE", os.Getenv("IMAGE")))
}

const model = `
apiVersion: v1
kind: ConfigMap
metadata: {name: script}
data:
  script.yaml: |
    rules:
    - match: {lastUserText: only the file says this}
      reply: {steps: [{text: It works. Received.}]}
    - match: {lastUserText: slowly}
      reply: {steps: [{text: {chunks: ["First. ", "Last."]}}], delayBetween: 75s}
    - match: {lastUserText: endlessly}
      reply: {steps: [{text: {chunks: ["First. ", "Last."]}}], fault: {kind: Hang, after: 1}}
    - match: {lastUserText: long, toolOffered: execute}
      reply: {steps: [{toolCalls: [{name: execute, arguments: {command: "sleep 600"}}]}]}
    - match: {toolResults: 0, toolOffered: execute}
      reply: {steps: [{toolCalls: [{name: execute, arguments: {command: "echo hello > file; echo user $(id -u)"}}]}]}
    - reply: {steps: [{text: It works.}]}
---
apiVersion: v1
kind: Pod
metadata: {name: model}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: model
    image: IMAGE
    command: [/scripted-model]
    args: [--listen=:8080, --script=/script/script.yaml]
    readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: script, mountPath: /script}]
  volumes: [{name: script, configMap: {name: script}}]
`

// askModel creates a chat in a namespace, and what it needs.
func askModel(t *testing.T, namespace string) {
	t.Helper()
	kubectl(t, "-n", namespace, "wait", "pod/model", "--for=condition=Ready", "--timeout=120s")
	address := kubectl(t, "-n", namespace, "get", "pod", "model", "-o=jsonpath={.status.podIP}")
	apply(t, namespace, fmt.Sprintf(`
apiVersion: parley.dev/v1beta1
kind: ChatModelConfig
metadata: {name: default}
spec: {default: true, provider: openai-compatible, model: scripted, baseURL: "http://%s:8080/v1",
  pricing: {currency: USD, inputPerMillion: "1", outputPerMillion: "1"}}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: shell, labels: {parley.dev/workspace-template: "true"}}
template:
  spec:
    containers: [{name: tools, image: %q, command: [/bin/sh, -c, "while true; do sleep 1; done"]}]
---
apiVersion: parley.dev/v1beta1
kind: Chat
metadata: {name: c}
spec: {prompt: Work., workspace: {podTemplateRef: {name: shell}}}
`, address, toolbox))
}

// awaitAnswer waits until the chat is answered, and returns what the tool printed.
func awaitAnswer(t *testing.T, namespace string) string {
	t.Helper()
	eventually(t, "the chat in "+namespace+" is answered", func() bool {
		return kubectl(t, "-n", namespace, "get", "chat", "c",
			`-o=jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.lastReply}`) == "True It works."
	})
	return kubectl(t, "-n", namespace, "get", "chatmessages", "-o=jsonpath={.items[*].spec.parts[*].toolResult.output}")
}

// podsFormat prints what the options of pods set, and the images.
const podsFormat = "-o=jsonpath={.items[*].metadata.labels.team} {.items[*].spec.nodeSelector.kubernetes\\.io/os} " +
	"{.items[*].spec.priorityClassName} {.items[*].spec.imagePullSecrets[*].name} {.items[*].spec.containers[*].image}"

// checkPods checks that there is one generation pod, with its relay, and one workspace, that they have the options of
// pods, and that the image is that of the release.
func checkPods(t *testing.T, namespace string) {
	t.Helper()
	for component, images := range map[string]string{"generation": reference + " " + reference, "workspace": toolbox} {
		got := kubectl(t, "-n", namespace, "get", "pods", "-l=parley.dev/component="+component, podsFormat)
		if want := "install linux low registry " + images; got != want {
			t.Errorf("pods of %s\ngot  %s\nwant %s", component, got, want)
		}
	}
}
