// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures Parley as it is installed in a cluster, from inside it. It prints a table, and behind it the
// figures as JSON. hack/bench.sh runs it as a pod.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Figures are what is measured, with the names that they have in bin/bench.json. Times are milliseconds unless the name
// says otherwise; those of parts and turns are without the model server's own delay.
type Figures struct {
	FirstPart  Percentiles `json:"first_part_ms"`
	SecondStep Percentiles `json:"second_step_ms"`
	Turn       Percentiles `json:"turn_ms"`
	// Floor is what a program would take that did nothing but a turn's writes; the shares are of its medians.
	Floor          Floor      `json:"floor"`
	FirstPartShare float64    `json:"first_part_share_of_floor"`
	TurnShare      float64    `json:"turn_share_of_floor"`
	Hops           Hops       `json:"hops_ms"`
	BackToBack     BackToBack `json:"back_to_back"`
	// Reads are those of chats and messages in a turn that the API server has no answer to but from etcd.
	Reads     float64          `json:"reads_per_turn"`
	Workspace *Workspace       `json:"workspace,omitempty"`
	MCP       *MCP             `json:"mcp,omitempty"`
	Burst     map[string]Burst `json:"burst"`
	Growth    Growth           `json:"growth"`
	Writes    Writes           `json:"writes"`
	// ColdPod is the first part of a turn that a pod is created for, BarePod a pod of two containers until it is ready.
	ColdPod        float64    `json:"cold_pod_s"`
	BarePod        float64    `json:"bare_pod_s"`
	ColdPodShare   float64    `json:"cold_pod_share_of_bare_pod"`
	RSS            Components `json:"rss_mib"`
	CPU            Components `json:"burst_cpu_ms_per_turn"`
	ManyChats      float64    `json:"manager_rss_mib_1000_chats"`
	GenerationPods int        `json:"generation_pods"`
}

// Percentiles of a sample.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

// Floor is what kinds without a schema take, in milliseconds.
type Floor struct {
	FirstPart Percentiles `json:"first_part_ms"`
	Turn      Percentiles `json:"turn_ms"`
}

// BackToBack are turns that begin as soon as the one before is seen to be over.
type BackToBack struct {
	FirstPart      Percentiles `json:"first_part_ms"`
	Turn           Percentiles `json:"turn_ms"`
	FirstPartShare float64     `json:"first_part_share_of_floor"`
	TurnShare      float64     `json:"turn_share_of_floor"`
}

// Workspace is what work in a workspace takes.
type Workspace struct {
	// Execute is the second step of a turn whose call is the command true: from the call to the next text.
	Execute Percentiles `json:"execute_true_ms"`
	// Cold is the first call of a chat, from the call to its result: its workspace is created for it. BarePod is a pod of
	// the same image, from its creation until it is ready. Both in seconds.
	Cold    float64 `json:"cold_s"`
	BarePod float64 `json:"bare_pod_s"`
	// Output is a command that writes 20 MB at once, followed by a client of the gateway.
	Output Output `json:"output"`
	// Agent is the memory of a workspace's agent.
	Agent Agent `json:"agent"`
}

// Output is what becomes of what a command writes.
type Output struct {
	// MBPerSecond is what the command has written, in 10^6 bytes, by the time from its start to its result, both as the
	// client sees them. All of it goes through the agent; the disk keeps 16 MiB.
	MBPerSecond float64 `json:"mb_per_s"`
	// LiveKiB is how much of it the client is shown meanwhile: the newest at each look, ever less often, 256 KiB at most.
	LiveKiB float64 `json:"live_kib"`
}

// Agent is its resident memory (VmRSS), in MiB.
type Agent struct {
	Idle float64 `json:"idle_rss_mib"`
	// Busy is with 100 commands that run, as many as may.
	Busy float64 `json:"100_commands_rss_mib"`
}

// Burst is so many chats that get a message at once.
type Burst struct {
	TurnsPerSecond float64 `json:"turns_per_s"`
	BarePerSecond  float64 `json:"bare_per_s"`
	ShareOfBare    float64 `json:"share_of_bare"`
	// WritesPerTurn that Parley made; the bare client makes as many, to the nearest number.
	WritesPerTurn float64 `json:"writes_per_turn"`
	// ServerCPU is what a turn costs the API server in milliseconds of CPU, without etcd, and BareServerCPU what one of
	// the bare client does: what Parley's watches and reads add. On a machine of its own that is what limits turns.
	ServerCPU     float64 `json:"api_server_cpu_ms_per_turn"`
	BareServerCPU float64 `json:"bare_api_server_cpu_ms_per_turn"`
	// OwnCPU is what a turn costs manager, generators, relays and gateways together, in milliseconds of CPU. CPUShare is
	// that and the API server's, as a share of what the bare client costs the API server.
	OwnCPU   float64 `json:"own_cpu_ms_per_turn"`
	CPUShare float64 `json:"cpu_share_of_bare"`
}

