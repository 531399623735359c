// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/prompt/compaction"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/jsonschema"
)

// generate calls the model and collects its reply.
func (p *Performer) generate(ctx context.Context, messages []v1beta1.ChatMessage, to Publisher) Outcome {
	t, missing := p.steps.options.Models.Target(ctx, p.chat.Status.Generation.ModelConfig)
	if missing != nil {
		return Failed(missing)
	}
	p.target = t
	p.tools.awaitServers(ctx, messages) // Before the prompt, which holds memory.
	built, release, ended := p.prompt(ctx, t, compaction.View(messages))
	if ended != nil {
		return *ended
	}
	defer release()
	r := p.request(t, built)
	schema, invalid := p.applyTurn(ctx, &r, messages)
	if invalid != nil {
		return Failed(invalid)
	}
	r.warnings = append(r.warnings, p.tools.serverWarnings()...)
	p.unavailableTools = r.unavailable
	if unavailable := p.steps.options.ClusterUnavailable; unavailable != nil {
		p.unavailableCluster = unavailable(ctx, p.chat)
	}
	p.task.Observed.ClientResults(messages)
	p.task.BeforeReply(t, messages)
	o := p.ask(ctx, r, messages, publishAs(v1beta1.RoleAssistant, to))
	if o.Kind == v1beta1.OutcomeCompleted {
		o.Content = p.tools.withRequired(o.Content)
		p.output = checkOutput(schema, o.Content)
	}
	p.context = contextOf(p.chat, t, o.Content, messages)
	return o
}

// publishAs publishes parts under the role.
func publishAs(role v1beta1.MessageRole, to Publisher) func(parts.Part) {
	return func(part parts.Part) { to.Publish(string(role), part) }
}

func pendingCalls(s collect.Step) (calls []v1beta1.ToolCall) {
	for i := range s.Parts {
		if call := s.Parts[i].ToolCall; call != nil && !call.ProviderExecuted {
			calls = append(calls, *call)
		}
	}
	return calls
}

// contextOf is how full the context was for this reply.
func contextOf(
	chat *v1beta1.Chat, t *models.Target, s collect.Step, messages []v1beta1.ChatMessage,
) *v1beta1.ContextStatus {
	replies, compacted := compaction.Replies(messages)
	tokens := s.Usage.InputTokens + s.Usage.CacheReadTokens + s.Usage.CacheWriteTokens
	if tokens == 0 { // Some servers report only the total, which is in the context of the next call.
		tokens = s.Usage.TotalTokens
	}
	// An interrupted call has no usage.
	if before := chat.Status.Context; tokens == 0 && before != nil {
		tokens = before.Tokens
	}
	limit := limitOf(chat, t)
	return &v1beta1.ContextStatus{
		Tokens: tokens, Limit: limit.Tokens, LimitSource: limit.Source, Replies: replies + 1, Compacted: compacted,
	}
}

// limitOf is the limit of the target's context, if known.
func limitOf(chat *v1beta1.Chat, t *models.Target) modelconfig.Limit {
	return modelconfig.ContextLimit(t.Config, chat.Status.Internal.LearnedContextLimit)
}

// outputName is the name of the output for providers and models.
const outputName = "answer"

// maxOutputProblem limits the description of an invalid output, in bytes.
const maxOutputProblem = 4096

// applyTurn adds the settings of the turn's message to the request. It returns the schema of the output; nil: text.
func (p *Performer) applyTurn(ctx context.Context, r *request, messages []v1beta1.ChatMessage) (*jsonschema.Schema,
	*v1beta1.GenerationError) {
	format := p.chat.Spec.Output
	settings := wire.SettingsOf(&r.call)
	if message := p.turnMessage(ctx, messages); message != nil {
		format = cmp.Or(message.Spec.Output, format)
		settings.Stop = message.Spec.Stop
		if p.chat.Status.Turn.Steps == 0 { // A required call in each reply would never end the turn.
			r.call.ToolChoice = choiceOf(message.Spec.ToolChoice, r.call.Tools)
		}
	}
	var schema *jsonschema.Schema
	if format != nil {
		compiled, object, err := jsonschema.CompileOutput(format.Schema.Raw)
		if err != nil {
			return nil, &v1beta1.GenerationError{
				Reason:  v1beta1.ErrorOutputSchemaInvalid,
				Message: clip.Ellipsis("The schema of the output cannot be used: "+err.Error(), 512),
				Advice:  "Correct output.schema, then send a message to continue",
			}
		}
		schema, settings.Output = compiled, &wire.Output{Name: outputName, Schema: object}
	}
	r.call.ProviderOptions = settings.With()
	return schema, nil
}

// choiceOf converts the choice; nil: the model decides. A tool that is not offered cannot be called.
func choiceOf(choice *v1beta1.ToolChoice, offered []fantasy.Tool) *fantasy.ToolChoice {
	switch {
	case choice == nil, len(offered) == 0:
		return nil
	case choice.Type == v1beta1.ToolChoiceNone:
		return new(fantasy.ToolChoiceNone)
	case choice.Type == v1beta1.ToolChoiceRequired:
		return new(fantasy.ToolChoiceRequired)
	case slices.ContainsFunc(offered, func(t fantasy.Tool) bool { return t.GetName() == choice.Tool }):
		return new(fantasy.SpecificToolChoice(choice.Tool))
	}
	return nil
}

// turnMessage is the message that began the turn, which a summary can have replaced; nil if it was deleted.
func (p *Performer) turnMessage(ctx context.Context, messages []v1beta1.ChatMessage) *v1beta1.ChatMessage {
	turn := p.chat.Status.Turn
	if turn == nil {
		return nil
	}
	for i := range messages {
		if messages[i].Name == turn.Message {
			return &messages[i]
		}
	}
	return p.steps.options.Message(ctx, turn.Message)
}

// checkOutput checks an answer against the schema; nil for a reply that is no answer.
func checkOutput(schema *jsonschema.Schema, s collect.Step) *v1beta1.MessageOutput {
	switch {
	case schema == nil, s.PendingCalls > 0, s.ReplyOutcome == v1beta1.ReplyPaused:
		return nil
	case s.ReplyOutcome != v1beta1.ReplyComplete:
		return &v1beta1.MessageOutput{Problem: s.ReplyOutcome.Note()}
	}
	text := strings.TrimSpace(textOf(s.Parts))
	if problem := schema.Problems(text); problem != "" {
		return &v1beta1.MessageOutput{Problem: clip.Bytes(problem, maxOutputProblem)}
	}
	output := &v1beta1.MessageOutput{}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(text)) == nil && compact.Len() <= v1beta1.MaxOutputBytes {
		output.Value = &runtime.RawExtension{Raw: compact.Bytes()}
	}
	return output
}

func textOf(parts []v1beta1.MessagePart) string {
	return (&v1beta1.ChatMessageSpec{Parts: parts}).Text()
}
