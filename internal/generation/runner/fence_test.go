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
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/stream/publish"
	parleyrelay "parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/test/modelserver"
)

// hangs is a model that says a word to the first request and then nothing; later requests get an answer.
func hangs() modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{{Name: "hang", Times: 1, Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Say("Well", ", never.")},
		Fault: &modelserver.Fault{Kind: modelserver.FaultHang, After: new(1)},
	}}}}
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

func TestAnAttemptEndsWhenItsFenceMovesOn(t *testing.T) {
	t.Parallel()
	c := hanging(t, nil)
	first := c.resultName()
	c.write(func(s *v1alpha1.ChatStatus) { s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 2) })
	m := c.result()
	if m.Spec.Generation.Attempt != 2 || m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
		t.Errorf("got %+v", m.Spec.Generation)
	}
	c.aborted()
	c.stop()
	if c.message(first) != nil {
		t.Error("an attempt that was cancelled wrote a result")
	}
}

func TestEventsOfTheSameFenceChangeNothing(t *testing.T) {
	t.Parallel()
	script := hangs()
	script.Rules[0].Reply.Fault = nil
	script.Rules[0].Reply.DelayBetween = modelserver.Duration(300 * time.Millisecond)
	p := startPod(t, script, nil)
	c := p.newChat("edited", nil)
	c.ask("edited-u", "hello")
	if err := p.models.WaitForRequests(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.label("while-the-model-speaks")
	c.write(func(s *v1alpha1.ChatStatus) { s.LastReply = "something else" })
	if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
		t.Errorf("got %+v", m.Spec.Generation)
	}
	c.label("when-the-result-is-there")
	// The chat comes back with the fence that it had, as after a watch that was interrupted.
	again := *c.chat.Status.Generation
	c.write(func(s *v1alpha1.ChatStatus) { s.Generation = nil })
	c.write(func(s *v1alpha1.ChatStatus) { s.Generation = &again })
	p.settled()
	requests := p.models.Requests()
	if len(requests) != 2 || requests[0].Aborted { // the second is the one of settled
		t.Errorf("%d requests, the first aborted: %v", len(requests), requests[0].Aborted)
	}
}

// socketRelay serves a real relay on a unix socket and returns clients of it.
func socketRelay(t *testing.T) func(incarnation string) runner.Relay {
	t.Helper()
	dir := t.TempDir()
	store, err := parleyrelay.NewStore(parleyrelay.Options{MarkerDir: filepath.Join(dir, "episodes"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := parleyrelay.ListenLocal(filepath.Join(dir, "r.sock"))
	if err != nil {
		t.Fatal(err)
	}
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

func TestAnAttemptThatAFormerLifeBeganHandsOverWhatTheRelayHeardWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	relays := socketRelay(t)
	p := startPod(t, modelserver.Script{}, func(_ *pod, o *runner.Options) { o.Relay = relays("second-life") })
	c := p.newChat("crashed", nil)
	c.say("crashed-u", "hello")
	former := relays("first-life")
	name := fence.Fence{ChatUID: string(c.chat.UID), HistoryVersion: 1, Attempt: 1}
	opened, err := former.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	opened.Publish("Assistant", parts.Part{Type: parts.Text, ID: "0", Text: "Half of it"})
	if err := opened.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: "crashed-u"}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: "crashed-u", Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
		interrupt(s)
	})
	m := c.result()
	if g := m.Spec.Generation; g.Outcome != v1alpha1.OutcomeInterrupted || len(m.Spec.Parts) != 1 ||
		*m.Spec.Parts[0].Text != "Half of it" {
		t.Errorf("got %+v with %+v", g, m.Spec.Parts)
	}
}

func TestAnAttemptThatAFormerLifeBeganIsLost(t *testing.T) {
	t.Parallel()
	relays := socketRelay(t)
	p := startPod(t, modelserver.Script{}, func(_ *pod, o *runner.Options) { o.Relay = relays("second-life") })
	c := p.newChat("crashed", nil)
	former := relays("first-life")
	opened, err := former.Open(t.Context(), fence.Fence{ChatUID: string(c.chat.UID), HistoryVersion: 1, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close(context.Background()) }()
	c.ask("crashed-u", "hello")
	m := c.result()
	if g := m.Spec.Generation; g.Outcome != v1alpha1.OutcomeLost || g.Error != nil || len(m.Spec.Parts) != 0 {
		t.Errorf("got %+v with %d parts", g, len(m.Spec.Parts))
	}
	if n := len(p.models.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	c.write(func(s *v1alpha1.ChatStatus) { s.Generation.Attempt = 2 })
	if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
		t.Errorf("the next attempt ended %+v", m.Spec.Generation)
	}
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

func TestTroubleWithTheRelayDoesNotStopTheAnswer(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]runner.Relay{"absent": &relay{fail: errors.New("no such file")},
		"stuck": stuckRelay{}} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, modelserver.Script{}, func(_ *pod, o *runner.Options) { o.Relay = r })
			c := p.newChat("unheard", nil)
			c.ask("unheard-u", "hello")
			if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
				t.Errorf("got %+v", m.Spec.Generation)
			}
			if p.log.String() != "" {
				t.Errorf("logged %s", p.log)
			}
		})
	}
}

func TestDrainingFinishesWhatIsUnderWayAndTakesNothingNew(t *testing.T) {
	t.Parallel()
	script := hangs()
	script.Rules[0].Reply.Fault = nil
	script.Rules[0].Reply.DelayBetween = modelserver.Duration(500 * time.Millisecond)
	p := startPod(t, script, nil)
	c := p.newChat("last", nil)
	late := p.newChat("late", nil)
	c.ask("last-u", "hello")
	if err := p.models.WaitForRequests(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	p.drain()
	p.eventually("the pod is not ready", func() bool { return !p.runner.Ready() })
	late.ask("late-u", "too late")
	<-p.ended
	if m := c.message(c.resultName()); m == nil || m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
		t.Errorf("got %+v", m)
	}
	if n := len(p.models.Requests()); n != 1 || late.message(late.resultName()) != nil {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestTheHardEndOfThePodWritesNothing(t *testing.T) {
	t.Parallel()
	c := hanging(t, nil)
	c.stop()
	c.aborted()
	if c.message(c.resultName()) != nil {
		t.Error("an attempt that was cancelled wrote a result")
	}
}
