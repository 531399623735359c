// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/stream/publish"
	parleyrelay "parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// paris is a model that always says the same.
var paris = reply(modelserver.Say("Paris"))

// hangs is a model that says a word to the first request and then nothing; later requests get an answer.
func hangs() modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{{Name: "hang", Times: 1, Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Say("Well", ", never.")},
		Fault: &modelserver.Fault{Kind: modelserver.FaultHang, After: new(1)},
	}}, paris.Rules[0]}}
}

// hanging starts a pod that waits for such a model.
func hanging(t *testing.T, change func(*pod, *runner.Options)) *conversation {
	t.Helper()
	p := startPod(t, hangs(), change)
	c := p.newChat("slow", nil)
	c.ask("slow-u", "hello")
	p.eventually("the model has said a word", func() bool {
		text, _ := p.relay.heard(c.fence())
		return text == "Well"
	})
	return c
}

// aborted waits until the first request is over.
func (p *pod) aborted() {
	p.t.Helper()
	p.eventually("the request is aborted", func() bool { return p.models.Requests()[0].Aborted })
}

func TestAttemptEndsWhenItsFenceMovesOn(t *testing.T) {
	t.Parallel()
	c := hanging(t, nil)
	first := c.resultName()
	c.write(func(s *v1beta1.ChatStatus) { s.Generation = c.assignment(v1beta1.ActionGenerateAssistant, 2) })
	check.Equal(t, "the attempt", 2, int(c.ended("Completed: Paris").Spec.Generation.Attempt))
	c.aborted()
	c.stop()
	check.Equal(t, "the result of the first", nil, c.message(first))
}

func TestEventsOfTheSameFenceChangeNothing(t *testing.T) {
	t.Parallel()
	script := hangs()
	script.Rules[0].Reply.Fault = nil
	script.Rules[0].Reply.DelayBetween = modelserver.Duration(300 * time.Millisecond)
	p := startPod(t, script, nil)
	c := p.newChat("edited", nil)
	c.ask("edited-u", "hello")
	check.OK(t, p.models.WaitForRequests(t.Context(), 1))
	c.label("while-the-model-speaks")
	c.write(func(s *v1beta1.ChatStatus) { s.LastReply = "something else" })
	c.ended("Completed: Well, never.")
	c.label("when-the-result-is-there")
	// The chat comes back with the fence that it had, as after a watch that was interrupted.
	again := *c.chat.Status.Generation
	c.write(func(s *v1beta1.ChatStatus) { s.Generation = nil })
	c.write(func(s *v1beta1.ChatStatus) { s.Generation = &again })
	p.settled()
	requests := p.models.Requests()
	check.Equal(t, "requests, the second by settled; the first is aborted", []any{2, false},
		[]any{len(requests), requests[0].Aborted})
}

