// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package columns shows what kubectl get prints of each kind, with a real kube-apiserver and kubectl, and holds that no
// line is wider than terminals are: 120 columns for a list, with names of 30 characters and the longest of reasons, and
// 160 for a wide one, with what is usual.
package columns

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/testcluster"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testcluster.RunShared(m, &cluster))
}

// example is an object as there are many: NAME is its name and that of its chat, REASON the reason of Ready.
type example struct {
	kind, content string
	// worst is the longest reason that Ready has for the kind, usual one that it mostly has.
	worst, usual string
	// plain and wide are the columns of a list, and of a wide one.
	plain, wide string
}

const ready = `observedGeneration: 1, conditions: [{type: Ready, status: Unknown, reason: REASON, message: m,
  lastTransitionTime: "2026-11-23T10:00:00Z"}]`

var examples = []example{
	{
		kind: "Chat", worst: "ActionDeadlineExceeded", usual: "WaitingForSubChats",
		content: `
status:
  {phase: RequiresAction, model: claude-sonnet-4-5, title: Why pods do not start today,
  lastReply: It is the CNI of two nodes…, chatClass: {name: coder, uid: u, generation: 1}, history: {length: 128}, ` + ready + `}`,
		plain: "NAME READY REASON MSGS REPLY AGE", wide: "NAME READY REASON MSGS REPLY CLASS MODEL TITLE AGE",
	},
	{
		kind: "ChatMessage", worst: "AuthenticationFailed", usual: "Answering",
		content: `
spec: {chatRef: {name: NAME}, content: x}
status: {state: Superseded, index: 127, ` + ready + `}`,
		plain: "NAME CHAT ROLE INDEX STATE READY AGE",
		wide:  "NAME CHAT ROLE INDEX STATE READY REASON VISIBILITY AGE",
	},
	{
		kind: "ChatModelConfig", worst: "ModelConfigInvalid", usual: "Accepted",
		content: `
spec:
  {provider: openai-compatible, baseURL: "http://127.0.0.1", model: claude-sonnet-4-5, default: true, disabled: true}
status: {contextLimit: 1000000, ` + ready + `}`,
		plain: "NAME READY REASON PROVIDER MODEL DEFAULT AGE",
		wide:  "NAME READY REASON PROVIDER MODEL DISABLED CONTEXT DEFAULT AGE",
	},
	{
		kind: "ChatClass", worst: "ReferencesUnresolved", usual: "Accepted",
		content: `
spec: {default: true, description: Chats that work on our repositories, defaults: {modelConfigRef: {name: sonnet}}}
status: {` + ready + `}`,
		plain: "NAME READY REASON DEFAULT MODEL AGE", wide: "NAME READY REASON DEFAULT MODEL DESCRIPTION AGE",
	},
	{
		kind: "ChatQuota", worst: "Accepted", usual: "Accepted",
		content: `
spec: {generating: {chats: 1000, subChats: 1000}}
status: {` + ready + `}`,
		plain: "NAME CHATS SUB-CHATS READY REASON AGE", wide: "NAME CHATS SUB-CHATS READY REASON AGE",
	},
	{
		kind: "ToolApproval", worst: "DigestMismatch", usual: "Applied",
		content: `
spec: {chatRef: {name: NAME}, toolCallID: toolu_01A09q90qw90lq917835lq9a, decision: Approve,
  digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
status: {` + ready + `}`,
		plain: "NAME CHAT DECISION READY REASON AGE", wide: "NAME CHAT CALL DECISION READY REASON AGE",
	},
	{
		kind: "Workspace", worst: "AgentSandboxMissing", usual: "WorkspaceReady",
		content: `
spec: {chatRef: {name: NAME}, source: {podTemplateRef: {name: go-toolchain}}, neededAt: "2026-11-23T10:00:00.123456Z"}
status: {phase: Starting, pod: {name: NAME-x7k2p, uid: u}, sandbox: NAME, ` + ready + `}`,
		plain: "NAME TEMPLATE PHASE READY REASON NEEDED AGE",
		wide:  "NAME TEMPLATE PHASE READY REASON POD SANDBOX NEEDED AGE",
	},
	{
		kind: "ChatDebugStep", worst: "AuthenticationFailed", usual: "Overloaded",
		content: `
{chatRef: {name: NAME}, chatUID: u, action: GenerateAssistant, call: 1, pod: p, operation: Stream, attempt: 1,
state: Interrupted, startedAt: "2026-11-23T10:00:00.123456Z", model: {name: claude-sonnet-4-5, provider: anthropic},
turn: {message: NAME-prompt, version: 1}, historyVersion: 1, request: {},
error: {reason: REASON, message: m}, response: {usage: {totalTokens: 123456}}}`,
		plain: "NAME ACTION STATUS REASON TOKENS AGE",
		wide:  "NAME CHAT TURN ACTION MODEL STATUS REASON TOKENS AGE",
	},
}

