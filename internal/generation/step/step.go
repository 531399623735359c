// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package step performs the steps of chats: it calls the model for a reply or a summary, runs tools, and asks an
// advisor for them.
//
// Invariants: a step yields the content of one ChatMessage or an error for people, and accounts for each of its calls.
// It ends soon after its context; if the cause is ErrInterrupted, its Outcome has the content so far. It writes nothing
// to the API server.
package step

import (
	"context"
	"log/slog"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
)

// ErrInterrupted ends the context of a step whose partial content is wanted.
var ErrInterrupted = tools.ErrInterrupted

// Interrupted reports whether ErrInterrupted has ended ctx.
func Interrupted(ctx context.Context) bool { return tools.Interrupted(ctx) }

// Options of Steps. All are required but WorkspaceContext, ClusterUnavailable, MCP and Workspace.
type Options struct {
	Namespace string
	Models    *models.Models
	Sources   *sources.Reader
	// Message reads a message; nil: it does not exist, or ctx is done.
	Message func(ctx context.Context, name string) *v1beta1.ChatMessage
	Tools   *tools.Registry
	// WorkspaceContext reads the instructions and skills of a chat's workspace. ok is false if it does not answer.
	WorkspaceContext func(ctx context.Context, chat *v1beta1.Chat) (files []v1beta1.MessageFile, ok bool)
	// ClusterUnavailable returns why a chat's model cannot work in the cluster; nil if it can, or if it has no cluster.
	ClusterUnavailable func(ctx context.Context, chat *v1beta1.Chat) *v1beta1.KubernetesUnavailable
	MCP                *mcp.Servers
	// Workspace returns the agent of a chat's workspace, which runs the commands of MCP servers.
	Workspace func(ctx context.Context, chat *v1beta1.Chat) (*client.Client, error)
	Now       func() time.Time
	// PromptMemory limits the memory of the large prompts of all running calls, in bytes.
	PromptMemory int64
	// Expect monitors work that must end soon after its context. The returned function reports its end.
	Expect func(ctx context.Context) (over func())
}

// Steps performs the steps of one pod. It is safe for concurrent use.
type Steps struct {
	options Options
	prompts limit.Limiter // of the memory of large prompts
}

// New returns steps.
func New(o Options) *Steps { return &Steps{options: o, prompts: limit.New(o.PromptMemory)} }

// Publisher shows the parts of a step.
type Publisher interface {
	// Publish shows a part. It neither waits nor fails.
	Publish(role string, p parts.Part)
}

// Task is the step that a chat's status asks for.
type Task struct {
	// Chat with the settings in force; see Steps.Settle.
	Chat     *v1beta1.Chat
	Fence    fence.Fence
	Observed *observe.Attempt
	// Log gets what operators need to see; never content.
	Log *slog.Logger
	// CommandsRefused is why MCP servers of the chat may not run in its workspace; empty if they may.
	CommandsRefused string
	// BeforeReply is called before the model is asked for a reply to the messages.
	BeforeReply func(t *models.Target, messages []v1beta1.ChatMessage)
}

// Performer performs one step, once.
type Performer struct {
	steps *Steps
	task  Task
	chat  *v1beta1.Chat
	// target is the model that was called, if any.
	target *models.Target
	tools  toolset
	// advice is the account of the advisor.
	advice advice
	// The others are fields of the step's account.
	context            *v1beta1.ContextStatus
	compaction         *v1beta1.CompactionAccount
	output             *v1beta1.MessageOutput
	unavailableTools   []v1beta1.ProviderToolUnavailable
	unavailableCluster *v1beta1.KubernetesUnavailable
}

// Performer returns a performer of the task.
func (s *Steps) Performer(t Task) *Performer {
	return &Performer{steps: s, task: t, chat: t.Chat,
		tools: toolset{options: &s.options, chat: t.Chat, commandsRefused: t.CommandsRefused}}
}

// Outcome is how a step ended.
type Outcome struct {
	Kind    v1beta1.GenerationOutcome
	Content collect.Step
	Err     *v1beta1.GenerationError
}

// Failed is the outcome of a step that fails with the error.
func Failed(err *v1beta1.GenerationError) Outcome {
	return Outcome{Kind: v1beta1.OutcomeFailed, Err: err}
}

// PaidFor is the outcome with the usage of the content, which is paid for even if the step fails.
func (o Outcome) PaidFor(content collect.Step) Outcome {
	o.Content.Usage = content.Usage
	return o
}

// Prepare begins to list the tools of the chat's MCP servers, while the history is loaded.
func (p *Performer) Prepare(ctx context.Context) { p.tools.prepare(ctx) }

// Perform performs the step on the history until ctx is done, and publishes its parts.
func (p *Performer) Perform(ctx context.Context, messages []v1beta1.ChatMessage, to Publisher) Outcome {
	switch p.chat.Status.Generation.Action {
	case v1beta1.ActionExecuteTools:
		return p.executeTools(ctx, messages, to)
	case v1beta1.ActionCompact:
		return p.compact(ctx, messages, to)
	}
	return p.generate(ctx, messages, to)
}

// Resume is the outcome of a step that a former process of this pod has begun, from the parts that it has published.
// Only interrupted steps and batches of calls are resumed.
func (p *Performer) Resume(ctx context.Context, messages []v1beta1.ChatMessage, shown []parts.Frame) Outcome {
	if p.chat.Status.Generation.Action != v1beta1.ActionExecuteTools || Interrupted(ctx) && len(messages) == 0 {
		return Outcome{Kind: v1beta1.OutcomeInterrupted, Content: collect.FromFrames(shown)}
	}
	return p.resumeTools(ctx, messages, shown)
}

// Target is the model that was called; nil if none was.
func (p *Performer) Target() *models.Target { return p.target }

// Account returns the account of the step, without the attempt.
func (p *Performer) Account(o Outcome) *v1beta1.MessageGeneration {
	g := &o.Content.MessageGeneration
	g.MCP, g.Output = p.tools.accountServers(o.Kind), p.output
	g.ProviderToolsUnavailable, g.KubernetesUnavailable = p.unavailableTools, p.unavailableCluster
	if o.Kind != v1beta1.OutcomeFailed {
		g.Context, g.Compaction = p.context, p.compaction
	}
	if p.target != nil {
		g.Model, g.Cost = p.target.Identity(), cost.Of(p.target.Config.Spec.Pricing, o.Content.Usage)
	}
	if o.Content.Usage != (v1beta1.TokenUsage{}) {
		g.Usage = &o.Content.Usage
	}
	p.advice.account(g)
	return g
}
