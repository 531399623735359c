// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/modelserver"
)

// Hops are the medians of when a turn has come how far, in milliseconds from its beginning and without the model's own
// delay. Those that other programs note are by their own clocks: on several nodes they are as good as these agree.
type Hops struct {
	// Created: the create of the message has returned.
	Created float64 `json:"created"`
	// Decided: the manager decides to begin the turn (status.turn.startedAt).
	Decided float64 `json:"decided"`
	// Assigned: a watch shows that the chat has a pod.
	Assigned float64 `json:"assigned"`
	// Begun: the pod begins the attempt (spec.generation.startedAt of the reply).
	Begun float64 `json:"begun"`
	// Asked: the model is called, and FirstPart: a client of the gateway has the first part.
	Asked     float64 `json:"asked"`
	FirstPart float64 `json:"first_part"`
	// Finished: the pod has the whole reply (spec.generation.finishedAt), and Ended: a watch shows the end of the turn.
	Finished float64 `json:"finished"`
	Ended    float64 `json:"ended"`
}

// hops are those of one turn.
type hops struct {
	created, decided, assigned, begun, asked, firstPart, finished, ended time.Time
}

// read fills in what others have noted of the last turn of the chat.
func (h *hops) read(ctx context.Context, b *bench, chat string) error {
	running := b.follow.lastRunning(chat)
	h.assigned, h.decided = running.seen, running.status.Turn.StartedAt.Time
	var c v1beta1.Chat
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: chat}, &c); err != nil {
		return fmt.Errorf("reading chat %s: %w", chat, err)
	}
	var reply v1beta1.ChatMessage
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: c.Status.History.Head}, &reply); err != nil {
		return fmt.Errorf("reading message %s: %w", c.Status.History.Head, err)
	}
	h.begun, h.finished = reply.Spec.Generation.StartedAt.Time, reply.Spec.Generation.FinishedAt.Time
	records, err := b.records(ctx)
	if err != nil {
		return err
	}
	for i := range records { // The floor calls the model, too.
		if records[i].Arrived.After(h.decided) && records[i].Arrived.Before(h.firstPart) {
			h.asked = records[i].Arrived
		}
	}
	return nil
}

// records are those of the model server since the last call.
func (b *bench) records(ctx context.Context) (records []modelserver.Record, err error) {
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		request, err := http.NewRequestWithContext(ctx, method, "http://"+b.model+"/_control/requests", http.NoBody)
		if err != nil {
			return nil, fmt.Errorf("reading what the model was asked: %w", err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, fmt.Errorf("reading what the model was asked: %w", err)
		}
		if method == http.MethodGet {
			err = json.NewDecoder(response.Body).Decode(&records)
		}
		if closing := response.Body.Close(); err != nil || closing != nil {
			return nil, fmt.Errorf("reading what the model was asked: %w", err)
		}
	}
	return records, nil
}

// medians of the hops of several turns, which began at these times.
func medians(began []time.Time, turns []hops) Hops {
	at := func(of func(*hops) time.Time, delay time.Duration) float64 {
		sample := make([]time.Duration, len(turns))
		for i := range turns {
			sample[i] = of(&turns[i]).Sub(began[i]) - delay
		}
		return percentiles(sample).P50
	}
	return Hops{
		Created:   at(func(h *hops) time.Time { return h.created }, 0),
		Decided:   at(func(h *hops) time.Time { return h.decided }, 0),
		Assigned:  at(func(h *hops) time.Time { return h.assigned }, 0),
		Begun:     at(func(h *hops) time.Time { return h.begun }, 0),
		Asked:     at(func(h *hops) time.Time { return h.asked }, 0),
		FirstPart: at(func(h *hops) time.Time { return h.firstPart }, modelDelay),
		Finished:  at(func(h *hops) time.Time { return h.finished }, modelDelay),
		Ended:     at(func(h *hops) time.Time { return h.ended }, modelDelay),
	}
}
