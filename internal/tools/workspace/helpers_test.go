// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeworkspace"
)

// key is that of the calls of tests.
const key = fakeworkspace.Chat + ".7.call_1"

// only is a Workspaces that has one, or an error.
type only struct {
	client *client.Client
	err    error
}

func (o only) Of(context.Context, *v1beta1.Chat) (*client.Client, error) { return o.client, o.err }

// bench is the tools at one workspace.
type bench struct {
	t     *testing.T
	agent *fakeworkspace.Agent
	tools map[string]tools.Tool
	chat  *v1beta1.Chat
	ctx   context.Context
	// interrupt interrupts the chat.
	interrupt func()
	// calls makes the keys of calls differ: those of the same number are the same call.
	calls int
	// alive is told that a call is at work.
	alive func()
	// again is whether calls may have been made before.
	again bool

	mu    sync.Mutex
	shown []string
	// shownAt is when each piece was shown.
	shownAt []time.Time
	// attached are the files that came with results.
	attached []v1beta1.MessageFile
}

// second is how long a second of a tool's timeouts lasts here.
const second = 20 * time.Millisecond

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchAt(t, fakeworkspace.Start(t))
}

// newBenchAt is the tools at the workspace of this agent.
func newBenchAt(t *testing.T, agent *fakeworkspace.Agent) *bench {
	t.Helper()
	b := &bench{t: t, agent: agent, chat: &v1beta1.Chat{}, alive: func() {}}
	b.chat.UID = fakeworkspace.Chat
	b.use(Options{Workspaces: only{client: agent.Client()}, Now: time.Now})
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	b.ctx, b.interrupt = ctx, func() { cancel(tools.ErrInterrupted) }
	return b
}

// use makes the tools again, with seconds that pass quickly.
func (b *bench) use(o Options) { b.have(quick(Tools(o))) }

// have gives the bench these tools.
func (b *bench) have(all []tools.Tool) {
	b.tools = map[string]tools.Tool{}
	for _, tool := range all {
		b.tools[tool.Definition().Name] = tool
	}
}

// inHours is the tools at a workspace in a bubble of package synctest: seconds are as long as ever, and pass at once.
func inHours(t *testing.T, change func(*client.Options)) *bench {
	t.Helper()
	agent := fakeworkspace.StartInMemory(t)
	b := newBenchAt(t, agent)
	o := agent.Options()
	o.Pauses = nil // As they are by default.
	change(&o)
	b.have(Tools(Options{Workspaces: only{client: client.New(o)}, Now: time.Now}))
	return b
}

// quick has the waits of the tools pass quickly.
func quick(all []tools.Tool) []tools.Tool {
	all[0].(execute).timeout = func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, d/(time.Second/second)) // They all share it.
	}
	return all
}

// call makes a call and returns its result, decoded.
func (b *bench) call(tool, input string) (map[string]any, error) {
	b.t.Helper()
	text, err := b.tools[tool].Run(b.ctx, tools.Call{
		ToolCall: v1beta1.ToolCall{ID: "call_1", Input: input}, Key: b.key(),
		Chat: b.chat, Again: b.again, Alive: b.alive, Show: func(piece string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.shown, b.shownAt = append(b.shown, piece), append(b.shownAt, time.Now())
		},
		Attach: func(file v1beta1.MessageFile) bool {
			b.attached = append(b.attached, file)
			return true
		},
	})
	if err != nil {
		check.Equal(b.t, "result with an error", "", text)
		return nil, err
	}
	var result map[string]any
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		b.t.Fatalf("the result is no JSON: %v\n%.500s", err, text)
	}
	if len(text) > tools.ResultLimitOf(b.chat) {
		b.t.Errorf("the result has %d bytes", len(text))
	}
	return result, nil
}

// key is that of the next call.
func (b *bench) key() string {
	if b.calls == 0 {
		return key
	}
	return fmt.Sprint(key, "-", b.calls)
}

// good makes a call that must succeed.
func (b *bench) good(tool, input string) map[string]any {
	b.t.Helper()
	result, err := b.call(tool, input)
	if err != nil {
		b.t.Fatalf("%s %s: %v", tool, input, err)
	}
	return result
}

// fail makes a call that must fail, and returns its error.
func (b *bench) fail(tool, input string) string {
	b.t.Helper()
	result, err := b.call(tool, input)
	if err == nil {
		b.t.Fatalf("%s %s: %v", tool, input, result)
	}
	return err.Error()
}

// containing is a field that has a part.
type containing string

// fields compares some fields of a result; nil: there is none.
func fields(t *testing.T, got, want map[string]any) {
	t.Helper()
	for name, value := range want {
		part, isPart := value.(containing)
		if isPart && !has(got[name], string(part)) || !isPart && got[name] != value {
			t.Errorf("%s is %v, want %v: %v", name, got[name], value, got)
		}
	}
}

// seen is what was shown while calls ran.
func (b *bench) seen() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.shown, "")
}

// has reports whether a text is part of a value.
func has(value any, part string) bool {
	text, ok := value.(string)
	return ok && strings.Contains(text, part)
}
