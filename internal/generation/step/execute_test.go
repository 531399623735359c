// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/base64"
	"testing"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

// deciding is a tool whose results stop the workspace.
func deciding(name string) *counting {
	return &counting{name: name, Traits: tools.Traits{Exclusive: true, Repeatable: true,
		ChangeWorkspace: func(v1alpha1.ToolResult) *v1alpha1.WorkspaceChange {
			return &v1alpha1.WorkspaceChange{Stop: true}
		}}}
}

func TestDecidingResultIsInTheStepsAccount(t *testing.T) {
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(ErrInterrupted)
	for name, c := range map[string]struct {
		tool tools.Tool
		ctx  context.Context
		want bool
	}{
		"a tool that decides":                {deciding("a"), t.Context(), true},
		"one that was interrupted and ended": {deciding("a"), interrupted, true},
		"another tool":                       {again("a"), t.Context(), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := performer(c.tool)
			b := &batch{Batch: &tools.Batch{Chat: p.chat, Calls: []v1alpha1.ToolCall{{ID: "1", Name: "a", Input: "{}"}}}}
			o := p.executed(c.ctx, b, p.steps.options.Tools.Execute(c.ctx, b.Batch, nil))
			g := p.Account(o)
			check.Equal(t, "the account stops", c.want, g.Workspace != nil && g.Workspace.Stop)
		})
	}
}

func TestAFileComesWithItsResult(t *testing.T) {
	p := performer(newAttaching("attach"))
	o := p.executeTools(t.Context(), replied("attach"), nobody{})
	if got := o.Content.Parts; len(got) != 2 || got[0].ToolResult == nil || got[1].File == nil ||
		got[1].Type != v1alpha1.PartFile || got[1].File.Name != "a.png" {
		t.Errorf("the step has %+v", got)
	}
}

func TestFileOfAnEndedCallIsReadAgain(t *testing.T) {
	p := performer(newAttaching("attach"))
	check.Equal(t, "the step without its file", v1alpha1.OutcomeLost,
		p.Resume(t.Context(), replied("attach"), ended("1")).Kind)
}

// nobody sees what a step yields while it works.
type nobody struct{}

func (nobody) Publish(string, parts.Part) {}

func TestContextOfTheWorkspaceIsReadOnce(t *testing.T) {
	tool := living("execute")
	read := 0
	agents := v1alpha1.MessageFile{Name: "AGENTS.md", MediaType: "text/markdown", Data: "IyBI"}
	had := replied("execute")
	had = append([]v1alpha1.ChatMessage{{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleTool,
		Generation: &v1alpha1.MessageGeneration{HistoryVersion: 3, Workspace: &v1alpha1.WorkspaceChange{ContextRead: true}},
	}}}, had...)
	for name, c := range map[string]struct {
		has     bool
		history []v1alpha1.ChatMessage
		silent  bool
		want    bool
	}{
		"the first call in it":            {true, replied("execute"), false, true},
		"a workspace that is silent":      {true, replied("execute"), true, false},
		"a call after that":               {true, had, false, false},
		"a chat that has no workspace":    {false, replied("execute"), false, false},
		"a call that does not work there": {true, replied("other"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := performer(tool, &counting{name: "other"})
			p.chat.Status.Internal.Attempt.HasWorkspace, read = c.has, 0
			p.steps.options.WorkspaceContext = func(context.Context, *v1alpha1.Chat) ([]v1alpha1.MessageFile, bool) {
				read++
				return []v1alpha1.MessageFile{agents}, !c.silent
			}
			o := p.executeTools(t.Context(), c.history, nobody{})
			marked := o.Content.Workspace != nil && o.Content.Workspace.ContextRead
			parts := 1
			if c.want {
				parts = 2
			}
			check.Equal(t, "marked, read once, parts", []any{c.want, c.want || c.silent, parts},
				[]any{marked, read == 1, len(o.Content.Parts)})
		})
	}
}

