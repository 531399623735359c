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

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/jsonschema"
)

// outputName is the name of the output for providers and models.
const outputName = "answer"

// maxOutputProblem is how many bytes of what is wrong with an output are kept.
const maxOutputProblem = 4096

// output is the form that the answer of the turn is to have.
type output struct {
	schema *jsonschema.Schema
	asked  *wire.Output
}

// wishes is what the chat and the message that began the turn ask of a reply besides its text.
func (p *Performer) wishes(ctx context.Context, r *request, messages []v1alpha1.ChatMessage) (*output,
	*v1alpha1.GenerationError) {
	format := p.chat.Spec.Output
	settings := wire.SettingsOf(&r.call)
	if message := p.turnMessage(ctx, messages); message != nil {
		format = cmp.Or(message.Spec.Output, format)
		settings.Stop = message.Spec.Stop
		if p.chat.Status.Turn.Steps == 0 { // A choice that counted for each reply would keep the turn from its end.
			r.call.ToolChoice = choiceOf(message.Spec.ToolChoice, r.call.Tools)
		}
	}
	o, err := newOutput(format)
	if err != nil {
		return nil, err
	}
	if o != nil {
		settings.Output = o.asked
	}
	r.call.ProviderOptions = settings.With()
	return o, nil
}

// choiceOf is the choice as a call has it; nil: the model decides. A tool that is not offered cannot be called.
func choiceOf(choice *v1alpha1.ToolChoice, offered []fantasy.Tool) *fantasy.ToolChoice {
	switch {
	case choice == nil, len(offered) == 0:
		return nil
	case choice.Type == v1alpha1.ToolChoiceNone:
		return new(fantasy.ToolChoiceNone)
	case choice.Type == v1alpha1.ToolChoiceRequired:
		return new(fantasy.ToolChoiceRequired)
	case slices.ContainsFunc(offered, func(t fantasy.Tool) bool { return t.GetName() == choice.Tool }):
		return new(fantasy.SpecificToolChoice(choice.Tool))
	}
	return nil
}

// newOutput is the form that the format names; nil: text.
func newOutput(format *v1alpha1.OutputFormat) (*output, *v1alpha1.GenerationError) {
	if format == nil {
		return nil, nil
	}
	schema, object, err := jsonschema.CompileOutput(format.Schema.Raw)
	if err != nil {
		return nil, schemaError(err.Error())
	}
	return &output{schema, &wire.Output{Name: outputName, Schema: object}}, nil
}

func schemaError(why string) *v1alpha1.GenerationError {
	return &v1alpha1.GenerationError{
		Reason:  v1alpha1.ErrorOutputSchemaInvalid,
		Message: clip.Ellipsis("The schema of the output cannot be used: "+why, 512),
		Advice:  "Correct output.schema, then send a message to continue",
	}
}

// turnMessage is the message that began the turn; nil if there is none any more. A summary can stand for it.
func (p *Performer) turnMessage(ctx context.Context, messages []v1alpha1.ChatMessage) *v1alpha1.ChatMessage {
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

// judge says how the answer stands to the schema; nil for a reply that is none.
func (o *output) judge(s collect.Step) *v1alpha1.MessageOutput {
	switch {
	case o == nil, s.PendingCalls > 0, s.ReplyOutcome == v1alpha1.ReplyPaused:
		return nil
	case s.ReplyOutcome != v1alpha1.ReplyComplete:
		return &v1alpha1.MessageOutput{Problem: s.ReplyOutcome.Note()}
	}
	text := strings.TrimSpace(textOf(s.Parts))
	if problem := o.schema.Problems(text); problem != "" {
		return &v1alpha1.MessageOutput{Problem: clip.Bytes(problem, maxOutputProblem)}
	}
	judged := &v1alpha1.MessageOutput{}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(text)) == nil && compact.Len() <= v1alpha1.MaxOutputBytes {
		judged.Value = &runtime.RawExtension{Raw: compact.Bytes()}
	}
	return judged
}

// textOf is the text of a reply.
func textOf(parts []v1alpha1.MessagePart) string {
	var b strings.Builder
	for i := range parts {
		if parts[i].Type == v1alpha1.PartText && parts[i].Text != nil {
			b.WriteString(*parts[i].Text)
		}
	}
	return b.String()
}
