// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

// written is a server with the tool "t" that answers each call with that JSON, whatever it is.
func written(result string) http.Handler {
	return answering(func(method string) any {
		switch method {
		case "tools/list":
			return listOf(toolNamed("t", nil))()
		case "tools/call":
			return json.RawMessage(result)
		}
		return nil
	})
}

func TestReadablePartsOfMalformedResultAreReturned(t *testing.T) {
	const ticket = `{"type":"text","text":"TICKET 77 CREATED"},`
	for name, c := range map[string]struct{ result, want string }{
		"a type that is unknown": {`{"content":[` + ticket + `{"type":"video","url":"x"}]}`,
			"TICKET 77 CREATED\n[content of type \"video\" was left out: its type is unknown]"},
		"no type": {`{"content":[{"text":"TICKET 77 CREATED"},{"x":1}]}`,
			"TICKET 77 CREATED\n[content was left out: it has no type]"},
		"a type that is no text": {`{"content":[` + ticket + `{"type":{"a":1}}]}`,
			"TICKET 77 CREATED\n[content of type \"{\\\"a\\\":1}\" was left out: its type is unknown]"},
		"an image that is no base64": {`{"content":[` + ticket + `{"type":"image","data":"%%%","mimeType":"image/png"}]}`,
			"TICKET 77 CREATED\n[an image was left out: its data is not base64]"},
		"an image that is a number": {`{"content":[` + ticket + `{"type":"image","data":7}]}`,
			"TICKET 77 CREATED\n[an image was left out: its data is not base64]"},
		"audio that is no base64": {`{"content":[` + ticket + `{"type":"audio","data":[1]}]}`,
			"TICKET 77 CREATED\n[audio was left out: its data is not base64]"},
		"a resource that is no base64": {`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"%"}}]}`,
			"[resource a:b was left out: its data is not base64]"},
		"a resource that is a text": {`{"content":[` + ticket + `{"type":"resource","resource":"a:b"}]}`,
			"TICKET 77 CREATED\n[a resource was left out: it is not an object]"},
		"a link with a wrong size": {`{"content":[{"type":"resource_link","uri":"a:b","name":7,"size":"1 KB"}]}`,
			"[resource a:b: 7]"},
		"content of null":          {`{"content":[` + ticket + `null]}`, "TICKET 77 CREATED\n[content was left out: it is null]"},
		"content that is a text":   {`{"content":["TICKET 77 CREATED",7]}`, "TICKET 77 CREATED\n7"},
		"an object for the list":   {`{"content":{"type":"text","text":"TICKET 77 CREATED"}}`, "TICKET 77 CREATED"},
		"a text for the list":      {`{"content":"TICKET 77 CREATED"}`, "TICKET 77 CREATED"},
		"null for the list":        {`{"content":null}`, "The call is done. Its result is empty."},
		"a text for the result":    {`"TICKET 77 CREATED"`, "TICKET 77 CREATED"},
		"a list for the result":    {`[{"type":"text","text":"TICKET 77 CREATED"}]`, "TICKET 77 CREATED"},
		"a number for the text":    {`{"content":[{"type":"text","text":9007199254740993}]}`, "9007199254740993"},
		"an object for the text":   {`{"content":[{"type":"text","text":{"id":9007199254740993}}]}`, `{"id":9007199254740993}`},
		"null for the text":        {`{"content":[{"type":"text","text":null}],"_meta":7}`, "The call is done. Its result is empty."},
		"annotations of no object": {`{"content":[{"type":"text","text":"a","annotations":[],"_meta":1}]}`, "a"},
		"no error":                 {`{"content":[{"type":"text","text":"a"}],"isError":"false"}`, "a"},
		"a text for the error":     {`{"content":[{"type":"text","text":"no such city"}],"isError":"true"}`, "failed: no such city"},
	} {
		t.Run(name, func(t *testing.T) {
			servers, _ := newServers(t, nil)
			returns(t, offer(t, servers, serve(t, written(c.result))), "s__t", "{}", c.want)
		})
	}
}

func TestImagesInOtherFormsOfBase64AreUsed(t *testing.T) {
	// These bytes have both characters in which base64url differs, and need padding.
	pixel := append(onePixel(t), 0xfb, 0xef, 0xbe, 0xff)
	for len(pixel)%3 != 1 {
		pixel = append(pixel, 0xff)
	}
	padded := base64.StdEncoding.EncodeToString(pixel)
	for name, data := range map[string]string{
		"padded":           padded,
		"unpadded":         base64.RawStdEncoding.EncodeToString(pixel),
		"base64url":        base64.URLEncoding.EncodeToString(pixel),
		"a data: URI":      "data:image/png;base64," + padded,
		"in several lines": padded[:20] + "\r\n " + padded[20:],
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(data)
			check.OK(t, err)
			servers, _ := newServers(t, nil)
			got := run(t, offer(t, servers, serve(t, written(fmt.Sprintf(`{"content":[{"type":"image","data":%s},`+
				`{"type":"resource","resource":{"uri":"a:b","blob":%[1]s}}]}`, raw)))), "s__t", "{}")
			file := func(name string) v1beta1.MessageFile {
				return v1beta1.MessageFile{Name: name, MediaType: "image/png", Data: padded}
			}
			check.Equal(t, "files", []v1beta1.MessageFile{file("call_1-1.png"), file("call_1-2.png")}, got.files)
			check.Equal(t, "text", "[image call_1-1.png is attached]\n[resource a:b]\n[image call_1-2.png is attached]",
				got.output)
		})
	}
}

