// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

const chatUID = "0f0f0f0f-0000-4000-8000-000000000001"

// counting is a tool that remembers the keys of its calls.
type counting struct {
	name string
	tools.Traits

	mu   sync.Mutex
	keys []string
}

func (t *counting) Definition() tools.Definition {
	return tools.Definition{Name: t.name, Traits: t.Traits}
}
func (t *counting) Run(ctx context.Context, call tools.Call) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys = append(t.keys, call.Key)
	if tools.Interrupted(ctx) {
		return "ended", nil
	}
	return "ran " + call.ID, ctx.Err()
}

// again is one whose calls may be made again, alone one that must be called alone.
func again(name string) *counting {
	return &counting{name: name, Traits: tools.Traits{Repeatable: true}}
}

func alone(name string) *counting {
	return &counting{name: name, Traits: tools.Traits{Exclusive: true}}
}

// attaching is one whose result comes with a file.
type attaching struct{ *counting }

func newAttaching(name string) attaching {
	return attaching{&counting{name: name, Traits: tools.Traits{Exclusive: true, Repeatable: true, AttachesFile: true}}}
}

func (a attaching) Run(ctx context.Context, call tools.Call) (string, error) {
	call.Attach(v1beta1.MessageFile{Name: "a.png", MediaType: "image/png", Data: "iVBO"})
	return a.counting.Run(ctx, call)
}

// performer performs the batch of a chat with these tools. It neither asks models nor reads anything.
func performer(all ...tools.Tool) *Performer {
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: chatUID}}
	chat.Status.Generation = &v1beta1.GenerationStatus{Action: v1beta1.ActionExecuteTools, Attempt: 1}
	of := fence.Fence{ChatUID: chatUID, HistoryVersion: 8, Attempt: 1}
	observer := observe.New(observe.Options{Tracer: tracing.Off(), Now: time.Now})
	_, observed := observer.Begin(context.Background(), chat, of)
	steps := New(Options{
		Tools: tools.NewRegistry(all...), Now: time.Now, Expect: func(context.Context) func() { return func() {} },
	})
	return steps.Performer(Task{Chat: chat, Fence: of, Observed: observed})
}

// replied is the history that ends with a reply of version 7, which calls the tools by these names; the ids of the
// calls are their numbers, from 1 on.
func replied(names ...string) []v1beta1.ChatMessage {
	reply := v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{
		Role: v1beta1.RoleAssistant, Generation: &v1beta1.MessageGeneration{ChatUID: chatUID, HistoryVersion: 7},
	}}
	for i, name := range names {
		call := &v1beta1.ToolCall{ID: fmt.Sprint(i + 1), Name: name, Input: "{}"}
		reply.Spec.Parts = append(reply.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartToolCall, ToolCall: call})
	}
	return []v1beta1.ChatMessage{reply}
}

// ended are frames of calls that had begun, and of those with these ids, ended.
func ended(ids ...string) (frames []parts.Frame) {
	at := time.Unix(1000, 0).UTC()
	for _, id := range []string{"1", "2", "3"} {
		frames = append(frames, parts.Frame{Role: "Tool", Part: parts.Part{Type: parts.ToolStart, ID: id, At: at}})
	}
	for _, id := range ids {
		frames = append(frames, parts.Frame{Role: "Tool",
			Part: parts.Part{Type: parts.ToolResult, ID: id, Name: "x", Text: "kept " + id, At: at}})
	}
	return frames
}

// outputs are the results of a step, in their order.
func outputs(o Outcome) (all []string) {
	for _, part := range o.Content.Parts {
		text := part.ToolResult.Output
		if part.ToolResult.IsError {
			text = "error: " + text
		}
		all = append(all, text)
	}
	return all
}

