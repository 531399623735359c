// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// kubectl runs kubectl as the administrator.
func kubectl(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(ctx, cmp.Or(os.Getenv("KUBECTL"), "kubectl"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestDrainedNodeLosesNoTurn drains the node of the leading manager and of the generation pod while a model answers.
// That takes 50 s for most chats, which a pod that is deleted has, and 100 s for one.
func TestDrainedNodeLosesNoTurn(t *testing.T) {
	drained := leader(t).Spec.NodeName
	other := otherNode(t, drained)
	t.Cleanup(func() { kubectl(context.Background(), t, "uncordon", drained, other) })
	kubectl(t.Context(), t, "cordon", drained) // The model runs on the other node,
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "at length"}, Times: 1, Reply: words(1000, 100*time.Millisecond)},
		{Match: modelserver.Match{LastUserText: "hello"}, Reply: words(500, 100*time.Millisecond)},
		{Reply: say("At last.")},
	}})
	kubectl(t.Context(), t, "uncordon", drained)
	kubectl(t.Context(), t, "cordon", other) // and the generation pod on the one that is drained.
	const chats = 4
	for i := range chats {
		w.newChat(fmt.Sprint("c-", i), "hello")
	}
	w.newChat("long", "Tell me at length.")
	w.eventually("the model answers all", func() bool { return len(w.requests()) == chats+1 })
	first := w.chat("long").Status.Generation.Pod
	kubectl(t.Context(), t, "uncordon", other)

	least := watchAvailability(t)
	kubectl(t.Context(), t, "drain", drained, "--force", "--delete-emptydir-data", "--timeout=150s")
	for component, n := range least() {
		if n < 1 {
			t.Errorf("no %s was ready for a time", component)
		}
	}
	for i := range chats {
		name := fmt.Sprint("c-", i)
		w.ready(name, 2)
		if g := w.history(name)[1].Spec.Generation; g.Pod != first || g.Attempt != 1 {
			t.Errorf("%s was answered by attempt %d in %s", name, g.Attempt, g.Pod)
		}
		w.say(name, name+"-more", "And then?")
		w.ready(name, 4)
	}
	w.ready("long", 2)
	if g := w.history("long")[1].Spec.Generation; g.Pod == first || g.Attempt != 2 {
		t.Errorf("the long reply is of attempt %d in %s", g.Attempt, g.Pod)
	}
	check.Equal(t, "calls of the model: two for each chat, of which one was cut", 2*chats+2, len(w.requests()))
}

// otherNode is another node of the cluster.
func otherNode(t *testing.T, than string) string {
	t.Helper()
	var nodes corev1.NodeList
	check.OK(t, c.List(t.Context(), &nodes))
	for i := range nodes.Items {
		if name := nodes.Items[i].Name; name != than {
			return name
		}
	}
	t.Skip("the cluster has one node: make test-drain starts one with two")
	return ""
}

// watchAvailability counts managers and gateways that are ready until least is called, which returns the least of each.
func watchAvailability(t *testing.T) (least func() map[string]int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	seen := map[string]int{"manager": 2, "gateway": 2}
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			for component := range seen {
				var pods corev1.PodList
				err := c.List(ctx, &pods, client.InNamespace("parley-system"),
					client.MatchingLabels{"app.kubernetes.io/component": component})
				if err != nil {
					continue
				}
				ready := 0
				for i := range pods.Items {
					for _, s := range pods.Items[i].Status.ContainerStatuses {
						if s.Ready && pods.Items[i].DeletionTimestamp == nil {
							ready++
						}
					}
				}
				seen[component] = min(seen[component], ready)
			}
			<-time.After(50 * time.Millisecond)
		}
	})
	return func() map[string]int { stop(); watching.Wait(); return seen }
}
