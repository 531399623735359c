// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// everyProtocol are those whose host a configuration names.
var everyProtocol = append(slices.Clone(providertest.All),
	providertest.Protocol{Provider: v1beta1.ProviderAzure, Transport: v1beta1.TransportChatCompletions},
	providertest.Protocol{Provider: v1beta1.ProviderAzure, Transport: v1beta1.TransportResponses},
	providertest.Protocol{Provider: v1beta1.ProviderVercel})

// largeProtocols are a provider of each protocol.
var largeProtocols = []providertest.Protocol{providertest.Chat, providertest.Responses, providertest.Claude,
	providertest.Gemini}

func served(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func TestRedirectIsNotFollowedButHostIsReported(t *testing.T) {
	var followed atomic.Int32
	elsewhere := served(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	for _, p := range everyProtocol {
		for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
			http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			t.Run(string(p.Provider)+" "+string(p.Transport)+" "+http.StatusText(status), func(t *testing.T) {
				base := served(t, func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, elsewhere+"/secret-path?token="+providertest.Secret, status)
				})
				// A client that follows redirects does not do so here.
				for _, client := range []*http.Client{httpguard.Settings{Loopback: true}.Client(), {}} {
					spec := p.Spec(base + "/v1")
					err := providertest.Call(t, spec, client)
					e := fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Key: providertest.Key,
						Private: []string{providertest.Secret}})
					if e.Reason != v1beta1.ErrorRequestRejected || e.Retryable || int(e.StatusCode) != status ||
						!strings.Contains(e.Message, "redirects calls to "+elsewhere+" (") {
						t.Errorf("got %+v", e)
					}
					if leaked := providertest.Leaked(e.Text(), providertest.Secret, "secret-path", providertest.Key); leaked != "" {
						t.Errorf("it quotes %q: %s", leaked, e.Text())
					}
				}
			})
		}
	}
	check.Equal(t, "calls went elsewhere", 0, followed.Load())
}

func TestUnstreamedCallDoesNotFollowRedirect(t *testing.T) {
	var followed atomic.Int32
	elsewhere := served(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	base := served(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	})
	for _, p := range everyProtocol {
		spec := p.Spec(base + "/v1")
		err := answered(t, spec, &http.Client{})
		e := fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Key: providertest.Key})
		check.Equal(t, "fields", []any{v1beta1.ErrorRequestRejected, 307}, []any{e.Reason, e.StatusCode})
	}
	check.Equal(t, "calls went elsewhere", 0, followed.Load())
}

// answered makes a call whose answer comes as a whole.
func answered(t *testing.T, spec *v1beta1.ChatModelConfigSpec, client *http.Client) error {
	t.Helper()
	model, err := provider.New(spec, providertest.Key, client)
	check.OK(t, err)
	return streamError(t.Context(), model, fantasy.Call{
		Prompt: fantasy.Prompt{fantasy.NewUserMessage(providertest.Secret)}, MaxOutputTokens: new(int64(77))})
}

func TestRedirectWithInvalidHostReportsNone(t *testing.T) {
	for _, location := range []string{"", "javascript:alert(1)", "http://a@b\x7f/", "http://evil host/",
		"ftp://files.example.com"} {
		answer := providertest.Canned{Status: 302, Header: http.Header{"Location": {location}}}
		spec := providertest.Chat.Spec("http://models.example/v1")
		e := fault.Classify(providertest.Call(t, spec, &http.Client{Transport: answer}),
			fault.Subject{Config: "main", Spec: spec, Key: providertest.Key})
		if e.Reason != v1beta1.ErrorRequestRejected ||
			!strings.Contains(e.Message, "redirects calls to another address (302)") {
			t.Errorf("%q: got %+v", location, e)
		}
	}
}

// endless is a body of so many bytes.
type endless struct {
	left int64
	unit []byte
}

func (e *endless) Read(p []byte) (n int, err error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	for n < len(p) && e.left > 0 {
		k := copy(p[n:min(int64(len(p)), int64(n)+e.left)], e.unit)
		n += k
		e.left -= int64(k)
	}
	return n, nil
}

