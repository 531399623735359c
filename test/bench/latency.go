// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
)

// cold measures the first turn in a namespace that has no generation pod.
func (b *bench) cold(ctx context.Context, f *Figures) error {
	ctx, stop := context.WithCancel(ctx) // The stream ends with the stage.
	defer stop()
	if err := b.script(ctx, answer(modelDelay)); err != nil {
		return err
	}
	if err := b.create(ctx, &v1beta1.Chat{ObjectMeta: meta("warm")}); err != nil {
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
	if err := b.follow.answered(ctx, "warm", 2); err != nil {
		return err
	}
	bare, err := b.barePair(ctx)
	f.BarePod, f.ColdPodShare = bare, f.ColdPod/bare
	return err
}

// barePair is how many seconds a pod of two containers of Parley's image takes until both run and it is ready. It has
// the token of its account, as pods have by default: a kubelet looks every 300 ms whether a pod's volumes are there.
func (b *bench) barePair(ctx context.Context) (float64, error) {
	var model corev1.Pod
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "model"}, &model); err != nil {
		return 0, fmt.Errorf("reading the model's pod: %w", err)
	}
	pair := make([]corev1.Container, 2)
	for i := range pair {
		pair[i] = *model.Spec.Containers[0].DeepCopy()
		pair[i].Name, pair[i].Args = fmt.Sprint("model-", i), []string{fmt.Sprint("--listen=:", 8080+i)}
		pair[i].VolumeMounts = nil // That of the token.
	}
	return b.barePod(ctx, "bare-pair", corev1.PodSpec{Containers: pair})
}

// single measures turns of one step on a warm pod, one after another: each beside one of the floor, so that the
// machine's mood of the minute meets both, and then back to back.
func (b *bench) single(ctx context.Context, f *Figures, turns int) (err error) {
	parts, err := b.stream(ctx, "warm")
	if err != nil {
		return err
	}
	like, err := b.specimen(ctx, "warm")
	if err != nil {
		return err
	}
	bottom, err := b.newFloor(ctx, like)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bottom.close(context.WithoutCancel(ctx))) }()
	w := &warmChat{bench: b, parts: parts, length: 2}
	before, err := b.settledWrites(ctx)
	if err != nil {
		return err
	}
	for range turns {
		if err := w.besideFloor(ctx, bottom); err != nil {
			return err
		}
	}
	after, err := b.settledWrites(ctx)
	if err != nil {
		return err
	}
	f.Writes.SingleStep = (after.writes - before.writes) / float64(turns)
	f.Writes.Events = (after.events - before.events) / float64(turns)
	f.Reads = (after.reads-before.reads)/float64(turns) - ownReads
	f.Hops = medians(w.began, w.turns)
	f.FirstPart, f.Turn = w.percentiles()
	f.Floor = Floor{FirstPart: percentiles(w.floorFirsts), Turn: percentiles(w.floorTurns)}
	f.FirstPartShare, f.TurnShare = f.FirstPart.P50/f.Floor.FirstPart.P50, f.Turn.P50/f.Floor.Turn.P50

	w.began, w.turns = nil, nil
	for range turns {
		if err := w.turn(ctx); err != nil {
			return err
		}
	}
	f.BackToBack.FirstPart, f.BackToBack.Turn = w.percentiles()
	f.BackToBack.FirstPartShare = f.BackToBack.FirstPart.P50 / f.Floor.FirstPart.P50
	f.BackToBack.TurnShare = f.BackToBack.Turn.P50 / f.Floor.Turn.P50
	return nil
}

// ownReads of a turn are the bench's own: see hops.read.
const ownReads = 2

// warmChat is the chat warm, which a pod has, and what its turns took.
type warmChat struct {
	bench *bench
	parts <-chan part
	// length of its history.
	length int64
	began  []time.Time
	turns  []hops

	floorFirsts, floorTurns []time.Duration
}

// besideFloor measures a turn of the floor and one of the chat.
func (w *warmChat) besideFloor(ctx context.Context, bottom *floor) error {
	first, whole, err := bottom.turn(ctx)
	if err != nil {
		return err
	}
	w.floorFirsts, w.floorTurns = append(w.floorFirsts, first), append(w.floorTurns, whole)
	if err := w.turn(ctx); err != nil {
		return err
	}
	return w.turns[len(w.turns)-1].read(ctx, w.bench, "warm")
}

// turn sends a message and waits until a watch shows that it is answered.
func (w *warmChat) turn(ctx context.Context) error {
	var h hops
	began := time.Now()
	if err := w.bench.say(ctx, "warm", fmt.Sprintf("warm-%d", w.length)); err != nil {
		return err
	}
	h.created = time.Now()
	// Of the version that the message makes: the reply before it made that of its length.
	first, err := next(ctx, w.parts, w.length, "Text")
	if err != nil {
		return err
	}
	h.firstPart = first.at
	w.length += 2
	if err := w.bench.follow.answered(ctx, "warm", w.length); err != nil {
		return err
	}
	h.ended = time.Now()
	w.began, w.turns = append(w.began, began), append(w.turns, h)
	return nil
}

// percentiles of the first part and of the whole turn, without the model's own delay.
func (w *warmChat) percentiles() (firstPart, turn Percentiles) {
	firsts, whole := make([]time.Duration, len(w.turns)), make([]time.Duration, len(w.turns))
	for i := range w.turns {
		firsts[i] = w.turns[i].firstPart.Sub(w.began[i]) - modelDelay
		whole[i] = w.turns[i].ended.Sub(w.began[i]) - modelDelay
	}
	return percentiles(firsts), percentiles(whole)
}

// steps measures turns in which the model calls a tool: from the call, as the client sees it, to the first part of the
// next reply.
func (b *bench) steps(ctx context.Context, f *Figures, turns int) error {
	if err := b.script(ctx, answerWithTool("current_time", "{}")); err != nil {
		return err
	}
	if err := b.create(ctx, &v1beta1.Chat{ObjectMeta: meta("steps")}); err != nil {
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