// socketRelay serves a real relay on a unix socket and returns clients of it.
func socketRelay(t *testing.T) func(incarnation string) runner.Relay {
	t.Helper()
	dir := t.TempDir()
	store, err := parleyrelay.NewStore(parleyrelay.Options{MarkerDir: filepath.Join(dir, "episodes"), Now: time.Now})
	check.OK(t, err)
	listener, err := parleyrelay.ListenLocal(filepath.Join(dir, "r.sock"))
	check.OK(t, err)
	server := &http.Server{Handler: parleyrelay.LocalHandler(store, nil)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return func(incarnation string) runner.Relay {
		return realRelay{publish.New(filepath.Join(dir, "r.sock"), incarnation, time.Now)}
	}
}

type realRelay struct{ client *publish.Client }

func (r realRelay) Open(ctx context.Context, name fence.Fence) (runner.Episode, error) {
	return r.client.Open(ctx, name)
}

func (r realRelay) SoFar(ctx context.Context, name fence.Fence) ([]parts.Frame, error) {
	return r.client.SoFar(ctx, name)
}

// crashed is a chat whose attempt of that version was begun by a former life of the pod, which left these parts behind.
func crashed(t *testing.T, script modelserver.Script, version int64, left ...parts.Part) *conversation {
	t.Helper()
	relays := socketRelay(t)
	p := startPod(t, script, func(_ *pod, o *runner.Options) { o.Relay = relays("second-life") })
	c := p.newChat("crashed", nil)
	opened, err := relays("first-life").
		Open(t.Context(), fence.Fence{ChatUID: string(c.chat.UID), HistoryVersion: version, Attempt: 1})
	check.OK(t, err)
	for _, part := range left {
		role := v1beta1.RoleTool
		if part.Type == parts.Text {
			role = v1beta1.RoleAssistant
		}
		opened.Publish(string(role), part)
	}
	check.OK(t, opened.Close(t.Context()))
	return c
}

func TestAttemptAFormerLifeBeganIsLost(t *testing.T) {
	t.Parallel()
	c := crashed(t, paris, 1)
	c.ask("crashed-u", "hello")
	c.ended("Lost")
	check.Equal(t, "calls", 0, len(c.models.Requests()))
	c.write(func(s *v1beta1.ChatStatus) { s.Generation.Attempt = 2 })
	c.ended("Completed: Paris")
}

func TestInterruptedAttemptHandsOverWhatItHas(t *testing.T) {
	t.Parallel()
	c := hanging(t, nil)
	c.write(interrupt)
	c.ended("Interrupted: Well")
	c.aborted()
	t.Log("One of a former life hands over what the relay heard; one that has not begun has nothing.")
	for version, want := range map[int64]string{1: "Interrupted: Half of it", 2: "Interrupted"} {
		c := crashed(t, paris, version, parts.Part{Type: parts.Text, ID: "0", Text: "Half of it"})
		c.ask("crashed-u", "hello", interrupt)
		c.ended(want)
		check.Equal(t, "calls", 0, len(c.models.Requests()))
	}
}

func TestCrashedBatchKeepsTheRelaysResults(t *testing.T) {
	t.Parallel()
	calls := []modelserver.ToolCall{{ID: "call_1", Name: "current_time"}, {ID: "call_2", Name: "current_time"}}
	c := crashed(t, reply(modelserver.Step{ToolCalls: calls}), 2,
		parts.Part{Type: parts.ToolStart, ID: "call_2", Name: "current_time"},
		parts.Part{Type: parts.ToolStart, ID: "call_1", Name: "current_time"},
		parts.Part{Type: parts.ToolResult, ID: "call_1", Name: "current_time", Text: "noon"})
	c.ask("crashed-u", "Do both.")
	c.commit(c.result(), v1beta1.ActionExecuteTools)
	m := c.ended("Completed: ")
	check.Equal(t, "the result that was there", "noon", m.Spec.Parts[0].ToolResult.Output)
	check.Contains(t, m.Spec.Parts[1].ToolResult.Output, "1970-01-01") // The clock may be read again.
}

// stuckRelay accepts and never answers.
type stuckRelay struct{}

func (stuckRelay) Open(ctx context.Context, _ fence.Fence) (runner.Episode, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (stuckRelay) SoFar(ctx context.Context, _ fence.Fence) ([]parts.Frame, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestRelayTroubleStopsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]runner.Relay{"absent": &relay{fail: errors.New("no such file")},
		"stuck": stuckRelay{}} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, paris, func(_ *pod, o *runner.Options) { o.Relay = r })
			c := p.newChat("unheard", nil)
			c.ask("unheard-u", "hello")
			c.ended("Completed: Paris")
			check.Equal(t, "the log", "", p.log.String())
		})
	}
}

func TestDrainFinishesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	script := hangs()
	script.Rules[0].Reply.Fault = nil
	script.Rules[0].Reply.DelayBetween = modelserver.Duration(500 * time.Millisecond)
	p := startPod(t, script, nil)
	c, late := p.newChat("last", nil), p.newChat("late", nil)
	c.ask("last-u", "hello")
	check.OK(t, p.models.WaitForRequests(t.Context(), 1))
	p.drain()
	p.eventually("the pod is not ready", func() bool { return !p.runner.Ready() })
	late.ask("late-u", "too late")
	<-p.ended
	c.ended("Completed: Well, never.")
	check.Equal(t, "the late result", nil, late.message(late.resultName()))
	check.Equal(t, "calls", 1, len(p.models.Requests()))
}

func TestDrainWaitsForNoTitle(t *testing.T) {
	t.Parallel()
	hang := modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}}
	p := startPod(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolOffered: "set_title"}, Reply: hang}, paris.Rules[0]}}, nil)
	c := p.newChat("c", nil)
	c.config = "captioned"
	c.ask("one", "Why?")
	c.ended("Completed: Paris")
	p.drain()
	select {
	case <-p.ended:
	case <-time.After(patience / 2): // The call itself may take as long as patience.
		t.Error("the pod waits for the title")
	}
}

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
		c.write(func(s *v1beta1.ChatStatus) { s.Generation.Attempt, s.Generation.Pod = 2, "generation-1" })
	}, false},
	"taken away": {func(c *conversation) {
		c.write(func(s *v1beta1.ChatStatus) { s.Generation = nil })
	}, false},
}

// left checks that the attempt ends when its chat goes, and writes nothing.
func (c *conversation) left(leave func(*conversation), ended func()) {
	c.t.Helper()
	result := c.resultName()
	leave(c)
	ended()
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
				c := p.newChat("waits", func(s *v1beta1.ChatSpec) {
					if parent != "" {
						s.ParentRef = &v1beta1.ChatReference{Name: parent}
					}
				})
				c.ask("waits-prompt", "Wait.")
				c.commit(c.result(), v1beta1.ActionExecuteTools)
				<-tool.begun
				c.left(departure.leave, func() { check.Equal(t, "interrupted", departure.gone, <-tool.told) })
			})
		}
	}
}
