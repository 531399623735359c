// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/test/modelserver"
)

// keepAlive is what a provider sends while its model thinks, and the reply that comes in the end.
type keepAlive struct {
	provider    v1alpha1.ModelProvider
	sign, reply string
}

var keepAlives = map[string]keepAlive{
	"pings of Anthropic": {v1alpha1.ProviderAnthropic, "event: ping\ndata: {\"type\": \"ping\"}\n\n", `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude","usage":{"input_tokens":5,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"At last."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}

event: message_stop
data: {"type":"message_stop"}

`},
	"comments of OpenRouter": {v1alpha1.ProviderOpenAICompatible,
		": OPENROUTER PROCESSING\n\n", `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"At last."}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`},
}

func TestKeepAlivesAreASignOfLife(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{}, nil)
	for name, k := range keepAlives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				w.Header().Set("Content-Type", "text/event-stream")
				for range 12 { // 3.6 s in all, of which each wait is far shorter than the patience of 3 s.
					_, _ = io.WriteString(w, k.sign)
					_ = http.NewResponseController(w).Flush()
					select {
					case <-r.Context().Done():
						return
					case <-time.After(300 * time.Millisecond):
					}
				}
				_, _ = io.WriteString(w, k.reply)
			}))
			t.Cleanup(server.Close)
			config := modelConfig(p.ns, "alive-"+strings.ToLower(string(k.provider)), server.URL+"/v1")
			config.Spec.Provider, config.Spec.SilenceTimeoutSeconds = k.provider, new(int32(3))
			create(t, config)
			c := p.newChat(config.Name, nil)
			c.config = config.Name
			c.ask(config.Name+"-u", "hello")
			if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted || textOf(t, m) != "At last." {
				t.Errorf("got %+v", m.Spec.Generation)
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("the model was called %d times", n)
			}
		})
	}
}

func TestTheSpanOfASilentCallNamesTheReasonThatTheChatNames(t *testing.T) {
	o := startObserved(t, hangs())
	c := o.newChat("silent", nil)
	c.config = "impatient"
	c.say("silent-u", "hello")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: "silent-u", HistoryVersion: 1, StartedAt: new(metav1.NowMicro()),
			Traceparent: traceparent}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: "silent-u", Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	c.failure(v1alpha1.ErrorProviderSilent)
	o.stop()
	o.tracer.Close(t.Context())
	spans := o.spans.Named("chat scripted")
	if len(spans) != 1 || spans[0].Attributes[telemetry.AttrErrorType] != string(v1alpha1.ErrorProviderSilent) {
		t.Errorf("the spans are %+v", spans)
	}
}
