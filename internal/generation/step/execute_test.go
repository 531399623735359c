// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/base64"
	"testing"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

// deciding is a tool whose results stop the workspace.
func deciding(name string) *counting {
	return &counting{name: name, Traits: tools.Traits{Exclusive: true, Repeatable: true,
		ChangeWorkspace: func(v1beta1.ToolResult) *v1beta1.WorkspaceChange {
			return &v1beta1.WorkspaceChange{Stop: true}
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
			b := &batch{Batch: &tools.Batch{Chat: p.chat, Calls: []v1beta1.ToolCall{{ID: "1", Name: "a", Input: "{}"}}}}
			o := p.executed(c.ctx, b, p.steps.options.Tools.Execute(c.ctx, b.Batch, nil))
			g := p.Account(o)
			check.Equal(t, "the account stops", c.want, g.Workspace != nil && g.Workspace.Stop)
		})
	}
}

func TestAFileComesWithItsResult(t *testing.T) {
	p := performer(newAttaching("attach"))
	o := p.executeTools(t.Context(), replied("attach"), nobody{})
	got := o.Content.Parts
	check.Equal(t, "parts, types, file", []any{2, v1beta1.PartToolResult, v1beta1.PartFile, "a.png"},
		[]any{len(got), got[0].Type, got[1].Type, got[1].File.Name})
}

func TestFileOfAnEndedCallIsReadAgain(t *testing.T) {
	p := performer(newAttaching("attach"))
	check.Equal(t, "the step without its file", v1beta1.OutcomeLost,
		p.Resume(t.Context(), replied("attach"), ended("1")).Kind)
}

// nobody sees what a step yields while it works.
type nobody struct{}

func (nobody) Publish(string, parts.Part) {}

// Security (a hostile skill or AGENTS.md): can stay in the model's context after it was removed from the workspace,
// until someone refreshes the context, which reports the removal.
func TestContextOfTheWorkspaceIsReadOnRequest(t *testing.T) {
	file := func(name, data string) v1beta1.MessageFile {
		return v1beta1.MessageFile{Name: name, MediaType: "text/markdown", Data: data}
	}
	marked := func(version int64, files ...v1beta1.MessageFile) v1beta1.ChatMessage {
		m := v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleTool,
			Generation: &v1beta1.MessageGeneration{HistoryVersion: version,
				Workspace: &v1beta1.WorkspaceChange{ContextRead: true}}}}
		for _, f := range files {
			m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartFile, File: &f})
		}
		return m
	}
	agents, skills, photo := file("AGENTS.md", "b2xk"), file("SKILLS.md", "c2s="), file("photo.png", "iVBO")
	gone := "AGENTS.md " + base64.StdEncoding.EncodeToString([]byte(goneText))
	type messages = []v1beta1.ChatMessage
	type files = []v1beta1.MessageFile
	for name, c := range map[string]struct {
		history messages
		asked   int64
		now     files
		want    []string
		change  func(*Performer)
	}{
		"the first call in it": {nil, 0, files{agents}, []string{"AGENTS.md b2xk"}, nil},
		"a workspace that is silent": {nil, 0, nil, nil, func(p *Performer) {
			p.steps.options.WorkspaceContext = func(context.Context, *v1beta1.Chat) ([]v1beta1.MessageFile, bool) {
				return files{agents}, false
			}
		}},
		"a chat that has no workspace": {nil, 0, files{agents}, nil, func(p *Performer) {
			p.chat.Status.Internal.Attempt.HasWorkspace = false
		}},
		"a call that does not work there": {nil, 0, files{agents}, nil, func(p *Performer) {
			p.steps.options.Tools = tools.NewRegistry(&counting{name: "execute"})
		}},
		"nobody has asked":               {messages{marked(3, agents)}, 0, files{agents}, nil, nil},
		"it was read before the request": {messages{marked(3, agents)}, 5, files{agents}, []string{"AGENTS.md b2xk"}, nil},
		"it was being read when the request came": {messages{marked(5, agents)}, 5, files{agents},
			[]string{"AGENTS.md b2xk"}, nil},
		"it was read after the request": {messages{marked(3, agents), marked(6, agents)}, 5, files{agents}, nil, nil},
		"there is more than before": {messages{marked(3, agents)}, 5, files{agents, skills},
			[]string{"AGENTS.md b2xk", "SKILLS.md c2s="}, nil},
		"something is gone, and a file that was attached is not meant": {
			messages{marked(2, photo, agents, skills), marked(3, agents)}, 5, files{skills},
			[]string{"SKILLS.md c2s=", gone}, nil},
		"all is gone": {messages{marked(3, agents)}, 5, nil, []string{gone}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := performer(living("execute"))
			p.chat.Status.Internal.Attempt.HasWorkspace = true
			p.chat.Status.Internal.ContextRefreshedVersion = c.asked
			p.steps.options.WorkspaceContext = func(context.Context, *v1beta1.Chat) ([]v1beta1.MessageFile, bool) {
				return c.now, true
			}
			if c.change != nil {
				c.change(p)
			}
			o := p.executeTools(t.Context(), append(c.history, replied("execute")...), nobody{})
			var got []string
			for _, part := range o.Content.Parts {
				if part.File != nil {
					got = append(got, part.File.Name+" "+part.File.Data)
				}
			}
			check.Equal(t, "it reads", c.want, got)
			check.Equal(t, "it is marked", len(c.want) > 0, o.Content.Workspace != nil && o.Content.Workspace.ContextRead)
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
	p.chat.Spec.Tools = &v1beta1.ChatTools{ToolPolicy: v1beta1.ToolPolicy{Approval: []v1beta1.ToolPattern{"*"}}}
	s := p.tools.withRequired(collect.Step{Parts: replied("k8s_apply", "execute")[0].Spec.Parts})
	own, other := s.Parts[0].ToolCall, s.Parts[1].ToolCall
	check.Equal(t, "the calls", []any{"", v1beta1.RequiresApproval, 1},
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
