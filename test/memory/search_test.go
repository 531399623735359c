// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"testing"
	"time"

	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// searched is what the benchmark of searches measures.
type searched struct {
	Chats    int `json:"chats"`
	Messages int `json:"messages"`
	// First is in how many seconds the first hits of a frequent word are there, All how long the search for a rare word
	// takes until it has looked at all messages.
	First float64 `json:"search_first_s"`
	All   float64 `json:"search_all_s"`
	// Requests is how many requests that took, and Heap by how many MiB the heap of the process grew meanwhile.
	Requests int     `json:"search_requests"`
	Heap     float64 `json:"search_heap_mib"`
}

// BenchmarkSearch searches in the messages of chats at rest, as the page and kubectl chat do.
func BenchmarkSearch(b *testing.B) {
	f := searched{Chats: *chatsAtRest, Messages: *chatsAtRest * 2 * turnsAtRest}
	namespace := cluster.Namespace(b, "search")
	check.OK(b, cluster.CreateClusterRoles(b.Context(), testcluster.Path("config", "rbac", "users.yaml")))
	cluster.Account(b, namespace, "anna")
	cluster.Bind(b, namespace, "anna", "ClusterRole", "parley-chat-user")
	fill(b, namespace, f.Chats, turnsAtRest)
	rare := chattest.In(namespace, chattest.User(nameAtRest(0), "zzz", chattest.Content("The needle.")))
	check.OK(b, cluster.Client.Create(b.Context(), rare))
	api, err := rest.NewClient(cluster.Config)
	check.OK(b, err)
	handler, _ := rest.New(rest.Options{Client: api, Now: time.Now,
		Permit:  func(context.Context, string) (string, *refusal.Error) { return "anna", nil },
		Refused: func(context.Context, *refusal.Error) {}})
	path, token := "/v1beta1/namespaces/"+namespace+"/search?", cluster.Token(b, namespace, "anna")
	ask := func(query, next string) (found rest.Found) {
		request := httptest.NewRequestWithContext(b.Context(), http.MethodGet,
			path+url.Values{"q": {query}, "continue": {next}}.Encode(), http.NoBody)
		request.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK {
			b.Fatal(answer.Code, answer.Body)
		}
		check.OK(b, json.Unmarshal(answer.Body.Bytes(), &found.Body))
		return found
	}
	for b.Loop() {
		began := time.Now()
		if found := ask("0123456789abcde", ""); len(found.Body.Hits) == 0 {
			b.Fatal("the frequent word is not found")
		}
		f.First = time.Since(began).Seconds()
		f.searchAll(b, ask)
	}
	b.ReportMetric(f.First, "first-s")
	b.ReportMetric(f.All, "all-s")
	b.ReportMetric(f.Heap, "heap-MiB")
	writeFigures(b, f)
}

// searchAll searches for the rare word in all messages.
func (f *searched) searchAll(b *testing.B, ask func(query, next string) rest.Found) {
	b.Helper()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	hits, messages, began := 0, 0, time.Now()
	f.Requests, f.Heap = 0, 0
	for next, more := "", true; more; more = next != "" {
		found := ask("needle", next)
		hits, messages, next = hits+len(found.Body.Hits), messages+found.Body.Messages, found.Body.Continue
		f.Requests++
		runtime.ReadMemStats(&now)
		f.Heap = max(f.Heap, (float64(now.HeapAlloc)-float64(before.HeapAlloc))/(1<<20))
	}
	f.All = time.Since(began).Seconds()
	if hits != 1 || messages != f.Messages+1 {
		b.Errorf("found %d in %d messages", hits, messages)
	}
}
