// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

const (
	// people have a number of tabs each, and a tab two streams: one of its chat, and one of the namespace's chats.
	people, tabsEach = 50, 10
	tabs             = people * tabsEach
	chatsAtOnce      = 100
	messagesEach     = 50
	// partsEach is how many parts a second a chat that generates streams; a tab in five follows it.
	partsEach = 20
	// window is how long CPU is measured.
	window = 10 * time.Second
)

// figures are what the benchmarks measure, with their names in bin/bench.json.
var figures struct {
	Streams *streamFigures `json:"streams,omitempty"`
	// OneChat and ManyChats are how late parts come to 1000 clients.
	OneChat   *latenessFigures `json:"lateness_one_chat,omitempty"`
	ManyChats *latenessFigures `json:"lateness_many_chats,omitempty"`
	Send      *sendFigures     `json:"send,omitempty"`
}

// publishFigures writes them to the file that BENCH_OUT names, if it names one.
func publishFigures(b *testing.B) {
	b.Helper()
	out := os.Getenv("BENCH_OUT")
	if out == "" {
		return
	}
	raw, err := json.MarshalIndent(figures, "  ", "  ")
	if err == nil {
		err = os.WriteFile(out, raw, 0o600)
	}
	check.OK(b, err)
}

// streamFigures are those of BenchmarkStreams.
type streamFigures struct {
	Streams int `json:"streams"`
	// KiB that a stream adds to the resident memory of the gateway, once it has told all, and while chats generate.
	IdleKiB float64 `json:"idle_rss_kib_per_stream"`
	BusyKiB float64 `json:"busy_rss_kib_per_stream"`
	// RSS is the whole of it in MiB, before and while chats generate.
	IdleMiB float64 `json:"idle_rss_mib"`
	BusyMiB float64 `json:"busy_rss_mib"`
	// CPU in shares of one processor.
	IdleCPU float64 `json:"idle_cpu"`
	BusyCPU float64 `json:"busy_cpu"`
	// Events that came to clients in a second while chats generate, and what one costs in microseconds of CPU.
	Events   float64 `json:"events_per_s"`
	EventCPU float64 `json:"cpu_us_per_event"`
}

// BenchmarkStreams opens 1000 streams at one gateway, of people who have 10 tabs each, and lets 100 chats generate.
func BenchmarkStreams(b *testing.B) {
	var f streamFigures
	for b.Loop() {
		f = measureStreams(b)
	}
	for unit, v := range map[string]float64{
		"idle-KiB/stream": f.IdleKiB, "busy-KiB/stream": f.BusyKiB, "idle-cpu": f.IdleCPU, "busy-cpu": f.BusyCPU,
		"events/s": f.Events, "cpu-us/event": f.EventCPU, "busy-MiB": f.BusyMiB,
	} {
		b.ReportMetric(v, unit)
	}
	figures.Streams = &f
	publishFigures(b)
}

func measureStreams(b *testing.B) streamFigures {
	w := newWorld(b)
	stories := make([]*story, chatsAtOnce)
	for i := range stories {
		stories[i] = w.tell(fmt.Sprintf("c-%d", i), messagesEach)
	}
	before := w.gateway.Memory()
	heard := w.openTabs(b, stories)
	f := streamFigures{Streams: 2 * tabs}
	f.IdleCPU = w.cpu(b)
	idle := w.gateway.Memory()
	f.IdleMiB, f.IdleKiB = mebibytes(idle), float64(idle-before)/1024/(2*tabs)

	_, stop := w.generate(b, stories)
	from := heard.events.Load()
	f.BusyCPU = w.cpu(b)
	f.Events = float64(heard.events.Load()-from) / window.Seconds()
	busy := w.gateway.Memory()
	stop()
	f.BusyMiB, f.BusyKiB = mebibytes(busy), float64(busy-before)/1024/(2*tabs)
	f.EventCPU = f.BusyCPU * 1e6 / f.Events
	return f
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// cpu is what the gateway uses in the window, in shares of one processor.
func (w *world) cpu(b *testing.B) float64 {
	b.Helper()
	began, from := time.Now(), w.gateway.CPU()
	<-time.After(window)
	return (w.gateway.CPU() - from).Seconds() / time.Since(began).Seconds()
}

// audience counts what all clients hear.
type audience struct {
	events, whole atomic.Int64
}

// openTabs opens the streams of all tabs, and waits until all have told what there was.
func (w *world) openTabs(b *testing.B, stories []*story) *audience {
	b.Helper()
	var heard audience
	ctx, cancel := context.WithCancel(b.Context())
	var listening sync.WaitGroup
	b.Cleanup(func() { cancel(); listening.Wait() })
	client := &http.Client{Transport: &http.Transport{}}
	base := w.gateway.URL + "/v1beta1/namespaces/" + w.namespace + "/chats"
	for person := range people {
		token := w.person(fmt.Sprintf("person-%d", person), "parley-chat-user")
		for tab := range tabsEach {
			chat := stories[(person*tabsEach+tab)%len(stories)].chat.Name
			for path, last := range map[string]string{"?watch": "synced", "/" + chat + "/stream?last=200": "status"} {
				listening.Go(func() { heard.listen(ctx, b, client, base+path, token, last) })
			}
		}
	}
	waiting.Until(b, 5*time.Minute, "all streams have told what there was", func() bool {
		return heard.whole.Load() == 2*tabs
	})
	return &heard
}

// listen reads a stream to its end. The event last says that it has told what there was.
func (a *audience) listen(ctx context.Context, b *testing.B, client *http.Client, url, token, last string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		b.Error(err)
		return
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(request)
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		b.Errorf("a stream is refused: %s", answer.Status)
		return
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for whole := false; lines.Scan(); {
		name, isEvent := strings.CutPrefix(lines.Text(), "event: ")
		if !isEvent {
			continue
		}
		a.events.Add(1)
		if name == last && !whole {
			whole = true
			a.whole.Add(1)
		}
	}
}

// say says a part in each episode 20 times a second until stop is called.
func say(b *testing.B, episodes []*publish.Episode, part func(*publish.Episode)) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var saying sync.WaitGroup
	for _, episode := range episodes {
		saying.Go(func() {
			ticker := time.NewTicker(time.Second / partsEach)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					part(episode)
				}
			}
		})
	}
	return func() { cancel(); saying.Wait() }
}