func TestLargeIntegersOfResultsStayExact(t *testing.T) {
	const exact = `{"id":9007199254740993,"ids":[18446744073709551617],"pi":3.10}`
	servers, _ := newServers(t, nil)
	returns(t, offer(t, servers, serve(t, written(`{"content":[],"structuredContent":`+exact+`}`))), "s__t", "{}", exact)
}

func TestLargeIntegersOfQuestionsAndAnswersStayExact(t *testing.T) {
	servers, _ := newServers(t, nil)
	const asks = `{"resultType":"input_required","requestState":"sealed","inputRequests":{"who":{"method":` +
		`"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"id":` +
		`{"type":"integer","maximum":9007199254740993}}}}}}}`
	var q tools.Question
	_, _ = offer(t, servers, serve(t, written(asks))).Tools()[0].Run(t.Context(), asking(&q))
	if !strings.Contains(q.Requests, "9007199254740993") || q.State != "sealed" {
		t.Errorf("people are asked %+v", q)
	}
	sent := ""
	handler := stateless(booking())
	entry := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent, r.Body = string(body), io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	}))
	call := callOf("{}")
	call.Answer = &tools.Answer{Given: true, Content: `{"id":9007199254740993}`, Question: q}
	if _, err := offer(t, servers, entry).Tools()[0].Run(t.Context(), call); err != nil ||
		!strings.Contains(sent, `"content":{"id":9007199254740993}`) {
		t.Errorf("the server got %s, %v", sent, err)
	}
}

func TestStructuredContentRepeatedAsTextIsReturnedOnce(t *testing.T) {
	const block, image = `{"type":"text","text":%s}`, `{"type":"image","data":"AAAA"}`
	text := func(text string) string {
		raw, _ := json.Marshal(text)
		return fmt.Sprintf(block, raw)
	}
	for name, c := range map[string]struct{ content, structured, want string }{
		"the same with other spaces and order": {text("{\n \"b\": [1],\n \"a\": 2\n}"), `{"a":2.0,"b":[10e-1]}`, "{\n \"b\": [1],\n \"a\": 2\n}"},
		"another large integer":                {text(`{"id":9007199254740992}`), `{"id":9007199254740993}`, "{\"id\":9007199254740992}\n{\"id\":9007199254740993}"},
		"a text in a member":                   {text("a\nb"), `{"content":"a\nb"}`, "a\nb"},
		"another text in a member":             {text("a"), `{"content":"b"}`, "a\n{\"content\":\"b\"}"},
		"a value in a member":                  {text("5"), `{"result":5}`, "5"},
		"a list in a member, by texts":         {text("a") + "," + text(`{"x":1}`), `{"result":["a",{"x":1}]}`, "a\n{\"x\":1}"},
		"a list of which a part is in texts":   {text("a"), `{"result":["a","b"]}`, "a\n{\"result\":[\"a\",\"b\"]}"},
		"the content itself":                   {image, `{"content":[` + image + `]}`, "[an image of 3 bytes was left out: it is no PNG, JPEG, GIF or WebP]"},
		"numbers that are too long to compare": {text(`[1e999999999]`), `[1E999999999]`, "[1e999999999]\n[1E999999999]"},
		"null":                                 {text("a"), `null`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			servers, _ := newServers(t, nil)
			returns(t, offer(t, servers, serve(t, written(`{"content":[`+c.content+`],"structuredContent":`+c.structured+`}`))),
				"s__t", "{}", c.want)
		})
	}
}

func TestSessionProtocolVersionIsSentInHeaders(t *testing.T) {
	handler, versions := withSessions(everything(t)), make(chan string, 20)
	servers, _ := newServers(t, nil)
	run(t, offer(t, servers, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Session-Id") != "" {
			versions <- r.Header.Get("Mcp-Protocol-Version")
		}
		handler.ServeHTTP(w, r)
	}))), "s__empty", "{}")
	for len(versions) > 0 {
		if version := <-versions; version < "2025-06-18" || version >= "2026-07-28" {
			t.Errorf("a request says that the version is %q", version)
		}
	}
}