func TestListsAreNoWiderThanTerminals(t *testing.T) {
	kubeconfig := writeKubeconfig(t)
	long, usual := strings.Repeat("n", 30), "fix-the-build-of-ci"
	for _, e := range examples {
		t.Run(e.kind, func(t *testing.T) {
			e.shows(t, kubeconfig, e.list(t, long, e.worst), 120, e.plain)
			e.shows(t, kubeconfig, e.list(t, usual, e.usual), 160, e.wide, "-o", "wide")
		})
	}
}

func TestEveryKindOfANamespaceHasAnExample(t *testing.T) {
	have := map[string]bool{"ClusterChatQuota": true} // It has one name and no reasons but one.
	for _, e := range examples {
		have[e.kind] = true
	}
	for kind := range cluster.Client.Scheme().KnownTypes(v1beta1.GroupVersion) {
		if cluster.Client.Scheme().Recognizes(v1beta1.GroupVersion.WithKind(kind+"List")) && !have[kind] {
			t.Errorf("nobody knows how wide lists of kind %s are", kind)
		}
	}
}

// list creates a namespace with an object of the name and the reason, and returns the namespace.
func (e *example) list(t *testing.T, name, reason string) string {
	t.Helper()
	content := strings.NewReplacer("NAME", name, "REASON", reason).Replace(e.content)
	raw, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(e.kind))
	o.SetName(name)
	o.SetNamespace(cluster.Namespace(t, "columns"))
	status, has := o.Object["status"]
	cluster.Create(t, o)
	if has {
		o.Object["status"] = status
		if err := cluster.Client.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return o.GetNamespace()
}

// shows checks which columns kubectl prints of the namespace's objects, and how wide they are.
func (e *example) shows(t *testing.T, kubeconfig, namespace string, width int, columns string, flags ...string) {
	t.Helper()
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	args := append([]string{"--kubeconfig", kubeconfig, "--cache-dir", filepath.Dir(kubeconfig), "get",
		strings.ToLower(e.kind), "-n", namespace}, flags...)
	out, err := exec.CommandContext(t.Context(), kubectl, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	if got := strings.Join(strings.Fields(lines[0]), " "); got != columns {
		t.Errorf("the columns are %s, want %s", got, columns)
	}
	if len(lines) != 2 || strings.Contains(lines[1], "<none>") && !strings.Contains(columns, "VISIBILITY") {
		t.Errorf("not every column has something to show:\n%s", out)
	}
	for _, line := range lines {
		// An age has up to five characters, and of an object that is new two.
		if n := utf8.RuneCountInString(strings.TrimRight(line, " ")) + 3; n > width {
			t.Errorf("a line has %d columns, of %d:\n%s", n, width, out)
		}
	}
}

func writeKubeconfig(t *testing.T) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["own"] = &clientcmdapi.Cluster{Server: cluster.Config.Host,
		CertificateAuthorityData: cluster.Config.CAData}
	c.AuthInfos["own"] = &clientcmdapi.AuthInfo{ClientCertificateData: cluster.Config.CertData,
		ClientKeyData: cluster.Config.KeyData}
	c.Contexts["own"] = &clientcmdapi.Context{Cluster: "own", AuthInfo: "own"}
	c.CurrentContext = "own"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}
