// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley.dev/parley/api/v1alpha1"
)

// cold measures the first turn in a namespace that has no generation pod.
func (b *bench) cold(ctx context.Context, f *Figures) error {
	ctx, stop := context.WithCancel(ctx) // The stream ends with the stage.
	defer stop()
	if err := b.script(ctx, answer(modelDelay)); err != nil {
		return err
	}
	if err := b.create(ctx, &v1alpha1.Chat{ObjectMeta: meta("warm")}); err != nil {
		return err
	}
	parts, err := b.stream(ctx, "warm")
	if err != nil {
		return err
	}
	began := time.Now()
	if err := b.say(ctx, "warm", "warm-0"); err != nil {
		return err
	}
	first, err := next(ctx, parts, 0, "Text")
	if err != nil {
		return err
	}
	f.ColdPod = (first.at.Sub(began) - modelDelay).Seconds()
	return b.follow.answered(ctx, "warm", 2)
}

// single measures turns of one step, one after another, on a warm pod.
func (b *bench) single(ctx context.Context, f *Figures, turns int) error {
	parts, err := b.stream(ctx, "warm")
	if err != nil {
		return err
	}
	before, err := b.settledWrites(ctx)
	if err != nil {
		return err
	}
	var firsts, whole []time.Duration
	last := int64(1) // The chat has a message and its reply.
	for i := range turns {
		began := time.Now()
		if err := b.say(ctx, "warm", fmt.Sprintf("warm-%d", i+1)); err != nil {
			return err
		}
		first, err := next(ctx, parts, last+1, "Text")
		if err != nil {
			return err
		}
		last = first.v
		firsts = append(firsts, first.at.Sub(began)-modelDelay)
		if err := b.follow.answered(ctx, "warm", int64(2*i+4)); err != nil {
			return err
		}
		whole = append(whole, time.Since(began)-modelDelay)
	}
	after, err := b.settledWrites(ctx)
	if err != nil {
		return err
	}
	f.FirstPart, f.Turn = percentiles(firsts), percentiles(whole)
	f.Writes.SingleStep = (after.writes - before.writes) / float64(turns)
	f.Writes.Events = (after.events - before.events) / float64(turns)
	return nil
}

// steps measures turns in which the model calls a tool: from the call, as the client sees it, to the first part of the
// next reply.
func (b *bench) steps(ctx context.Context, f *Figures, turns int) error {
	if err := b.script(ctx, answerWithTool("current_time", "{}")); err != nil {
		return err
	}
	if err := b.create(ctx, &v1alpha1.Chat{ObjectMeta: meta("steps")}); err != nil {
		return err
	}
	before, err := b.settledWrites(ctx)
	if err != nil {
		return err
	}
	seconds, err := b.secondSteps(ctx, "steps", turns)
	if err != nil {
		return err
	}
	after, err := b.settledWrites(ctx)
	if err != nil {
		return err
	}
	f.SecondStep = percentiles(seconds)
	f.Writes.FurtherStep = ((after.writes-before.writes)/float64(turns) - f.Writes.SingleStep) / 2
	return nil
}

// secondSteps are the times from a call to the first part of the next reply, in so many turns of a chat.
func (b *bench) secondSteps(ctx context.Context, chat string, turns int) ([]time.Duration, error) {
	ctx, stop := context.WithCancel(ctx) // The stream ends with the stage.
	defer stop()
	parts, err := b.stream(ctx, chat)
	if err != nil {
		return nil, err
	}
	var seconds []time.Duration
	var last int64
	for i := range turns {
		if err := b.say(ctx, chat, fmt.Sprintf("%s-%d", chat, i)); err != nil {
			return nil, err
		}
		call, err := next(ctx, parts, last+1, "ToolCall")
		if err != nil {
			return nil, err
		}
		text, err := next(ctx, parts, call.v+1, "Text")
		if err != nil {
			return nil, err
		}
		last = text.v
		seconds = append(seconds, text.at.Sub(call.at)-modelDelay)
		if err := b.follow.answered(ctx, chat, int64(4*i+4)); err != nil {
			return nil, err
		}
	}
	return seconds, nil
}

// next waits for a part of that kind of a reply that builds on version v of the history or a later one,
// or for the reply itself.
func next(ctx context.Context, parts <-chan part, v int64, kind string) (part, error) {
	patience := time.After(time.Minute)
	for {
		select {
		case p, ok := <-parts:
			if !ok {
				return part{}, fmt.Errorf("the gateway ended the stream")
			}
			if p.v >= v && (p.kind == kind || p.kind == kindReply) {
				return p, nil
			}
		case <-patience:
			return part{}, fmt.Errorf("no part of kind %s came for a minute", kind)
		case <-ctx.Done():
			return part{}, ctx.Err()
		}
	}
}

func percentiles(sample []time.Duration) Percentiles {
	slices.Sort(sample)
	at := func(q float64) float64 {
		return float64(sample[int(q*float64(len(sample)-1))].Microseconds()) / 1000
	}
	return Percentiles{P50: at(0.5), P95: at(0.95)}
}
