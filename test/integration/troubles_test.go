// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/verbs"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// screen keeps what a program writes.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// plugin runs kubectl chat without a gateway, as somebody with a client certificate. end stops it, and returns what it
// exits with.
func plugin(t *testing.T, ns string, args ...string) (shown *screen, end func() int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{CurrentContext: "c",
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: cluster.Config.Host,
			CertificateAuthorityData: cluster.Config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {ClientCertificateData: cluster.Config.CertData,
			ClientKeyData: cluster.Config.KeyData}},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c", Namespace: ns}}}, path)
	check.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	shown, code := &screen{}, make(chan int, 1)
	go func() {
		code <- verbs.Run(ctx, genericiooptions.IOStreams{In: strings.NewReader(""), Out: shown, ErrOut: shown},
			append([]string{"--kubeconfig", path}, args...))
	}()
	end = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	t.Cleanup(func() { end() })
	return shown, end
}

// says waits until a program has written the words.
func (s *screen) says(t *testing.T, words string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("shown is\n%s", s)
		}
	}()
	eventually(t, "people are shown "+words, func() bool { return strings.Contains(s.String(), words) })
}

// trouble keeps a chat from answering. before is what is done before the message is sent, and after what is done then.
type trouble struct {
	chat          func(c *v1beta1.Chat)
	before, after func(t *testing.T, ns string)
	// shown are the words that a person is shown.
	shown string
}

// replies answers the first attempt.
func replies(with ...chattest.Reply) func(t *testing.T, ns string) {
	return func(t *testing.T, ns string) {
		t.Helper()
		answers(t, assigned(t, ns, "c", 1, 1), with...)
	}
}

// workspacePod changes the status of the pod of the chat's workspace, as a kubelet or a scheduler does.
func workspacePod(change func(*corev1.PodStatus)) func(t *testing.T, ns string) {
	return func(t *testing.T, ns string) {
		t.Helper()
		create(t, toolTemplate(ns))
		answers(t, assigned(t, ns, "c", 1, 1), chattest.Works("call_1"))
		w := &v1beta1.Workspace{}
		pod := &corev1.Pod{}
		eventually(t, "the workspace has a pod", func() bool {
			return cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "c"}, w) == nil &&
				cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: template.Name(w)}, pod) == nil
		})
		change(&pod.Status)
		check.OK(t, cluster.Client.Status().Update(t.Context(), pod))
	}
}