func TestContextOfTheWorkspaceIsReadOnRequest(t *testing.T) {
	tool := living("execute")
	file := func(name, data string) v1alpha1.MessageFile {
		return v1alpha1.MessageFile{Name: name, MediaType: "text/markdown", Data: data}
	}
	marked := func(version int64, files ...v1alpha1.MessageFile) v1alpha1.ChatMessage {
		m := v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleTool,
			Generation: &v1alpha1.MessageGeneration{HistoryVersion: version,
				Workspace: &v1alpha1.WorkspaceChange{ContextRead: true}}}}
		for _, f := range files {
			m.Spec.Parts = append(m.Spec.Parts, v1alpha1.MessagePart{Type: v1alpha1.PartFile, File: &f})
		}
		return m
	}
	agents, skills, photo := file("AGENTS.md", "b2xk"), file("SKILLS.md", "c2s="), file("photo.png", "iVBO")
	for name, c := range map[string]struct {
		shown []v1alpha1.ChatMessage
		asked int64
		now   []v1alpha1.MessageFile
		want  []string
	}{
		"nobody has asked": {[]v1alpha1.ChatMessage{marked(3, agents)}, 0, []v1alpha1.MessageFile{agents}, nil},
		"it was read before the request": {[]v1alpha1.ChatMessage{marked(3, agents)}, 5,
			[]v1alpha1.MessageFile{agents}, []string{"AGENTS.md b2xk"}},
		"it was being read when the request came": {[]v1alpha1.ChatMessage{marked(5, agents)}, 5,
			[]v1alpha1.MessageFile{agents}, []string{"AGENTS.md b2xk"}},
		"it was read after the request": {[]v1alpha1.ChatMessage{marked(3, agents), marked(6, agents)}, 5,
			[]v1alpha1.MessageFile{agents}, nil},
		"there is more than before": {[]v1alpha1.ChatMessage{marked(3, agents)}, 5,
			[]v1alpha1.MessageFile{agents, skills}, []string{"AGENTS.md b2xk", "SKILLS.md c2s="}},
		"something is gone, and a file that was attached is not meant": {
			[]v1alpha1.ChatMessage{marked(2, photo, agents, skills), marked(3, agents)}, 5, []v1alpha1.MessageFile{skills},
			[]string{"SKILLS.md c2s=", "AGENTS.md " + base64.StdEncoding.EncodeToString([]byte(goneText))}},
		"all is gone": {[]v1alpha1.ChatMessage{marked(3, agents)}, 5, nil,
			[]string{"AGENTS.md " + base64.StdEncoding.EncodeToString([]byte(goneText))}},
	} {
		t.Run(name, func(t *testing.T) {
			p := performer(tool)
			p.chat.Status.Internal.Attempt.HasWorkspace = true
			p.chat.Status.Internal.ContextRefreshedVersion = c.asked
			p.steps.options.WorkspaceContext = func(context.Context, *v1alpha1.Chat) ([]v1alpha1.MessageFile, bool) {
				return c.now, true
			}
			o := p.executeTools(t.Context(), append(c.shown, replied("execute")...), nobody{})
			var got []string
			for _, part := range o.Content.Parts {
				if part.File != nil {
					got = append(got, part.File.Name+" "+part.File.Data)
				}
			}
			check.Equal(t, "it reads", c.want, got)
		})
	}
}

// reviewing is a tool that asks people itself; it notes whether it was told that it may have run.
type reviewingTool struct {
	*counting
	told *bool
}

func reviewing(name string, told *bool) reviewingTool {
	return reviewingTool{&counting{name: name, Traits: tools.Traits{Repeatable: true, OwnsApproval: true}}, told}
}

func (p reviewingTool) Run(_ context.Context, call tools.Call) (string, error) {
	*p.told = call.Again
	return "ran " + call.ID, nil
}

func TestCallThatAsksPeopleNeedsNoApproval(t *testing.T) {
	p := performer(reviewing("k8s_apply", new(bool)), again("execute"))
	p.chat.Spec.Tools = &v1alpha1.ChatTools{ToolPolicy: v1alpha1.ToolPolicy{Approval: []v1alpha1.ToolPattern{"*"}}}
	s := p.tools.withRequired(collect.Step{Parts: replied("k8s_apply", "execute")[0].Spec.Parts})
	own, other := s.Parts[0].ToolCall, s.Parts[1].ToolCall
	check.Equal(t, "the calls", []any{"", v1alpha1.RequiresApproval, 1},
		[]any{own.RequiresAction, other.RequiresAction, s.CallsRequiringAction})
}

func TestCallIsToldItMayHaveRun(t *testing.T) {
	for name, c := range map[string]struct {
		attempt int32
		resumed bool
		want    bool
	}{
		"in a first attempt":              {attempt: 1},
		"in a second attempt":             {attempt: 2, want: true},
		"in another life of the same pod": {attempt: 1, resumed: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			told := !c.want
			p := performer(reviewing("k8s_delete", &told), again("other"))
			p.task.Fence.Attempt = c.attempt
			if c.resumed {
				p.Resume(t.Context(), replied("k8s_delete", "other"), ended("2"))
			} else {
				p.executeTools(t.Context(), replied("k8s_delete", "other"), nobody{})
			}
			check.Equal(t, "it was told", c.want, told)
		})
	}
}
