// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"cmp"
	"encoding/base64"
	"time"

	"github.com/openai/openai-go/v3/responses"
)

// object is a JSON object to be sent. The types of OpenAI's library for a response and its items are for reading: they
// write all fields of all kinds.
type object = map[string]any

// responsesReply makes the objects of one reply.
type responsesReply struct {
	id      string
	created int64
	request *request
	plan    *plan
}

func newResponsesReply(r *request, p *plan) responsesReply {
	return responsesReply{id: newID("resp_"), created: time.Now().Unix(), request: r, plan: p}
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []object{}, "logprobs": []object{}}
}

func summaryText(text string) object { return object{"type": "summary_text", "text": text} }

// item is a block: as it is when it begins, or finished.
func (r responsesReply) item(b *block, finished bool) object {
	status, text, list := "in_progress", "", []object{}
	if finished {
		status, text = "completed", b.text
	}
	switch b.kind {
	case searchBlock:
		return responsesSearch(b, finished)
	case reasoningBlock:
		if finished {
			list = append(list, summaryText(text))
		}
		out := object{"id": b.id, "type": "reasoning", "summary": list}
		if r.request.encryptedReasoning {
			out["encrypted_content"] = base64.StdEncoding.EncodeToString([]byte("scripted:" + b.id))
		}
		return out
	case callBlock:
		return object{"id": b.id, "type": "function_call", "status": status, "arguments": text, "call_id": b.call.ID,
			"name": b.call.Name}
	}
	if finished {
		list = append(list, outputText(text))
	}
	return object{"id": b.id, "type": "message", "status": status, "content": list, "role": "assistant"}
}

func (r responsesReply) begun() object {
	return object{
		"id": r.id, "object": "response", "created_at": r.created, "status": "in_progress", "model": r.request.model,
		"output": []object{},
		"error":  nil, "incomplete_details": nil, "usage": nil, "parallel_tool_calls": true, "previous_response_id": nil,
		"store":        false,
		"instructions": nil, "metadata": object{}, "truncation": "disabled", "text": object{"format": object{"type": "text"}},
		"tool_choice": "auto", "tools": []object{}, "service_tier": "default",
	}
}

func (r responsesReply) finished() object {
	out := r.begun()
	output := []object{}
	for i := range r.plan.blocks {
		output = append(output, r.item(&r.plan.blocks[i], true))
	}
	out["output"] = output
	out["status"] = "completed"
	if reason := r.plan.incomplete(); reason != "" {
		out["status"], out["incomplete_details"] = "incomplete", object{"reason": reason}
	}
	u := r.plan.usage
	out["usage"] = responses.ResponseUsage{
		InputTokens:         int64(u.Input),
		InputTokensDetails:  responses.ResponseUsageInputTokensDetails{CachedTokens: int64(u.Cached)},
		OutputTokens:        int64(u.Output),
		OutputTokensDetails: responses.ResponseUsageOutputTokensDetails{ReasoningTokens: int64(u.Reasoning)},
		TotalTokens:         int64(u.Input + u.Output),
	}
	return out
}

// incomplete is why the reply is not whole, in the words of the protocol; empty if it is.
func (p *plan) incomplete() string {
	return p.word(func(f Finish) string {
		return map[Finish]string{FinishLength: "max_output_tokens", FinishContentFilter: "content_filter"}[f]
	})
}

type responsesStream struct {
	responsesReply
	out    *sse
	number int64
}

func (responsesDialect) stream(r *request, p *plan, out *sse) streamer {
	return &responsesStream{responsesReply: newResponsesReply(r, p), out: out}
}

func (s *responsesStream) next() int64 {
	s.number++
	return s.number - 1
}

func (s *responsesStream) send(kind string, data object) {
	data["type"], data["sequence_number"] = kind, s.next()
	s.out.event(kind, data)
}

// about sends an event about the content of a block.
func (s *responsesStream) about(kind string, index int, b *block, data object) {
	data["item_id"], data["output_index"] = b.id, index
	switch b.kind {
	case textBlock:
		data["content_index"] = 0
	case reasoningBlock:
		data["summary_index"] = 0
	}
	s.send(kind, data)
}

func (s *responsesStream) open() {
	s.send("response.created", object{"response": s.begun()})
	s.send("response.in_progress", object{"response": s.begun()})
}

func (s *responsesStream) begin(index int, b *block) {
	s.send("response.output_item.added", object{"output_index": index, "item": s.item(b, false)})
	switch b.kind {
	case searchBlock:
		for _, state := range []string{"in_progress", "searching", "completed"} {
			s.about("response.web_search_call."+state, index, b, object{})
		}
	case textBlock:
		s.about("response.content_part.added", index, b, object{"part": outputText("")})
	case reasoningBlock:
		s.about("response.reasoning_summary_part.added", index, b, object{"part": summaryText("")})
	}
}

func (s *responsesStream) delta(index int, b *block, chunk string) {
	switch at := int64(index); b.kind {
	case textBlock:
		s.out.event("response.output_text.delta", responses.ResponseTextDeltaEvent{SequenceNumber: s.next(), ItemID: b.id,
			OutputIndex: at, Delta: chunk, Logprobs: []responses.ResponseTextDeltaEventLogprob{}})
	case reasoningBlock:
		s.out.event("response.reasoning_summary_text.delta", responses.ResponseReasoningSummaryTextDeltaEvent{
			SequenceNumber: s.next(), ItemID: b.id, OutputIndex: at, Delta: chunk})
	case callBlock:
		s.out.event("response.function_call_arguments.delta", responses.ResponseFunctionCallArgumentsDeltaEvent{
			SequenceNumber: s.next(), ItemID: b.id, OutputIndex: at, Delta: chunk})
	}
}

func (s *responsesStream) end(index int, b *block) {
	switch b.kind {
	case textBlock:
		s.about("response.output_text.done", index, b, object{"text": b.text, "logprobs": []object{}})
		s.about("response.content_part.done", index, b, object{"part": outputText(b.text)})
	case reasoningBlock:
		s.about("response.reasoning_summary_text.done", index, b, object{"text": b.text})
		s.about("response.reasoning_summary_part.done", index, b, object{"part": summaryText(b.text)})
	case callBlock:
		s.about("response.function_call_arguments.done", index, b, object{"name": b.call.Name, "arguments": b.text})
	}
	s.send("response.output_item.done", object{"output_index": index, "item": s.item(b, true)})
}

func (s *responsesStream) close() {
	kind := "response.completed"
	if s.plan.incomplete() != "" {
		kind = "response.incomplete"
	}
	s.send(kind, object{"response": s.finished()})
}

func (s *responsesStream) fail(e apiError) {
	e = e.complete(openAIErrors)
	s.send("error", object{"code": cmp.Or(e.code, e.kind), "message": e.message, "param": nil})
}

// failed ends the reply as one that failed.
func (s *responsesStream) failed(e apiError) {
	e = e.complete(openAIErrors)
	reply := s.begun()
	reply["status"], reply["error"] = "failed", object{"code": cmp.Or(e.code, e.kind), "message": e.message}
	s.send("response.failed", object{"response": reply})
}