func TestCrashRepeatsIdempotentCallsOnly(t *testing.T) {
	const lost = "error: " + resultLost
	for name, c := range map[string]struct {
		calls       []string
		ended       []string
		interrupted bool
		kind        v1beta1.GenerationOutcome
		want        []string
		made        string
	}{
		"one that can be made again": {
			calls: []string{"once", "again"}, ended: []string{"1"}, kind: v1beta1.OutcomeCompleted,
			want: []string{"kept 1", "ran 2"}, made: "2",
		},
		"one that cannot": {
			calls: []string{"once", "once"}, ended: []string{"2"}, kind: v1beta1.OutcomeCompleted,
			want: []string{lost, "kept 2"},
		},
		"one of each, and one that had ended": {
			calls: []string{"again", "once", "again"}, ended: []string{"3"}, kind: v1beta1.OutcomeCompleted,
			want: []string{"ran 1", lost, "kept 3"}, made: "1",
		},
		"all had ended": {
			calls: []string{"again", "once"}, ended: []string{"1", "2"}, kind: v1beta1.OutcomeCompleted,
			want: []string{"kept 1", "kept 2"},
		},
		"none had ended": {calls: []string{"again", "again"}, kind: v1beta1.OutcomeLost},
		"calls in conflict": {
			calls: []string{"again", "alone"}, ended: []string{"2"}, kind: v1beta1.OutcomeCompleted,
			want: []string{`error: this call was skipped, because the same reply called tool "alone"`, "kept 2"},
		},
		"calls in conflict, of which none can be made again": {
			calls: []string{"once", "alone"}, ended: []string{"2"}, kind: v1beta1.OutcomeCompleted,
			want: []string{`error: this call was skipped, because the same reply called tool "alone"`, "kept 2"},
		},
		"the chat was interrupted": {
			calls: []string{"once", "again", "once"}, ended: []string{"1"}, interrupted: true,
			kind: v1beta1.OutcomeInterrupted, want: []string{"kept 1", "ended"}, made: "2",
		},
		"the chat was interrupted, and none had ended": {
			calls: []string{"again", "once"}, interrupted: true, kind: v1beta1.OutcomeInterrupted, want: []string{"ended"},
			made: "1",
		},
		"the chat was interrupted, and the calls are in conflict": {
			calls: []string{"stop", "once"}, interrupted: true, kind: v1beta1.OutcomeInterrupted,
			want: []string{"error: the call was interrupted", "error: the call was interrupted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			again, once, alone, stop := again("again"), &counting{name: "once"}, alone("alone"), deciding("stop")
			ctx, interrupt := context.WithCancelCause(t.Context())
			defer interrupt(nil)
			if c.interrupted {
				interrupt(ErrInterrupted)
			}
			o := performer(again, once, alone, stop).Resume(ctx, replied(c.calls...), ended(c.ended...))
			got := outputs(o)
			check.Equal(t, "kind, results", []any{c.kind, len(c.want)}, []any{o.Kind, len(got)})
			for i := range got {
				check.Contains(t, got[i], c.want[i])
			}
			want := ""
			if c.made != "" {
				want = chatUID + ".7." + c.made
			}
			check.Equal(t, "made again", want, strings.Join(again.keys, " "))
			check.Equal(t, "calls were made twice", 0, len(once.keys)+len(alone.keys)+len(stop.keys))
			if o.Content.Workspace != nil {
				t.Errorf("the workspace changes: %+v", o.Content.Workspace)
			}
		})
	}
}

func TestARefusedCallIsNotLost(t *testing.T) {
	history := replied("once", "again")
	history[0].Spec.Parts[0].ToolCall.Refusal = v1beta1.RefusalInputTruncated
	p := performer(again("again"), &counting{name: "once"})
	got := outputs(p.Resume(t.Context(), history, ended("2")))
	check.Equal(t, "results", 2, len(got))
	check.Contains(t, got[0], `error: tool "once" was not run: your reply reached its limit`)
}

func TestRepeatedCallKeepsItsFirstBeginning(t *testing.T) {
	o := performer(again("again"), &counting{name: "once"}).
		Resume(t.Context(), replied("once", "again"), ended("1"))
	part := o.Content.Parts[1]
	check.Equal(t, "began, ended later", []any{int64(1000), true},
		[]any{part.StartedAt.Unix(), part.FinishedAt.After(part.StartedAt.Time)})
}

func TestInterruptedBatchKeepsWhatWasShown(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(ErrInterrupted)
	o := performer().Resume(ctx, nil, ended("1"))
	check.Equal(t, "kind, results", []any{v1beta1.OutcomeInterrupted, []string{"kept 1"}}, []any{o.Kind, outputs(o)})
}

// showing is a tool that shows a text of a size, in pieces.
type showing struct {
	counting
	size int
}

func (t *showing) Run(_ context.Context, call tools.Call) (string, error) {
	for range t.size / 1024 {
		call.Show(strings.Repeat("x", 1024))
	}
	return "", errors.New("failed")
}

func TestWhatToolsShowLeavesRoomForTheirResults(t *testing.T) {
	to := &published{}
	performer(&showing{counting{name: "a"}, 2 << 20}, &showing{counting{name: "b"}, 2 << 20}).
		Perform(t.Context(), replied("a", "b"), to)
	shown, results := 0, 0
	for _, part := range to.all {
		switch part.Type {
		case parts.ToolOutput:
			shown += len(part.Text)
		case parts.ToolResult:
			results++
		}
	}
	check.Equal(t, "shown", []any{maxShown, 2}, []any{shown, results})
}

func TestAResultWhoseImagesWereLostSaysSo(t *testing.T) {
	p := performer(again("a"), again("b"))
	frames := ended("1", "2")
	for i := range frames {
		if part := &frames[i].Part; part.Type == parts.ToolResult && part.ID == "1" {
			part.Text = "look\n[image 1-1.png is attached]"
		}
	}
	got := outputs(p.Resume(context.Background(), replied("a", "b"), frames))
	check.Equal(t, "the results", []string{"look\n[image 1-1.png is attached]" + filesLost, "kept 2"}, got)
}
