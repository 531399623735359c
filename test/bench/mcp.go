// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"parley.dev/parley/api/v1beta1"
)

// MCP is what MCP servers add to chats that have five, of ten tools each.
type MCP struct {
	// FirstPart of turns without servers, with five whose lists of tools are known, and with one more that hangs, after it
	// was met once; they take turns.
	Without Percentiles `json:"first_part_without_ms"`
	With    Percentiles `json:"first_part_ms"`
	Hanging Percentiles `json:"first_part_beside_one_that_hangs_ms"`
	// ShareOfWithout and HangingShare are the medians of With and Hanging by that of Without.
	ShareOfWithout float64 `json:"share_of_without"`
	HangingShare   float64 `json:"share_of_without_beside_one_that_hangs"`
	// Unknown is the first part of the first turn, which asks the servers, and Met that of one which meets the one that
	// hangs, whose connectTimeoutSeconds is 2.
	Unknown float64 `json:"first_part_of_first_turn_ms"`
	Met     float64 `json:"first_part_meeting_one_that_hangs_ms"`
	// SecondStep is from a call of a tool of a server to the next text.
	SecondStep Percentiles `json:"second_step_ms"`
	// Connections are the most that were open at once to all servers while 20 chats got a message at once, each with
	// entries of its own; Left are those a moment later.
	Connections int `json:"connections_of_20_chats"`
	Left        int `json:"connections_left"`
	// GeneratorWithout and Generator are the memory of the generation pod after 20 chats without and with servers.
	GeneratorWithout float64 `json:"generator_rss_mib_without"`
	Generator        float64 `json:"generator_rss_mib"`
}

const (
	mcpServers, mcpChats = 5, 20
	// mcpPatience is the connectTimeoutSeconds of the server that hangs.
	mcpPatience = 2
)

// mcp measures chats with MCP servers, which run in the bench itself.
func (b *bench) mcp(ctx context.Context, f *Figures, turns int) error {
	servers, err := serveMCP(ctx, mcpServers)
	if err != nil {
		return err
	}
	f.MCP = &MCP{}
	for _, measure := range []func(context.Context, *mcpWorld, *MCP, int) error{b.mcpTurns, b.mcpCalls, b.mcpChats} {
		if err := measure(ctx, servers, f.MCP, turns); err != nil {
			return err
		}
	}
	return nil
}

// talk is a chat that is talked to turn by turn.
type talk struct {
	chat  string
	parts <-chan part
	turns int
	last  int64
}

func (b *bench) talk(ctx context.Context, chat string, entries []v1beta1.MCPServer) (*talk, error) {
	err := b.create(ctx, &v1beta1.Chat{ObjectMeta: meta(chat),
		Spec: v1beta1.ChatSpec{ChatSettings: v1beta1.ChatSettings{MCPServers: entries}}})
	if err != nil {
		return nil, err
	}
	parts, err := b.stream(ctx, chat)
	return &talk{chat: chat, parts: parts, last: -1}, err
}

// turn is how long the first part of a turn takes.
func (b *bench) turn(ctx context.Context, t *talk) (time.Duration, error) {
	began := time.Now()
	if err := b.say(ctx, t.chat, fmt.Sprintf("%s-%d", t.chat, t.turns)); err != nil {
		return 0, err
	}
	first, err := next(ctx, t.parts, t.last+1, "Text")
	if err != nil {
		return 0, err
	}
	t.last, t.turns = first.v, t.turns+1
	return first.at.Sub(began) - modelDelay, b.follow.answered(ctx, t.chat, int64(2*t.turns))
}

// mcpTurns measures turns of three chats, one after the other: the machine's mood of the minute meets all.
func (b *bench) mcpTurns(ctx context.Context, w *mcpWorld, m *MCP, turns int) error {
	ctx, stop := context.WithCancel(ctx) // The streams end with the stage.
	defer stop()
	if err := b.script(ctx, answer(modelDelay)); err != nil {
		return err
	}
	var talks []*talk
	samples := make([][]time.Duration, 3)
	for i, entries := range [][]v1beta1.MCPServer{nil, w.entries("turns"), w.withHanging("turns")} {
		t, err := b.talk(ctx, []string{"mcp-none", "mcp-five", "mcp-hang"}[i], entries)
		if err != nil {
			return err
		}
		talks = append(talks, t)
	}
	for round := range turns + 1 {
		for i, t := range talks {
			took, err := b.turn(ctx, t)
			if err != nil {
				return err
			}
			switch {
			case round > 0:
				samples[i] = append(samples[i], took)
			case i == 1:
				m.Unknown = float64(took.Microseconds()) / 1000
			case i == 2:
				m.Met = float64(took.Microseconds()) / 1000
			}
		}
	}
	m.Without, m.With, m.Hanging = percentiles(samples[0]), percentiles(samples[1]), percentiles(samples[2])
	m.ShareOfWithout, m.HangingShare = m.With.P50/m.Without.P50, m.Hanging.P50/m.Without.P50
	return nil
}

// mcpCalls measures calls of a tool of a server.
func (b *bench) mcpCalls(ctx context.Context, w *mcpWorld, m *MCP, turns int) error {
	if err := b.script(ctx, answerWithTool("s0__tool0", "{}")); err != nil {
		return err
	}
	err := b.create(ctx, &v1beta1.Chat{ObjectMeta: meta("mcp-calls"),
		Spec: v1beta1.ChatSpec{ChatSettings: v1beta1.ChatSettings{MCPServers: w.entries("calls")}}})
	if err != nil {
		return err
	}
	seconds, err := b.secondSteps(ctx, "mcp-calls", turns)
	if err == nil {
		m.SecondStep = percentiles(seconds)
	}
	return err
}

// mcpChats gives 20 chats a message at once, twice, first without servers.
func (b *bench) mcpChats(ctx context.Context, w *mcpWorld, m *MCP, _ int) (err error) {
	if err := b.script(ctx, answer(modelDelay)); err != nil {
		return err
	}
	if m.GeneratorWithout, err = b.mcpBurst(ctx, "mcp-plain-", nil); err != nil {
		return err
	}
	w.open.forget()
	if m.Generator, err = b.mcpBurst(ctx, "mcp-many-", w); err != nil {
		return err
	}
	m.Connections, m.Left = w.open.most()
	return nil
}

// mcpBurst returns the memory of the generation pod after two messages to each of the chats.
func (b *bench) mcpBurst(ctx context.Context, prefix string, w *mcpWorld) (float64, error) {
	err := each(ctx, mcpChats, func(ctx context.Context, i int) error {
		chat := &v1beta1.Chat{ObjectMeta: meta(fmt.Sprint(prefix, i))}
		if w != nil {
			chat.Spec.MCPServers = w.entries(chat.Name)
		}
		return b.create(ctx, chat)
	})
	for round := 0; err == nil && round < 2; round++ {
		err = b.burstRound(ctx, prefix, mcpChats, round)
	}
	if err != nil {
		return 0, err
	}
	most := 0.0
	for range 10 { // It may grow a little longer.
		time.Sleep(2 * time.Second)
		used, err := b.usage(ctx)
		if err != nil {
			return 0, err
		}
		most = max(most, used.rss.Generator)
	}
	return most, nil
}
