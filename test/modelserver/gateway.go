// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"net/http"
	"strings"
)

// gatewayDialect is OpenAI chat as gateways to other providers' models speak it: OpenRouter at /api/v1, Vercel's AI
// gateway at /vercel/v1. They say the reasoning in a field of their own, in the form of the provider that the model's
// name begins with, and OpenRouter keeps the connection busy with comments.
type gatewayDialect struct {
	chatDialect

	comments bool
}

func openRouter(*http.Request) dialect {
	return gatewayDialect{chatDialect: chatDialect{fileURLs: true}, comments: true}
}
func vercel(*http.Request) dialect { return gatewayDialect{} }

// reasoningDetail is one entry of reasoning_details.
type reasoningDetail struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	Summary   string `json:"summary,omitempty"`
	Data      string `json:"data,omitempty"`
	Signature string `json:"signature,omitempty"`
	ID        string `json:"id,omitempty"`
	Format    string `json:"format"`
	Index     int    `json:"index"`
}

// begunReasoning is a piece of reasoning as the model's own provider words it.
func begunReasoning(model, text string) reasoningDetail {
	switch maker, _, _ := strings.Cut(model, "/"); maker {
	case "openai":
		return reasoningDetail{Type: "reasoning.summary", Summary: text, Format: "openai-responses-v1"}
	case "google":
		return reasoningDetail{Type: "reasoning.text", Text: text, Format: "google-gemini-v1"}
	case "anthropic":
		return reasoningDetail{Type: "reasoning.text", Text: text, Format: "anthropic-claude-v1"}
	default:
		return reasoningDetail{Type: "reasoning.text", Text: text, Format: "unknown"}
	}
}

// endedReasoning is the provider's proof of the reasoning; false where there is none.
func endedReasoning(model string, b *block) (reasoningDetail, bool) {
	d := begunReasoning(model, "")
	switch d.Format {
	case "anthropic-claude-v1":
		d.Signature = b.signature()
	case "openai-responses-v1", "google-gemini-v1":
		d.Type, d.Data, d.ID = "reasoning.encrypted", b.signature(), b.id
	default:
		return d, false
	}
	return d, true
}

type gatewayStream struct {
	*chatStream

	comments bool
}

func (d gatewayDialect) stream(r *request, p *plan, out *sse) streamer {
	inner, _ := d.chatDialect.stream(r, p, out).(*chatStream)
	return gatewayStream{inner, d.comments}
}

func (s gatewayStream) open() {
	if s.comments {
		s.out.buf.WriteString(": OPENROUTER PROCESSING\n\n")
	}
	s.chatStream.open()
}

func (s gatewayStream) delta(index int, b *block, chunk string) {
	if b.kind != reasoningBlock {
		s.chatStream.delta(index, b, chunk)
		return
	}
	s.reason(chunk, begunReasoning(s.chunk.Model, chunk))
}

func (s gatewayStream) end(_ int, b *block) {
	if b.kind != reasoningBlock {
		return
	}
	if proof, ok := endedReasoning(s.chunk.Model, b); ok {
		s.reason("", proof)
	}
}

// reason sends a chunk with reasoning, which the protocol itself has no place for.
func (s gatewayStream) reason(text string, detail reasoningDetail) {
	s.out.event("", s.with(object{"delta": object{
		"role": "assistant", "content": "", "reasoning": text, "reasoning_details": []reasoningDetail{detail},
	}, "finish_reason": nil}))
}

func (s gatewayStream) with(choice object) object {
	choice["index"] = 0
	return object{
		"id": s.chunk.ID, "object": s.chunk.Object, "created": s.chunk.Created, "model": s.chunk.Model,
		"choices": []object{choice},
	}
}

// fail sends the error within a chunk.
func (s gatewayStream) fail(e apiError) {
	out := s.with(object{"delta": object{"content": ""}, "finish_reason": "error"})
	shape, _ := gatewayDialect{}.errorShape(e, "").(object)
	out["error"] = shape["error"]
	s.out.event("", out)
}

// errorShape has the status as its code.
func (gatewayDialect) errorShape(e apiError, _ string) any {
	e = e.complete(openAIErrors)
	return object{"error": object{"message": e.message, "code": e.status}}
}