// booking is a server whose tool asks who books before it does.
func booking() *sdk.Server {
	s := newServer()
	tool(s, "book", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Params.InputResponses == nil {
			return &sdk.CallToolResult{RequestState: "sealed", InputRequests: sdk.InputRequestMap{
				"who": &sdk.ElicitParams{Message: "Who books?", RequestedSchema: map[string]any{"type": "object",
					"properties": map[string]any{"name": map[string]any{"type": "string"}}}},
			}}, nil
		}
		answer, _ := r.Params.InputResponses["who"].(*sdk.ElicitResult)
		said, err := json.Marshal([]any{r.Params.RequestState, answer})
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(said)}}}, err
	})
	return s
}

// asking is a call that keeps its question.
func asking(kept *tools.Question) tools.Call {
	call := callOf("{}")
	call.Ask = func(q tools.Question) bool {
		*kept = q
		return true
	}
	return call
}

func TestAnyPodRepeatsCallWithElicitationAnswer(t *testing.T) {
	entry := serve(t, stateless(booking()))
	first, _ := newServers(t, nil)
	var q tools.Question
	_, err := offer(t, first, entry).Tools()[0].Run(t.Context(), asking(&q))
	if !errors.Is(err, tools.ErrAsks) || q.State != "sealed" || !strings.Contains(q.Requests, "Who books?") {
		t.Fatalf("it asks %+v, %v", q, err)
	}
	for name, c := range map[string]struct {
		answer tools.Answer
		want   string
	}{
		"an answer":        {tools.Answer{Given: true, Content: `{"name":"Ada"}`}, `["sealed",{"action":"accept","content":{"name":"Ada"}}]`},
		"an empty answer":  {tools.Answer{Given: true}, `["sealed",{"action":"accept"}]`},
		"no answer":        {tools.Answer{}, `["sealed",{"action":"decline"}]`},
		"one that is none": {tools.Answer{Given: true, Content: `{"name"`}, "the input that a person gave is no JSON object"},
	} {
		second, _ := newServers(t, nil)
		call := asking(new(tools.Question))
		c.answer.Question = q
		call.Answer = &c.answer
		got, err := offer(t, second, entry).Tools()[0].Run(t.Context(), call)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestSeveralRequestsAreAnsweredByTheirIDs(t *testing.T) {
	s := newServer()
	tool(s, "book", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		said, err := json.Marshal(r.Params.InputResponses)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(said)}}}, err
	})
	servers, _ := newServers(t, nil)
	call := callOf("{}")
	call.Answer = &tools.Answer{Given: true, Content: `{"a":{"x":1}}`, Question: tools.Question{Requests: `{"a":{"method":` +
		`"elicitation/create","params":{"message":"A?"}},"b":{"method":"elicitation/create","params":{"message":"B?"}}}`}}
	got, err := offer(t, servers, serve(t, stateless(s))).Tools()[0].Run(t.Context(), call)
	check.OK(t, err)
	check.Equal(t, "responses", `{"a":{"action":"accept","content":{"x":1}},"b":{"action":"accept"}}`, got)
}

func TestElicitationFromSessionServerIsDeclined(t *testing.T) {
	s := newServer()
	tool(s, "book", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Who books?",
			RequestedSchema: map[string]any{"type": "object"}})
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: answer.Action}}}, nil
	})
	tool(s, "look", says("seen"))
	servers, _ := newServers(t, nil)
	offered := offer(t, servers, serve(t, withSessions(s)))
	got := run(t, offered, "s__book", "{}")
	check.OK(t, got.err)
	check.Contains(t, got.output, "decline\n[The server asked people for input")
	returns(t, offered, "s__look", "{}", "seen")
}

func TestUnsupportedElicitationIsAnError(t *testing.T) {
	asks := func(result *sdk.CallToolResult) http.Handler {
		s := newServer()
		tool(s, "book", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return result, nil })
		return stateless(s)
	}
	form := &sdk.ElicitParams{Message: "Who?", RequestedSchema: map[string]any{"type": "object"}}
	files := sdk.InputRequestMap{"a": &sdk.ListRootsParams{}} //nolint:staticcheck // Servers may ask for them until 2027.
	for name, c := range map[string]struct {
		result *sdk.CallToolResult
		says   string
	}{
		"it is busy":        {&sdk.CallToolResult{InputRequests: sdk.InputRequestMap{}}, "the server is busy"},
		"it asks for files": {&sdk.CallToolResult{InputRequests: files}, "which Parley does not offer"},
		"there is no room":  {&sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"a": form}}, "for too much at once"},
	} {
		servers, _ := newServers(t, nil)
		call := callOf("{}")
		call.Ask = func(tools.Question) bool { return false }
		_, err := offer(t, servers, serve(t, asks(c.result))).Tools()[0].Run(t.Context(), call)
		check.Contains(t, fmt.Sprintf("%s: %v", name, err), c.says)
	}
}
