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
	"parley.dev/parley/test/modelserver"
)

// departures are the ways in which a pod loses a chat, and whether it is deleted with that.
var departures = map[string]struct {
	leave func(c *conversation)
	gone  bool
}{
	"deleted": {func(c *conversation) {
		if err := cluster.Client.Delete(c.t.Context(), c.chat); err != nil {
			c.t.Fatal(err)
		}
	}, true},
	"deleted with a finalizer": {func(c *conversation) {
		c.chat.Finalizers = []string{"example.com/hold"}
		if err := cluster.Client.Update(c.t.Context(), c.chat); err != nil {
			c.t.Fatal(err)
		}
		if err := cluster.Client.Delete(c.t.Context(), c.chat); err != nil {
			c.t.Fatal(err)
		}
	}, true},
	"given to another pod": {func(c *conversation) {
		c.write(func(s *v1alpha1.ChatStatus) { s.Generation.Attempt, s.Generation.Pod = 2, "generation-1" })
	}, false},
	"taken away": {func(c *conversation) {
		c.write(func(s *v1alpha1.ChatStatus) { s.Generation = nil })
	}, false},
}

func TestAnAttemptEndsWhenItsChatGoes(t *testing.T) {
	t.Parallel()
	for name, departure := range departures {
		t.Run(name, func(t *testing.T) {
			c := hanging(t, nil)
			result := c.resultName()
			left := time.Now()
			departure.leave(c)
			c.aborted()
			if took := time.Since(left); took > time.Second {
				t.Errorf("the call was aborted after %s", took)
			}
			c.stop()
			if c.message(result) != nil {
				t.Error("an attempt that was cancelled wrote a result")
			}
		})
	}
}

// waitingCall is a chat, a sub-chat if it has a parent, whose one call waits until its context ends. The channel has
// whether it was told then that its chat was interrupted.
func waitingCall(t *testing.T, change func(*v1alpha1.ChatSpec)) (*conversation, <-chan bool) {
	t.Helper()
	begun, told := make(chan struct{}), make(chan bool, 1)
	p := startPod(t, modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{
		{ToolCalls: []modelserver.ToolCall{{Name: "wait", Arguments: []byte(`{}`)}}},
	}}}}}, func(_ *pod, o *runner.Options) {
		o.Tools = tools.NewRegistry(doing{"wait", func(ctx context.Context, _ func(string)) error {
			close(begun)
			<-ctx.Done()
			told <- tools.Interrupted(ctx)
			return ctx.Err()
		}})
	})
	c := p.newChat("waits", change)
	c.ask("waits-prompt", "Wait.")
	c.commit(c.result(), v1alpha1.ActionExecuteTools)
	<-begun
	return c, told
}

func TestACallIsInterruptedWithinASecondWhenItsChatIsDeletedAndLeftToTheNextAttemptOtherwise(t *testing.T) {
	for kind, change := range map[string]func(*v1alpha1.ChatSpec){
		"a chat":           nil,
		"a sub-chat alone": func(s *v1alpha1.ChatSpec) { s.ParentRef = &v1alpha1.ChatReference{Name: "above"} },
	} {
		for name, departure := range departures {
			t.Run(kind+" is "+name, func(t *testing.T) {
				c, told := waitingCall(t, change)
				result := c.resultName()
				left := time.Now()
				departure.leave(c)
				if interrupted := <-told; interrupted != departure.gone {
					t.Errorf("the call was told that its chat was interrupted: %t", interrupted)
				}
				if took := time.Since(left); took > time.Second {
					t.Errorf("the call was ended after %s", took)
				}
				c.stop()
				if c.message(result) != nil {
					t.Error("an attempt that was cancelled wrote a result")
				}
			})
		}
	}
}
