// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

var chatsAtRest = flag.Int("chats", 1000, "how many chats at rest the benchmark makes, of 20 messages each")

// patience is how long a manager may take until it has looked at all chats.
const patience = 10 * time.Minute

// figures are what the benchmark measures, with their names in bin/bench.json.
type figures struct {
	Chats    int `json:"chats"`
	Messages int `json:"messages"`
	// KiB that a chat at rest adds to the live heap of the manager, and to its resident memory.
	HeapKiB float64 `json:"manager_kib_per_idle_chat"`
	RSSKiB  float64 `json:"manager_rss_kib_per_idle_chat"`
	// Empty is the resident memory without chats in MiB, Peak the most while the manager starts with all.
	Empty float64 `json:"manager_rss_mib_without_chats"`
	Peak  float64 `json:"start_peak_rss_mib"`
	// Synced is in how many seconds after its start the manager has read everything, Begun until it has begun to answer
	// a message that waited, and Done until it has looked at everything.
	Synced float64 `json:"start_synced_s"`
	Begun  float64 `json:"start_begins_a_turn_s"`
	Done   float64 `json:"start_done_s"`
	// CPU is what the manager has used until then, in seconds of one processor.
	CPU float64 `json:"start_cpu_s"`
	// Reads and Writes are what a start with chats asked the API server, besides what fills the caches.
	Reads  int64 `json:"start_reads"`
	Writes int64 `json:"start_writes"`
}

// BenchmarkManager starts a manager without chats, and one with chats at rest and a message that waits.
func BenchmarkManager(b *testing.B) {
	f := figures{Chats: *chatsAtRest, Messages: *chatsAtRest * 2 * turnsAtRest}
	for b.Loop() {
		measure(b, &f)
	}
	for unit, v := range map[string]float64{
		"heap-KiB/chat": f.HeapKiB, "rss-KiB/chat": f.RSSKiB, "peak-MiB": f.Peak, "empty-MiB": f.Empty,
		"synced-s": f.Synced, "begun-s": f.Begun, "done-s": f.Done, "cpu-s": f.CPU,
		"reads": float64(f.Reads), "writes": float64(f.Writes),
	} {
		b.ReportMetric(v, unit)
	}
	writeFigures(b, f)
}

// writeFigures writes what was measured to the file that BENCH_OUT names, if it does.
func writeFigures(b *testing.B, figures any) {
	b.Helper()
	out := os.Getenv("BENCH_OUT")
	if out == "" {
		return
	}
	raw, err := json.MarshalIndent(figures, "  ", "  ")
	if err == nil {
		err = os.WriteFile(out, raw, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func measure(b *testing.B, f *figures) {
	without := start(b)

	namespace := cluster.Namespace(b, "rest")
	fill(b, namespace, f.Chats, turnsAtRest)
	cluster.Create(b, chattest.In(namespace, chattest.Config("model", chattest.Default)))
	waits := chattest.In(namespace, chattest.Chat("waits", chattest.Prompt("Is anybody there?")))
	cluster.Create(b, waits)
	full := startManager(b)
	f.Begun = full.untilBegun(waits).Seconds()
	with := full.settle()
	full.stop()

	f.Synced, f.Done, f.CPU = with.Synced.Seconds(), with.Done.Seconds(), with.CPU.Seconds()
	f.HeapKiB = kibibytes(with.Heap-without.Heap) / float64(f.Chats)
	f.RSSKiB = kibibytes(with.RSS-without.RSS) / float64(f.Chats)
	f.Empty, f.Peak = kibibytes(without.RSS)/1024, kibibytes(with.Peak)/1024
	f.Reads, f.Writes = with.Reads-without.Reads, with.Writes-without.Writes
}

// start starts a manager, waits until it has looked at everything, and ends it.
func start(t testing.TB) report {
	t.Helper()
	m := startManager(t)
	defer m.stop()
	return m.settle()
}

func kibibytes(bytes int64) float64 { return float64(bytes) / 1024 }

// untilBegun waits until a turn of the chat has begun, and says how long after the start of the manager that was.
func (m *managerProcess) untilBegun(chat *v1beta1.Chat) time.Duration {
	m.t.Helper()
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: cluster.Client.Scheme()})
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	changes, err := watcher.Watch(ctx, &v1beta1.ChatList{}, client.InNamespace(chat.Namespace),
		client.MatchingFields{"metadata.name": chat.Name})
	if err != nil {
		m.t.Fatal(err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		if now, ok := change.Object.(*v1beta1.Chat); ok && now.Status.Turn != nil {
			return time.Since(m.began)
		}
	}
	m.t.Fatal("the turn of the new chat does not begin")
	return 0
}

func TestAStartAsksNothingAboutChatsAtRest(t *testing.T) {
	namespace := cluster.Namespace(t, "rest")
	cluster.Create(t, chattest.In(namespace, chattest.Config("model", chattest.Default)))
	start(t) // It says of the model that it is ready.
	without := start(t)
	fill(t, namespace, 20, turnsAtRest)
	with := start(t)
	check.Equal(t, "with 20 chats at rest a start made", []any{without.Reads, without.Writes},
		[]any{with.Reads, with.Writes})
}
