// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realpod"
	"parley.dev/parley/test/kit/waiting"
	"parley.dev/parley/test/modelserver"
)

const (
	toolSteps   = 200
	resultBytes = 50 << 10
	// contextLimit in tokens lets 56 results into the 70 % of a context that are filled before it is compacted, at the
	// scripted model's 4 bytes a token: 3 compactions in 200 steps.
	contextLimit = 1_000_000
	compactions  = 3
	// contextBytes is what a request may have: the results that fill 70 % of the context,
	// one more, and what is around them.
	contextBytes = contextLimit*4*70/100 + 2*resultBytes
)

// TestTurnOf200StepsRunsInBoundedMemory says what it measured with -v.
func TestTurnOf200StepsRunsInBoundedMemory(t *testing.T) {
	m, url := startModel(t, modelserver.Script{Rules: []modelserver.Rule{
		{Name: "summary", Match: modelserver.Match{LastUserText: "Write a summary"},
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Pages ", "were read.")}}},
		{Times: toolSteps,
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Next. "), modelserver.Call("read_page", "{}")}}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("That ", "was all.")}}},
	}})
	ns, tool := cluster.Namespace(t, "load"), &meter{}
	cluster.Create(t, chattest.In(ns, chattest.Config("default", chattest.Default, func(s *v1beta1.ChatModelConfigSpec) {
		s.BaseURL, s.ContextLimit = url, new(int64(contextLimit))
	})))
	cluster.Create(t, chattest.In(ns, chattest.Chat("long", chattest.Prompt("Read every page."))))
	var chat v1beta1.Chat
	waiting.Until(t, time.Minute, "the chat has a pod", func() bool {
		read(t, ns, "long", &chat)
		return chat.Status.Generation != nil
	})
	runPod(t, ns, chat.Status.Generation.Pod, tool)
	waiting.Until(t, 5*time.Minute, "the turn is over", func() bool {
		read(t, ns, "long", &chat)
		return chat.Status.Phase == v1beta1.ChatWaiting
	})
	checkHistory(t, &chat)
	checkRequests(t, m.requests())
	checkMemory(t, tool.quarters(), m.busy)
}

// runPod makes the pod ready, and does to the end of the test what the generator in it does.
func runPod(t *testing.T, ns, name string, tool tools.Tool) {
	t.Helper()
	var pod corev1.Pod
	read(t, ns, name, &pod)
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.Now()}}
	check.OK(t, cluster.Client.Status().Update(t.Context(), &pod))
	realpod.Run(t, cluster.Config, ns, name, tool)
}

// checkHistory checks that it was one turn, and that every step was committed once.
func checkHistory(t *testing.T, chat *v1beta1.Chat) {
	t.Helper()
	s := &chat.Status
	if s.Turn.Message != "long-prompt" || s.Turn.Result != v1beta1.TurnAnswered || s.Turn.Steps != toolSteps+1 ||
		s.LastReply != "That was all." {
		t.Errorf("the turn is %+v, the reply %q", s.Turn, s.LastReply)
	}
	var list v1beta1.ChatMessageList
	check.OK(t, cluster.Client.List(t.Context(), &list, client.InNamespace(chat.Namespace)))
	byName := map[string]*v1beta1.ChatMessage{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	nodes, err := history.Walk(history.RefOf(chat), func(name string) (history.Node, bool) {
		m := byName[name]
		if m == nil {
			return history.Node{}, false
		}
		return history.NodeOf(m), true
	}, nil)
	if err != nil || len(nodes) != len(list.Items) {
		t.Fatalf("%d of %d messages are the history: %v", len(nodes), len(list.Items), err)
	}
	roles, calls := map[v1beta1.MessageRole]int{}, map[string]int{}
	for _, n := range nodes {
		roles[byName[n.Name].Spec.Role]++
		for _, part := range byName[n.Name].Spec.Parts {
			if part.ToolCall != nil {
				calls[part.ToolCall.ID]++
			}
		}
	}
	want := map[v1beta1.MessageRole]int{
		v1beta1.RoleUser: 1, v1beta1.RoleAssistant: toolSteps + 1, v1beta1.RoleTool: toolSteps,
		v1beta1.RoleSystem: compactions,
	}
	for role, n := range want {
		check.Equal(t, role, n, roles[role])
	}
	check.Equal(t, "ids of calls", toolSteps, len(calls))
}

// checkRequests checks that the model took every request, and that each summary made the next one short.
func checkRequests(t *testing.T, asked []request) {
	t.Helper()
	if want := toolSteps + 1 + compactions; len(asked) != want {
		t.Errorf("the model was asked %d times, want %d", len(asked), want)
	}
	largest := int64(0)
	for i, r := range asked {
		largest = max(largest, r.bytes)
		if r.status != http.StatusOK {
			t.Errorf("request %d was answered with status %d", i, r.status)
		}
		if i > 0 && asked[i-1].summary && r.bytes > 2*resultBytes {
			t.Errorf("request %d, the first after a summary, has %d bytes", i, r.bytes)
		}
	}
	if largest > contextBytes {
		t.Errorf("a request had %d bytes, more than the %d that the context is for", largest, contextBytes)
	}
	t.Logf("the largest of %d requests had %.1f MiB", len(asked), mib(largest))
}

// checkMemory checks that the live heap of this process, manager, runner and model together, follows the context and
// not the history: by the last quarter that has grown by 7.3 MiB of results.
func checkMemory(t *testing.T, quarters [4]quarter, busy uint64) {
	t.Helper()
	first, last := quarters[0], quarters[3]
	for i, q := range quarters {
		t.Logf("steps %3d to %3d: at least %.1f MiB live between calls, %.1f ms of CPU a step", i*toolSteps/4+1,
			(i+1)*toolSteps/4, mib(q.heap), float64(q.cpu.Microseconds())/1000)
	}
	t.Logf("last to first quarter: memory %.2f, CPU a step %.2f; at most %.1f MiB live during a call",
		float64(last.heap)/float64(first.heap), float64(last.cpu)/float64(first.cpu), mib(busy))
	if grown := int64(last.heap) - int64(first.heap); grown > toolSteps*resultBytes/4 {
		t.Errorf("the live heap has grown by %.1f MiB from the first quarter to the last", mib(grown))
	}
}

func mib[N int64 | uint64](n N) float64 { return float64(n) / (1 << 20) }
