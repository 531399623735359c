// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// departures are the ways in which a pod loses a chat, and whether it is deleted with that.
var departures = map[string]struct {
	leave func(c *conversation)
	gone  bool
}{
	"deleted": {func(c *conversation) {
		check.OK(c.t, cluster.Client.Delete(c.t.Context(), c.chat))
	}, true},
	"deleted with a finalizer": {func(c *conversation) {
		c.chat.Finalizers = []string{"example.com/hold"}
		check.OK(c.t, cluster.Client.Update(c.t.Context(), c.chat))
		check.OK(c.t, cluster.Client.Delete(c.t.Context(), c.chat))
	}, true},
	"given to another pod": {func(c *conversation) {
		c.write(func(s *v1alpha1.ChatStatus) { s.Generation.Attempt, s.Generation.Pod = 2, "generation-1" })
	}, false},
	"taken away": {func(c *conversation) {
		c.write(func(s *v1alpha1.ChatStatus) { s.Generation = nil })
	}, false},
}

// left checks that the attempt ends within a second when its chat goes, and writes nothing.
func (c *conversation) left(leave func(*conversation), ended func()) {
	c.t.Helper()
	result, began := c.resultName(), time.Now()
	leave(c)
	ended()
	if took := time.Since(began); took > time.Second {
		c.t.Errorf("the call ended after %s", took)
	}
	c.stop()
	check.Equal(c.t, "the result", nil, c.message(result))
}

func TestAttemptAndTitleEndWhenTheirChatGoes(t *testing.T) {
	t.Parallel()
	script := hangs()
	script.Rules = append([]modelserver.Rule{{Match: modelserver.Match{ToolOffered: "set_title"},
		Reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}}}}, script.Rules...)
	for name, departure := range departures {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, script, nil)
			c := p.newChat("goes", nil)
			c.config = "captioned"
			c.ask("goes-u", "hello")
			p.eventually("both calls are under way", func() bool { return p.models.InFlight() == 2 })
			c.left(departure.leave, func() {
				p.eventually("no call is under way", func() bool { return p.models.InFlight() == 0 })
			})
		})
	}
}

// waitingTool is a tool whose calls wait until their context ends, and then tell whether their chat was interrupted.
type waitingTool struct{ begun, told chan bool }

func (waitingTool) Definition() tools.Definition {
	return tools.Definition{Name: "wait", InputSchema: map[string]any{"type": "object"}}
}

func (w waitingTool) Run(ctx context.Context, _ tools.Call) (string, error) {
	w.begun <- true
	<-ctx.Done()
	w.told <- tools.Interrupted(ctx)
	return "", ctx.Err()
}

func TestOnlyDeletionOfTheChatInterruptsACall(t *testing.T) {
	t.Parallel()
	for _, parent := range []string{"", "above"} {
		for name, departure := range departures {
			t.Run(name+" below "+parent, func(t *testing.T) {
				tool := waitingTool{make(chan bool, 1), make(chan bool, 1)}
				p := startPod(t, reply(modelserver.Call("wait", `{}`)), func(_ *pod, o *runner.Options) {
					o.Tools = tools.NewRegistry(tool)
				})
				c := p.newChat("waits", func(s *v1alpha1.ChatSpec) {
					if parent != "" {
						s.ParentRef = &v1alpha1.ChatReference{Name: parent}
					}
				})
				c.ask("waits-prompt", "Wait.")
				c.commit(c.result(), v1alpha1.ActionExecuteTools)
				<-tool.begun
				c.left(departure.leave, func() { check.Equal(t, "interrupted", departure.gone, <-tool.told) })
			})
		}
	}
}
