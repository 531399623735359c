// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"google.golang.org/genai"
)

// geminiReply is a genai.GenerateContentResponse without its createTime, which that type always writes.
type geminiReply struct {
	Candidates    []*genai.Candidate                          `json:"candidates"`
	UsageMetadata *genai.GenerateContentResponseUsageMetadata `json:"usageMetadata"`
	ModelVersion  string                                      `json:"modelVersion"`
	ResponseID    string                                      `json:"responseId"`
}

// geminiErrors are what the guide to the provider's errors says about each status.
var geminiErrors = map[int]apiError{
	http.StatusBadRequest: {kind: "INVALID_ARGUMENT", message: "Request contains an invalid argument."},
	http.StatusUnauthorized: {kind: "UNAUTHENTICATED",
		message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other " +
			"valid authentication credential."},
	http.StatusForbidden: {kind: "PERMISSION_DENIED",
		message: "Your API key doesn't have the required permissions."},
	http.StatusNotFound: {kind: "NOT_FOUND", message: "Requested entity was not found."},
	http.StatusTooManyRequests: {kind: "RESOURCE_EXHAUSTED",
		message: "You exceeded your current quota, please check your plan and billing details. Please retry in 7s."},
	http.StatusInternalServerError: {kind: "INTERNAL",
		message: "An internal error has occurred. Please retry or report in " +
			"https://developers.generativeai.google/guide/troubleshooting"},
	http.StatusServiceUnavailable: {kind: "UNAVAILABLE", message: "The model is overloaded. Please try again later."},
	http.StatusGatewayTimeout:     {kind: "DEADLINE_EXCEEDED", message: "The request timed out. Please try again."},
}

func (geminiDialect) requestIDHeader() string { return "X-Goog-Request-Id" }

func (geminiDialect) errorShape(e apiError, _ string) any {
	var details []map[string]any
	if e.code != "" {
		details = append(details, object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": e.code,
			"domain": "googleapis.com", "metadata": object{"service": "generativelanguage.googleapis.com"}})
	}
	// This provider says in the body when to come back.
	if e.retry != nil && e.retry.Seconds != nil {
		details = append(details, object{"@type": "type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay": fmt.Sprint(time.Duration(*e.retry.Seconds) * time.Second)})
	}
	e = e.complete(geminiErrors)
	return object{"error": genai.APIError{Code: e.status, Message: e.message, Status: e.kind, Details: details}}
}

func (geminiDialect) contextTooLong() apiError {
	return *refuse("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", usedTokens, maxTokens)
}

func (geminiDialect) wrongKey(key string) apiError {
	if key == "" {
		return apiError{
			status: http.StatusForbidden,
			message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key " +
				"or other form of API consumer identity to call this API.",
		}
	}
	return apiError{status: http.StatusBadRequest, code: "API_KEY_INVALID", kind: "INVALID_ARGUMENT",
		message: "API key not valid. Please pass a valid API key."}
}

func (d geminiDialect) unknownModel(model string) apiError {
	return apiError{
		status: http.StatusNotFound,
		message: "models/" + model + " is not found for API version v1beta, or is not supported for " + d.method +
			". Call ListModels to see the list of available models and their supported methods.",
	}
}

func geminiFinish(f Finish) string {
	switch f {
	case FinishLength:
		return "MAX_TOKENS"
	case FinishContentFilter:
		return "SAFETY"
	default:
		return "STOP"
	}
}

// geminiUsage is the usage after some of the parts: the provider counts up from chunk to chunk, and counts the thoughts
// in addition to the candidates.
func (p *plan) geminiUsage(sent int) *genai.GenerateContentResponseUsageMetadata {
	output := p.usage.Output - p.usage.Reasoning
	if all := p.parts(); sent < all {
		output = output * sent / all
	}
	return &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount: int32(p.usage.Input), CachedContentTokenCount: int32(p.usage.Cached),
		CandidatesTokenCount: int32(output), ThoughtsTokenCount: int32(p.usage.Reasoning),
		TotalTokenCount: int32(p.usage.Input + p.usage.Reasoning + output),
	}
}

// signed reports whether the block carries a signature: what comes right after thoughts, and the first call of a reply.
func (p *plan) signed(index int) bool {
	if p.blocks[index].kind == reasoningBlock {
		return false
	}
	if index > 0 && p.blocks[index-1].kind == reasoningBlock {
		return true
	}
	return index == slices.IndexFunc(p.blocks, func(b block) bool { return b.kind == callBlock })
}

// geminiPart is a piece of the block; a call comes in one piece.
func (b *block) geminiPart(text string) *genai.Part {
	if b.kind != callBlock {
		return &genai.Part{Text: text, Thought: b.kind == reasoningBlock}
	}
	call := &genai.FunctionCall{ID: b.call.ID, Name: b.call.Name}
	_ = json.Unmarshal([]byte(b.text), &call.Args) // Malformed arguments are none: the protocol has objects only.
	return &genai.Part{FunctionCall: call}
}

func (b *block) geminiSignature() []byte { return append(slices.Clone(geminiMark), b.id...) }

type geminiStream struct {
	out   *sse
	plan  *plan
	reply geminiReply
	// sent is the number of parts so far; signing is whether the next piece carries the block's signature.
	sent    int
	signing bool
}

func (geminiDialect) stream(r *request, p *plan, out *sse) streamer {
	return &geminiStream{out: out, plan: p, reply: geminiReply{ModelVersion: r.model, ResponseID: newID("")}}
}

func (s *geminiStream) send(finish string, parts ...*genai.Part) {
	s.reply.Candidates = []*genai.Candidate{{Content: genai.NewContentFromParts(parts, genai.RoleModel),
		FinishReason: genai.FinishReason(finish)}}
	s.reply.UsageMetadata = s.plan.geminiUsage(s.sent)
	s.out.event("", &s.reply)
}

func (s *geminiStream) open() {}

func (s *geminiStream) begin(index int, _ *block) { s.signing = s.plan.signed(index) }

func (s *geminiStream) delta(_ int, b *block, chunk string) {
	s.sent++
	if b.kind == callBlock {
		return
	}
	s.piece(b, chunk)
}

func (s *geminiStream) piece(b *block, text string) {
	part := b.geminiPart(text)
	if s.signing {
		part.ThoughtSignature, s.signing = b.geminiSignature(), false
	}
	s.send("", part)
}

func (s *geminiStream) end(_ int, b *block) {
	if b.kind == callBlock {
		s.piece(b, "")
	}
}

func (s *geminiStream) close() {
	s.sent = s.plan.parts()
	s.send(s.plan.word(geminiFinish))
}

// fail writes the error between the events, as the provider does: it is no event itself.
func (s *geminiStream) fail(e apiError) {
	s.out.buf.Write(encode(geminiDialect{}.errorShape(e, "")))
	s.out.buf.WriteByte('\n')
}
