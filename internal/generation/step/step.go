// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package step performs the steps of chats: it calls the model for a reply or a summary, runs tools, and asks an
// advisor for them.
//
// Invariants: a step either yields what one ChatMessage holds or says why not, in words for people, and it accounts for
// every call that was made. It ends soon after its context does; if that was with ErrInterrupted, it hands over what
// there is by then. It writes nothing to the API server: what comes of it is its Outcome.
package step

import (
	"context"
	"log/slog"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
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

// ErrInterrupted ends the context of a step that is to hand over what it has.
var ErrInterrupted = tools.ErrInterrupted

// Interrupted reports whether the step that works in ctx is to hand over what it has.
func Interrupted(ctx context.Context) bool { return tools.Interrupted(ctx) }

// Options are what the steps of a pod share. All are required.
type Options struct {
	// Namespace of the chats.
	Namespace string
	// Models that may be called.
	Models *models.Models
	// Sources of instructions and files.
	Sources *sources.Reader
	// Message reads a message of the namespace; nil: it does not exist, or ctx is done.
	Message func(ctx context.Context, name string) *v1alpha1.ChatMessage
	// Tools that models may call.
	Tools *tools.Registry
	// WorkspaceContext reads what the workspace of a chat says about how to work in it; ok: it has answered.
	// Not required.
	WorkspaceContext func(ctx context.Context, chat *v1alpha1.Chat) (files []v1alpha1.MessageFile, ok bool)
	// ClusterUnavailable is why the model of a chat cannot work in the cluster; it returns nil if it can, or is not to.
	// nil: no chat is to.
	ClusterUnavailable func(ctx context.Context, chat *v1alpha1.Chat) *v1alpha1.KubernetesUnavailable
	// MCP are the servers whose tools chats may name; nil: none.
	MCP *mcp.Servers
	// Workspace is the agent of a chat's workspace, which runs the commands of MCP servers; the error says why there is
	// none. Not required.
	Workspace func(ctx context.Context, chat *v1alpha1.Chat) (*client.Client, error)
	// Now returns the current time.
	Now func() time.Time
	// PromptMemory is how many bytes of memory the large prompts of the calls under way may take together.
	PromptMemory int64
	// Expect is told of work that is to end soon after its context does; what it returns is called when the work is over.
	Expect func(ctx context.Context) (over func())
}

// Steps performs the steps of one pod. It is safe for concurrent use.
type Steps struct {
	options Options
	prompts limit.Limiter // bytes of memory of large prompts
}

// New returns steps.
func New(o Options) *Steps { return &Steps{options: o, prompts: limit.New(o.PromptMemory)} }

// Publisher shows what a step yields while it works.
type Publisher interface {
	// Publish shows a part. It neither waits nor fails.
	Publish(role string, p parts.Part)
}

// Task is the step that a chat's status asks for.
type Task struct {
	// Chat with the settings in force; see Steps.Settle.
	Chat *v1alpha1.Chat
	// Fence of the attempt.
	Fence fence.Fence
	// Observed is told what the step does.
	Observed *observe.Attempt
	// Log gets what operators need to see; never content.
	Log *slog.Logger
	// CommandsRefused is why MCP servers of the chat may not run in its workspace; empty if they may.
	CommandsRefused string
	// BeforeReply is called with the model that is about to be asked for a reply, and the history that it replies to.
	BeforeReply func(t *models.Target, messages []v1alpha1.ChatMessage)
}

// Performer performs one step, once.
type Performer struct {
	steps *Steps
	task  Task
	chat  *v1alpha1.Chat
	// target is the model that was called, if any.
	target *models.Target
	// context is how full the model's context was, compaction what a summary stands for; nil for other steps.
	context    *v1alpha1.ContextStatus
	compaction *v1alpha1.CompactionAccount
	// advice is what asking the advisor has used up.
	advice advice
	tools  toolset
	// left are the provider's own tools that the reply was made without.
	left []v1alpha1.ProviderToolUnavailable
	// judged says how the answer stands to the schema that was asked for; nil: it is no answer, or none was asked for.
	judged *v1alpha1.MessageOutput
	// noCluster is why the model that made the reply could not work in the cluster; nil: it could, or was not to.
	noCluster *v1alpha1.KubernetesUnavailable
}

// Performer returns what performs the step.
func (s *Steps) Performer(t Task) *Performer {
	return &Performer{steps: s, task: t, chat: t.Chat,
		tools: toolset{options: &s.options, chat: t.Chat, commandsRefused: t.CommandsRefused}}
}

// Outcome is how a step ended.
type Outcome struct {
	Kind v1alpha1.GenerationOutcome
	// Content is what it yielded, and what that used up.
	Content collect.Step
	// Err is why it failed.
	Err *v1alpha1.GenerationError
}

// Failed is the outcome of a step that yields nothing for that reason.
func Failed(err *v1alpha1.GenerationError) Outcome {
	return Outcome{Kind: v1alpha1.OutcomeFailed, Err: err}
}

// PaidFor is the failure of a step whose call is paid for all the same.
func (o Outcome) PaidFor(by collect.Step) Outcome {
	o.Content.Usage = by.Usage
	return o
}

// Prepare begins to ask the MCP servers of the chat what they offer: next to the reading of the history, which takes
// its time, too.
func (p *Performer) Prepare(ctx context.Context) { p.tools.prepare(ctx) }

// Perform performs the step on the history, for as long as ctx lasts, and shows what comes of it.
func (p *Performer) Perform(ctx context.Context, messages []v1alpha1.ChatMessage, to Publisher) Outcome {
	switch p.chat.Status.Generation.Action {
	case v1alpha1.ActionExecuteTools:
		return p.executeTools(ctx, messages, to)
	case v1alpha1.ActionCompact:
		return p.compact(ctx, messages, to)
	}
	return p.generate(ctx, messages, to)
}

// Resume is the outcome of a step that a former life of this process was performing when it ended, from what had been
// shown of it. Only what was interrupted, and batches of calls, are resumed.
func (p *Performer) Resume(ctx context.Context, messages []v1alpha1.ChatMessage, shown []parts.Frame) Outcome {
	if p.chat.Status.Generation.Action != v1alpha1.ActionExecuteTools || Interrupted(ctx) && len(messages) == 0 {
		return Outcome{Kind: v1alpha1.OutcomeInterrupted, Content: collect.FromFrames(shown)}
	}
	return p.resumeTools(ctx, messages, shown)
}

// Target is the model that was called; nil if none was.
func (p *Performer) Target() *models.Target { return p.target }

// Account says in the account of the step what came of it and what it used up.
func (p *Performer) Account(g *v1alpha1.MessageGeneration, o Outcome) {
	g.Truncated, g.ReplyOutcome, g.FinishReason = o.Content.Truncated, o.Content.ReplyOutcome, o.Content.FinishReason
	g.ResponseID, g.RequestID, g.ModelMilliseconds = o.Content.ResponseID, o.Content.RequestID,
		o.Content.Took.Milliseconds()
	g.Preview, g.Warnings = o.Content.Preview, o.Content.Warnings
	g.PendingCalls, g.CallsRequiringAction = o.Content.PendingCalls, o.Content.CallsRequiringAction
	g.WaitingFor, g.NeedsWorkspace, g.StoppedBy = o.Content.WaitingFor, o.Content.NeedsWorkspace, o.Content.StoppedBy
	g.Questions, g.Decisions, g.PlanApproved = o.Content.Questions, o.Content.Decisions, o.Content.PlanApproved
	g.Agents, g.Workspace, g.MCP = o.Content.Agents, o.Content.Workspace, p.tools.accountServers(o.Kind)
	g.ProviderToolsUnavailable, g.KubernetesUnavailable, g.Output = p.left, p.noCluster, p.judged
	if o.Kind != v1alpha1.OutcomeFailed {
		g.Context, g.Compaction = p.context, p.compaction
	}
	if p.target != nil {
		g.Model, g.Cost = p.target.Identity(), cost.Of(p.target.Config.Spec.Pricing, o.Content.Usage)
	}
	if o.Content.Usage != (v1alpha1.TokenUsage{}) {
		g.Usage = &o.Content.Usage
	}
	p.advice.account(g)
}
