// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// pairs is how many messages are sent each way.
const pairs = 400

// sendFigures are those of BenchmarkSend: medians in milliseconds. Added is that of the pairs' differences.
type sendFigures struct {
	Gateway   float64 `json:"gateway_ms"`
	APIServer float64 `json:"apiserver_ms"`
	Added     float64 `json:"added_ms"`
}

// BenchmarkSend sends messages by the gateway and by the API server in turn, one at a time, as the same person.
func BenchmarkSend(b *testing.B) {
	w := newWorld(b)
	chat := w.tell("c", 0).chat.Name
	token := w.person("anna", "parley-chat-user")
	cfg := rest.AnonymousClientConfig(cluster.Config)
	cfg.BearerToken = token
	direct, err := apiclient.New(cfg, "bench")
	check.OK(b, err)
	for b.Loop() {
		var byGateway, byAPIServer, added []float64
		for i := range pairs {
			ours, theirs := fmt.Sprintf("g-%d", i), fmt.Sprintf("d-%d", i)
			sends := []func(){
				func() { byGateway = append(byGateway, took(func() { w.send(b, chat, token, ours) })) },
				func() {
					m := chattest.User(chat, theirs, chattest.Content("Why does node-7 not get ready?"))
					byAPIServer = append(byAPIServer, took(func() {
						if _, err := direct.Messages(w.namespace).Create(b.Context(), m); err != nil {
							b.Error(err)
						}
					}))
				},
			}
			if i%2 == 0 { // Who goes first must not matter.
				slices.Reverse(sends)
			}
			for _, send := range sends {
				send()
			}
			added = append(added, byGateway[i]-byAPIServer[i])
		}
		figures.Send = &sendFigures{Gateway: median(byGateway), APIServer: median(byAPIServer), Added: median(added)}
	}
	b.ReportMetric(figures.Send.Gateway, "gateway-ms")
	b.ReportMetric(figures.Send.APIServer, "apiserver-ms")
	b.ReportMetric(figures.Send.Added, "added-ms")
	publishFigures(b)
}

func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// took is how long something takes in milliseconds.
func took(do func()) float64 {
	began := time.Now()
	do()
	return time.Since(began).Seconds() * 1000
}

func (w *world) send(b *testing.B, chat, token, name string) {
	b.Helper()
	message := door{"POST", "/v1beta1/namespaces/" + w.namespace + "/chats/" + chat + "/messages",
		`{"name":"` + name + `","content":"Why does node-7 not get ready?"}`}
	answer, body := w.knocks(b, message, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
	if answer.StatusCode != http.StatusCreated {
		b.Fatalf("%s: %s", answer.Status, body)
	}
}