func TestALargeAnswerIsNotRead(t *testing.T) {
	httpguard.ShrinkLimits(t)
	const size = 160 << 20
	bomb := bombOf(t, size)
	for name, c := range map[string]struct {
		status int
		kind   string
		gzip   bool
		unit   string
		reason v1beta1.ErrorReason
	}{
		"an error":                             {500, "application/json", false, "a", v1beta1.ErrorProviderError},
		"a refusal":                            {400, "application/json", false, "a", v1beta1.ErrorProviderError},
		"a compressed error":                   {500, "application/json", true, "", v1beta1.ErrorProviderError},
		"a stream that is compressed":          {200, "text/event-stream", true, "", v1beta1.ErrorRequestRejected},
		"a stream without an end of its event": {200, "text/event-stream", false, "a", v1beta1.ErrorRequestRejected},
		"a stream of lines without events": {200, "text/event-stream", false, "data: {}\n",
			v1beta1.ErrorRequestRejected},
		"what AWS alone may send": {200, "application/vnd.amazon.eventstream", false, "a", v1beta1.ErrorRequestRejected},
	} {
		t.Run(name, func(t *testing.T) {
			base := served(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				if c.gzip {
					w.Header().Set("Content-Encoding", "gzip")
					w.WriteHeader(c.status)
					_, _ = w.Write(bomb) // The client gives up.
					return
				}
				w.WriteHeader(c.status)
				_, _ = io.Copy(w, &endless{size, bytes.Repeat([]byte(c.unit), 4096)}) // The client gives up.
			})
			for _, p := range largeProtocols {
				spec := p.Spec(base + "/v1")
				var err error
				ctx, notes := httpguard.WithNotes(t.Context(), time.Now)
				grown := heapGrowth(func() {
					err = providertest.CallWith(ctx, t, spec, providertest.Key, providertest.Secret,
						httpguard.Settings{Loopback: true}.Client())
				})
				e := fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Key: providertest.Key, HTTP: notes})
				check.Equal(t, p.Provider, c.reason, e.Reason)
				if most := int64(32 << 20); grown > most {
					t.Errorf("%s %s: the heap grew by %d MiB", p.Provider, p.Transport, grown>>20)
				}
			}
		})
	}
}

func TestOversizedUnstreamedResponseIsRejected(t *testing.T) {
	httpguard.ShrinkLimits(t)
	base := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"a":"`)
		_, _ = io.Copy(w, &endless{160 << 20, bytes.Repeat([]byte("a"), 4096)}) // The client gives up.
	})
	for _, p := range largeProtocols {
		if p == providertest.Claude { // It only streams.
			continue
		}
		spec := p.Spec(base + "/v1")
		var err error
		grown := heapGrowth(func() { err = answered(t, spec, httpguard.Settings{Loopback: true}.Client()) })
		e := fault.Classify(err, fault.Subject{Config: "main", Spec: spec, Key: providertest.Key})
		if e.Reason != v1beta1.ErrorRequestRejected || !strings.Contains(e.Message, "sent more than an answer can have") {
			t.Errorf("%s: got %+v of %T", p.Provider, e, err)
		}
		if most := int64(32 << 20); grown > most {
			t.Errorf("%s: the heap grew by %d MiB", p.Provider, grown>>20)
		}
	}
}

// bombOf is so many bytes, compressed.
func bombOf(t *testing.T, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	check.OK(t, err)
	if _, err := io.Copy(w, &endless{size, bytes.Repeat([]byte("a"), 4096)}); err != nil {
		t.Fatal(err)
	}
	check.OK(t, w.Close())
	return b.Bytes()
}

// heapGrowth is by how much the heap grew at most while f ran, garbage included.
func heapGrowth(f func()) int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() int64 {
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before, most := read(), int64(0)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				most = max(most, read()-before)
			}
		}
	})
	f()
	close(done)
	watching.Wait()
	return most
}

func TestALongReasoningIsALegalAnswer(t *testing.T) {
	httpguard.ShrinkLimits(t)
	// 12500 events of 400 bytes: 5 MiB, more than an answer that comes as a whole may have. 1 byte of each is said.
	padding := strings.Repeat("x", 330)
	base := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		event := []byte(`data: {"choices":[{"index":0,"delta":{"reasoning_content":"a"}}],"obfuscation":"` + padding +
			"\"}\n\n")
		for range 12_500 {
			_, _ = w.Write(event)
		}
		_, _ = io.WriteString(w,
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"done\"},\"finish_reason\":\"stop\"}]}\n\ndata: "+
				"[DONE]\n\n")
	})
	err := providertest.Call(t, providertest.Compatible.Spec(base+"/v1"), httpguard.Settings{Loopback: true}.Client())
	check.OK(t, err)
}

func TestHeadersOfAnAnswerAreBounded(t *testing.T) {
	base := served(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 64 {
			w.Header().Add("X-Padding", strings.Repeat("a", 4096))
		}
	})
	spec := providertest.Chat.Spec(base + "/v1")
	e := fault.Classify(providertest.Call(t, spec, httpguard.Settings{Loopback: true}.Client()),
		fault.Subject{Config: "main", Spec: spec, Key: providertest.Key})
	check.Equal(t, "result", v1beta1.ErrorProviderUnavailable, e.Reason)
}

func TestHeadersMayTakeAsLongAsAnySilence(t *testing.T) {
	if httpguard.HeaderTimeout < v1beta1.MaxSilenceTimeout {
		t.Errorf("%s ends calls that may be silent for %s", httpguard.HeaderTimeout, v1beta1.MaxSilenceTimeout)
	}
}
