// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/test/modelserver"
)

// TestHundredsOfStreamsAtOnceLeaveNothingBehind runs complete, cut and abandoned streams side by side.
func TestHundredsOfStreamsAtOnceLeaveNothingBehind(t *testing.T) {
	const streams, parts = 300, 20
	chunks := make([]string, parts)
	for i := range chunks {
		chunks[i] = fmt.Sprintf("%d ", i)
	}
	steps := []modelserver.Step{modelserver.Say(chunks...)}
	server, err := modelserver.New(modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "cut"},
			Reply: modelserver.Reply{Steps: steps, Fault: &modelserver.Fault{Kind: modelserver.FaultCut, After: new(3)}}},
		{Match: modelserver.Match{LastUserText: "hang"},
			Reply: modelserver.Reply{Steps: steps, Fault: &modelserver.Fault{Kind: modelserver.FaultHang, After: new(3)}}},
		{Reply: modelserver.Reply{Steps: steps, DelayBetween: modelserver.Duration(time.Millisecond)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	listener := httptest.NewServer(server)
	client := &http.Client{Transport: &http.Transport{}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all, hanging sync.WaitGroup
	abandon, abandoned := context.WithCancel(ctx)
	for i := range streams {
		kind := []string{"whole", "cut", "hang"}[i%3]
		all.Add(1)
		if kind == "hang" {
			hanging.Add(1)
		}
		go func() {
			defer all.Done()
			with := ctx
			if kind == "hang" {
				with = abandon
			}
			request, _ := http.NewRequestWithContext(with, http.MethodPost, listener.URL+chatPath,
				strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"`+kind+`"}]}`))
			response, err := client.Do(request)
			if kind == "hang" {
				hanging.Done()
			}
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				return
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if whole := strings.Count(string(body), `"content":"`) == parts+1 && err == nil; whole != (kind == "whole") {
				t.Errorf("%s: %v after %d bytes", kind, err, len(body))
			}
		}()
	}
	hanging.Wait()
	abandoned()
	all.Wait()
	if err := server.WaitUntil(ctx, func([]modelserver.Record) bool { return server.InFlight() == 0 }); err != nil {
		t.Fatal(err)
	}
	aborted := 0
	for _, r := range server.Requests() {
		if r.Aborted {
			aborted++
		}
	}
	if n := len(server.Requests()); n != streams || aborted != streams/3 {
		t.Errorf("%d requests, of which %d were aborted", n, aborted)
	}
	client.CloseIdleConnections()
	listener.Close()
	for ; runtime.NumGoroutine() > before; runtime.Gosched() {
		if ctx.Err() != nil {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func TestALargeReplyNeedsNoLargeScript(t *testing.T) {
	const size = 4 << 20
	_, url := serve(t,
		modelserver.Script{
			Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{{Text: &modelserver.Text{
				Repeat: &modelserver.Repeat{Text: "large ", Bytes: size}, PieceBytes: 64 << 10,
			}}}}}}})
	_, body := send(t, http.MethodPost, url+chatPath, chat(user))
	n := 0
	for _, e := range events(t, body) {
		text, _ := e.pick("choices", 0, "delta", "content").(string)
		n += len(text)
	}
	if n != size {
		t.Errorf("%d bytes came", n)
	}
}