var troubles = map[string]trouble{
	"a ChatModelConfig that does not exist": {
		chat:  func(c *v1beta1.Chat) { c.Spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: "nowhere"} },
		shown: "ModelConfigNotFound: ChatModelConfig nowhere"},
	"a ChatModelConfig that is disabled": {
		chat: func(c *v1beta1.Chat) { c.Spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: "off"} },
		before: func(t *testing.T, ns string) {
			create(t, modelConfig(ns, "off", func(s *v1beta1.ChatModelConfigSpec) { s.Disabled = true }))
		},
		shown: "ModelConfigDisabled: "},
	"no default ChatModelConfig": {
		before: func(t *testing.T, ns string) {
			remove(t, chattest.In(ns, chattest.Config("default")))
		},
		shown: "ModelConfigNotFound: "},
	"a ChatClass that does not exist": {
		chat:  func(c *v1beta1.Chat) { c.Spec.ChatClassName = "nowhere" },
		shown: "ChatClassNotFound: ChatClass nowhere"},
	"a parent that does not exist": {
		chat:  func(c *v1beta1.Chat) { c.Spec.ParentRef = &v1beta1.ChatReference{Name: "nobody"} },
		shown: "ParentNotFound: "},
	"a ResourceQuota": {
		before: func(t *testing.T, ns string) { noneOf(t, ns, corev1.ResourcePods) },
		shown:  "GenerationPodRejected: The API server refuses a generation pod: "},
	"a LimitRange": {
		before: func(t *testing.T, ns string) { tooSmall(t, ns) },
		shown:  "GenerationPodRejected: The API server refuses a generation pod: "},
	"a ChatQuota": {
		before: func(t *testing.T, ns string) {
			allow(t, ns, "one", 1)
			started(t, ns, "other", "first")
		},
		shown: "WaitingForCapacity: "},
	"a limit of the ChatModelConfig": {
		before: func(t *testing.T, ns string) {
			patch(t, configIn(t, ns, "default"), `{"spec":{"limits":{"concurrentCalls":1}}}`)
			started(t, ns, "other", "first")
		},
		shown: "WaitingForModel: ChatModelConfig default allows 1 concurrent call"},
	"a budget that is reached": {
		chat: func(c *v1beta1.Chat) {
			c.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "0"}}
		},
		shown: "BudgetReached: The chat has cost 0.00 USD, and its budget is 0 USD. Raise spec.limits.budget"},
	"a budget without prices": {
		chat: func(c *v1beta1.Chat) {
			c.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "1"}}
		},
		shown: "ModelPriceMissing: The chat has a budget in USD, but ChatModelConfig default has no prices in it"},
	"a suspension": {
		chat:  func(c *v1beta1.Chat) { c.Spec.Suspend = true },
		shown: "Suspended: Work is held until spec.suspend is false"},
	"an archive": {
		chat:  func(c *v1beta1.Chat) { c.Spec.Archived = true },
		shown: " is archived"},
	"an image of the generation pod that does not exist": {
		after: func(t *testing.T, ns string) {
			hasNoImage(t, ns, assigned(t, ns, "c", 1, 1).Status.Generation.Pod)
		},
		shown: "ImagePullBackOff"},
	"a model that fails": {
		after: replies(chattest.Fails(v1beta1.ErrorProviderUnavailable, chattest.ForNow, chattest.After(3600),
			func(e *v1beta1.GenerationError) { e.Message = "10.0.0.7 refused the connection" })),
		shown: "ProviderUnavailable: 10.0.0.7 refused the connection; attempt 1 failed"},
	"a call that needs approval": {
		after: replies(chattest.CallsOf(clock("call_1"))),
		shown: "call_1 (current_time) needs approval"},
	"a call that waits for a client": {
		after: replies(chattest.CallsOf(ticket("call_1"))),
		shown: "call_1 (open_ticket) needs a result"},
	"a call that asks for input": {
		after: func(t *testing.T, ns string) {
			replies(chattest.CallsOf(v1beta1.ToolCall{ID: "call_1", Name: "s__book", Input: `{}`}))(t, ns)
			answers(t, assigned(t, ns, "c", 2, 1), chattest.Asks("call_1"))
		},
		shown: ") asks for input:"},
	"a workspace whose image does not exist": {
		chat: func(c *v1beta1.Chat) { c.Spec.Workspace = working(c.Namespace, "c").Spec.Workspace },
		after: workspacePod(func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such tag"}}}}
		}),
		shown: "ImagePullBackOff"},
	"a workspace that no node has room for": {
		chat: func(c *v1beta1.Chat) { c.Spec.Workspace = working(c.Namespace, "c").Spec.Workspace },
		after: workspacePod(func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}
		}),
		shown: "0/3 nodes are available"},
	"an MCP server that is left out": {
		after: replies(chattest.Says("I could not look."), chattest.Without("tracker")),
		shown: "MCPServersUnavailable: TimedOut: The newest reply was made without the tools of MCP servers. tracker"},
}

func TestPluginShowsWhatAChatWaitsFor(t *testing.T) {
	t.Parallel()
	for name, c := range troubles {
		t.Run(name, func(t *testing.T) {
			ns := parallel(t)
			if c.before != nil {
				c.before(t, ns)
			}
			chat := chattest.In(ns, chattest.Chat("c"))
			if c.chat != nil {
				c.chat(chat)
			}
			create(t, chat)
			shown, end := plugin(t, ns, "send", "c", "hello")
			if c.after != nil {
				c.after(t, ns)
			}
			shown.says(t, c.shown)
			end()
			again, _ := plugin(t, ns, "show", "c")
			again.says(t, c.shown)
		})
	}
}

func TestPluginRepeatsTheWaitWhenItGivesUp(t *testing.T) {
	ns := parallel(t)
	chat := chattest.In(ns, chattest.Chat("c"))
	chat.Spec.Suspend = true
	create(t, chat)
	shown, _ := plugin(t, ns, "send", "c", "hello", "--timeout", "3s")
	shown.says(t, "waiting for the reply: Suspended: Work is held until spec.suspend is false")
}
