// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
)

// Numbers of batches of sumBatches.
const (
	// ofTheTest is the first one whose command takes long.
	ofTheTest = 4
	// ofTheEdit is the one after it.
	ofTheEdit = 5
)

// step is a batch whose attempt has just begun.
type step struct {
	chat *v1beta1.Chat
	// number of the batch, from 0.
	number int
	// killed is true once something was killed during the step.
	killed bool
}

func TestTranscriptIsIdenticalDespiteKillsAtEachStep(t *testing.T) {
	localnode.Needed(t)
	for name, v := range map[string]struct {
		kill func(*world, *step)
		// kills is during how many steps it must have killed something.
		kills int
		// before is called before each step.
		before func(*world, *step)
	}{
		"the generator":                   {kill: killGenerator, kills: len(sumBatches())},
		"the manager":                     {kill: killTheManager, kills: len(sumBatches())},
		"the workspace's pod and kubelet": {kill: killKubelet, kills: 1, before: loseWorkspaceBeforeTheEdit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sums())
			events := w.watch()
			w.newSumChat("c")
			var spared []int
			steps := w.steps(events, "c", sumLength, v.before, v.kill)
			for _, s := range steps {
				if !s.killed {
					spared = append(spared, s.number)
				}
			}
			w.isGolden("c", sumGolden)
			check.Equal(t, spared, v.kills, len(steps)-len(spared))
		})
	}
}

// steps calls kill at the attempts at each batch of calls, as soon as a watch shows them, until it has killed
// something, and returns the batches once the chat is Ready with as many messages. The watch begins before the chat,
// which would otherwise be some steps ahead of it.
func (w *world) steps(events watch.Interface, chat string, length int64, before, kill func(*world, *step)) (
	steps []*step) {
	w.t.Helper()
	defer events.Stop()
	versions := map[int64]*step{}
	for event := range events.ResultChan() {
		now, ok := event.Object.(*v1beta1.Chat)
		if !ok || now.Name != chat {
			continue
		}
		if meta.IsStatusConditionTrue(now.Status.Conditions, v1beta1.ConditionReady) && now.Status.History.Length == length {
			return steps
		}
		switch g, s := now.Status.Generation, versions[now.Status.History.Version]; {
		case g == nil || g.Pod == "":
		case g.Action != v1beta1.ActionExecuteTools:
			if s == nil && before != nil {
				before(w, &step{chat: now, number: len(steps)})
			}
			versions[now.Status.History.Version] = &step{}
		default:
			if s == nil {
				s = &step{number: len(steps)}
				steps, versions[now.Status.History.Version] = append(steps, s), s
			}
			if s.chat = now; !s.killed {
				kill(w, s)
			}
		}
	}
	w.t.Fatalf("the chat did not come to its end:\n%s", w.describe())
	return nil
}

// watch shows the chats of the namespace as they change, for as long as the longest of these tests may take.
func (w *world) watch() watch.Interface {
	w.t.Helper()
	cfg, err := ctrl.GetConfig()
	check.OK(w.t, err)
	watching, err := client.NewWithWatch(cfg, client.Options{Scheme: c.Scheme()})
	check.OK(w.t, err)
	ctx, cancel := context.WithTimeout(w.t.Context(), 6*time.Minute)
	w.t.Cleanup(cancel)
	events, err := watching.Watch(ctx, &v1beta1.ChatList{}, client.InNamespace(w.ns))
	check.OK(w.t, err)
	return events
}

func loseWorkspaceBeforeTheEdit(w *world, s *step) {
	if s.number == ofTheEdit {
		w.loseWorkspace(s.chat.Name)
	}
}

// sumGolden is the transcript of sums.
const sumGolden = "sum.txt"

func TestModelWritesFixesServesAndRevisitsProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sums())
	w.newSumChat("c")
	w.ready("c", sumLength)
	w.isGolden("c", sumGolden)
}