// Writes to the API server.
type Writes struct {
	SingleStep  float64 `json:"single_step"`
	FurtherStep float64 `json:"further_step"`
	Events      float64 `json:"events"`
}

// Components of Parley.
type Components struct {
	Manager   float64 `json:"manager"`
	Generator float64 `json:"generator"`
	Relay     float64 `json:"relay"`
	Gateway   float64 `json:"gateway"`
}

func main() {
	load := flag.Duration("load", 0, "measure nothing: give 100 chats messages for so long, for who profiles meanwhile")
	mcp := flag.Bool("mcp", true, "measure MCP servers, too")
	turns := flag.Int("turns", 60, "turns to measure one after another")
	chats := flag.Int("chats", 1000, "chats of 20 messages of 4 KiB to hold, for the manager's memory; 0: skip")
	bursts := flag.Bool("bursts", true, "measure 100 and 300 chats at once, too; without them a run takes half a minute")
	laps := flag.Int("laps", 2, "how often Parley and the bare client take turns in bursts; 0: skip them")
	toolbox := flag.String("toolbox", "", "image with a shell, to measure work in a workspace; empty: skip")
	var of sizes
	flag.IntVar(&of.chats, "scale-chats", 0, "measure many chats instead: so many at rest in a namespace; 0: do not")
	flag.IntVar(&of.namespaces, "scale-namespaces", 1000, "with --scale-chats: namespaces of ten chats at rest")
	flag.IntVar(&of.busy, "scale-busy", 300, "with --scale-chats: busy chats beside which another one is measured")
	flag.IntVar(&of.pod, "scale-pod", 500, "with --scale-chats: chats that one generation pod answers at once")
	model := flag.String("model", "", "address of the scripted model, such as 10.244.0.9:8080")
	flag.Parse()
	ctrl.SetLogger(logr.Discard()) // What fails, is said.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *load > 0 {
		if err := keepBusy(ctx, *model, *load); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	of.turns = *turns
	if !*bursts {
		*laps = 0
	}
	figures, err := figuresOf(ctx, of, *model, func() (any, error) {
		return measure(ctx, *model, *toolbox, *turns, *chats, *laps, *bursts, *mcp)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	out, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	fmt.Println(string(out))
}

// figuresOf are those of many chats, if such are to be measured, and else all others.
func figuresOf(ctx context.Context, of sizes, model string, others func() (any, error)) (any, error) {
	if of.chats == 0 {
		return others()
	}
	return atScale(ctx, model, of)
}

func measure(ctx context.Context, model, toolbox string, turns, chats, laps int, bursts, mcp bool) (*Figures, error) {
	b, err := newBench(ctx, model)
	if err != nil {
		return nil, err
	}
	f := &Figures{Burst: map[string]Burst{}}
	for _, stage := range []struct {
		name string
		skip bool
		run  func(context.Context, *Figures) error
	}{
		{"a cold generation pod", false, b.cold},
		{"turns of one step", false, func(ctx context.Context, f *Figures) error { return b.single(ctx, f, turns) }},
		{"turns of three steps", false, func(ctx context.Context, f *Figures) error { return b.steps(ctx, f, turns/2) }},
		{"MCP servers", !mcp, func(ctx context.Context, f *Figures) error { return b.mcp(ctx, f, turns/2) }},
		{"work in a workspace", toolbox == "",
			func(ctx context.Context, f *Figures) error { return b.work(ctx, f, toolbox, turns/2) }},
		{"100 chats at once", laps == 0, func(ctx context.Context, f *Figures) error { return b.bursts(ctx, f, 100, laps) }},
		{"300 chats at once", laps == 0, func(ctx context.Context, f *Figures) error { return b.bursts(ctx, f, 300, laps) }},
		{"generation pods", false, b.countPods},
		{"300 chats and one warm pod", !bursts, func(ctx context.Context, f *Figures) error { return growth(ctx, b, f) }},
		{"many chats", chats == 0, func(ctx context.Context, f *Figures) error { return b.many(ctx, f, chats) }},
	} {
		if stage.skip {
			continue
		}
		began := time.Now()
		if err := stage.run(ctx, f); err != nil {
			return nil, fmt.Errorf("%s: %w", stage.name, err)
		}
		fmt.Printf("%-34s %6.1f s\n", stage.name, time.Since(began).Seconds())
	}
	report(os.Stdout, f)
	return f, nil
}
