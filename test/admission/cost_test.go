// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// Laps that count, each of so many chats a variant. One more before them warms the API server up.
const (
	costLaps  = 10
	costChats = 40
)

// costs are those of one write in milliseconds: CPU of the API server and of etcd, and the median of what the client
// waits.
type costs struct {
	APIServer float64 `json:"apiserver_cpu_ms"`
	Etcd      float64 `json:"etcd_cpu_ms"`
	Latency   float64 `json:"latency_ms"`
	Bytes     int     `json:"bytes"`
}

// BenchmarkWrites measures what each write of a turn costs the API server, as Parley is installed and with parts of
// what it installs left out. The variants take turns, so that the machine's mood of the minute meets all.
func BenchmarkWrites(b *testing.B) {
	turn := newSpecimen(b)
	for _, v := range variants {
		v.install(b)
	}
	writers := make([]*writer, len(variants))
	for i, v := range variants {
		writers[i] = newWriter(b, v, turn)
	}
	control := findControlPlane(b)
	for b.Loop() {
		table := map[string]map[string]*costs{}
		for lap := range costLaps + 1 {
			for _, w := range writers {
				measured := w.lap(b, control, lap)
				if lap > 0 {
					add(table, w.variant.name, measured)
				}
			}
		}
		printCosts(table)
		publishCosts(b, table)
	}
}

// lapCosts are the costs of a lap by the name of the write.
type lapCosts map[string]*lapCost

type lapCost struct {
	apiServer, etcd time.Duration
	waited          []time.Duration
	bytes           int
}

// lap does each write for so many chats before it does the next.
func (w *writer) lap(b *testing.B, control controlPlane, lap int) lapCosts {
	b.Helper()
	measured := lapCosts{}
	for i := range w.chats {
		w.chats[i] = &writtenChat{name: fmt.Sprintf("cost-%d-%d", lap, i)}
	}
	for _, step := range steps {
		c := &lapCost{}
		apiServer, etcd := control.used(b)
		for _, chat := range w.chats {
			body := step.body(w, chat)
			began := time.Now()
			step.write(b, w, chat, body)
			c.waited, c.bytes = append(c.waited, time.Since(began)), len(body)
		}
		apiServerNow, etcdNow := control.used(b)
		c.apiServer, c.etcd = apiServerNow-apiServer, etcdNow-etcd
		measured[step.name] = c
	}
	return measured
}

// add adds a lap to the table; the latency is the median of the laps' medians.
func add(table map[string]map[string]*costs, variant string, lap lapCosts) {
	const perMilli = float64(time.Millisecond)
	if table[variant] == nil {
		table[variant] = map[string]*costs{}
	}
	for name, c := range lap {
		sum := table[variant][name]
		if sum == nil {
			sum = &costs{}
			table[variant][name] = sum
		}
		slices.Sort(c.waited)
		sum.APIServer += float64(c.apiServer) / perMilli / costChats / costLaps
		sum.Etcd += float64(c.etcd) / perMilli / costChats / costLaps
		sum.Latency += float64(c.waited[len(c.waited)/2]) / perMilli / costLaps
		sum.Bytes = c.bytes
	}
}

func printCosts(table map[string]map[string]*costs) {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...string) { fmt.Fprintln(out, strings.Join(cells, "\t")+"\t") }
	heading := []string{"CPU ms of API server (etcd), latency ms"}
	for _, v := range variants {
		heading = append(heading, v.name)
	}
	row(heading...)
	sums := make([]costs, len(variants))
	for _, step := range steps {
		cells := []string{step.name}
		for i, v := range variants {
			c := table[v.name][step.name]
			cells = append(cells, c.String())
			sums[i].APIServer, sums[i].Etcd, sums[i].Latency = sums[i].APIServer+c.APIServer, sums[i].Etcd+c.Etcd,
				sums[i].Latency+c.Latency
		}
		row(cells...)
	}
	cells := []string{"sum"}
	for i := range sums {
		cells = append(cells, sums[i].String())
	}
	row(cells...)
	_ = out.Flush()
}

// String implements fmt.Stringer.
func (c *costs) String() string {
	return fmt.Sprintf("%.2f (%.2f) %.2f", c.APIServer, c.Etcd, c.Latency)
}

// publishCosts writes the table to the file that BENCH_OUT names, if it names one.
func publishCosts(b *testing.B, table map[string]map[string]*costs) {
	b.Helper()
	out := os.Getenv("BENCH_OUT")
	if out == "" {
		return
	}
	raw, err := json.MarshalIndent(table, "  ", "  ")
	if err == nil {
		err = os.WriteFile(out, raw, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}
