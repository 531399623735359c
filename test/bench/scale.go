// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
)

// Scale is how Parley fares with many chats, with the names that the figures have in bin/bench-scale.json. Times of
// parts and turns are milliseconds without the model server's own delay.
type Scale struct {
	// Empty is of a cluster with one chat, Chats with many at rest in the namespace of that one, and Namespaces with ten
	// at rest in each of many other namespaces.
	Empty      State `json:"empty"`
	Chats      State `json:"chats"`
	Namespaces State `json:"namespaces"`
	// Deletion is of the chats in the one namespace.
	Deletion Deletion `json:"deletion"`
	Fairness Fairness `json:"fairness"`
	OnePod   OnePod   `json:"one_pod"`
}

// State of a cluster with chats at rest, and what one more chat takes there.
type State struct {
	Chats      int         `json:"chats"`
	Namespaces int         `json:"namespaces"`
	FirstPart  Percentiles `json:"first_part_ms"`
	Turn       Percentiles `json:"turn_ms"`
	// The shares are of the medians of the empty cluster.
	FirstPartShare float64 `json:"first_part_share_of_empty"`
	TurnShare      float64 `json:"turn_share_of_empty"`
	Manager        Process `json:"manager"`
	Gateway        Process `json:"gateway"`
	// Ready is how many seconds after the deletion of its pod a manager is ready, and Answered how many seconds after that
	// deletion a message is answered that was said at that moment.
	Ready    float64 `json:"restart_ready_s"`
	Answered float64 `json:"restart_answered_s"`
}

// Deletion is what becomes of chats that 16 clients delete.
type Deletion struct {
	// PerSecond are the messages of these chats that are gone in a second.
	PerSecond float64 `json:"messages_per_s"`
	// FirstPart and Turn are those of another chat meanwhile.
	FirstPart Percentiles `json:"first_part_ms"`
	Turn      Percentiles `json:"turn_ms"`
}

// sizes of what is measured.
type sizes struct{ chats, namespaces, busy, pod, turns int }

const (
	// chatsEach is how many chats a namespace has in which no other is measured.
	chatsEach = 10
	// restful is how the chats are named that are at rest. It sorts before that of the one that is measured.
	restful = "rest-"
)

// atScale measures Parley with many chats.
func atScale(ctx context.Context, model string, of sizes) (*Scale, error) {
	b, err := newBench(ctx, model)
	if err != nil {
		return nil, err
	}
	f := &Scale{}
	for _, stage := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"an empty cluster", func(ctx context.Context) error { return b.empty(ctx, f, of) }},
		{fmt.Sprint(of.chats, " chats in a namespace"), func(ctx context.Context) error { return b.crowded(ctx, f, of) }},
		{"their deletion", func(ctx context.Context) error { return b.deleteAll(ctx, f, of) }},
		{fmt.Sprint(of.namespaces, " namespaces"), func(ctx context.Context) error { return b.scattered(ctx, f, of) }},
		{fmt.Sprint(of.busy, " busy chats elsewhere"),
			func(ctx context.Context) error { return b.fair(ctx, &f.Fairness, of) }},
		{fmt.Sprint(of.pod, " chats in a pod"), func(ctx context.Context) error { return b.onePod(ctx, &f.OnePod, of.pod) }},
	} {
		began := time.Now()
		if err := stage.run(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", stage.name, err)
		}
		fmt.Printf("%-34s %6.1f s\n", stage.name, time.Since(began).Seconds())
	}
	reportScale(os.Stdout, f)
	return f, nil
}

// empty measures a cluster that has nothing but the chat that is measured.
func (b *bench) empty(ctx context.Context, f *Scale, of sizes) error {
	if err := b.script(ctx, answer(modelDelay)); err != nil {
		return err
	}
	if err := b.create(ctx, chattest.In(namespace, chattest.Chat("warm"))); err != nil {
		return err
	}
	if err := b.say(ctx, "warm", "warm-0"); err != nil {
		return err
	}
	if err := b.follow.answered(ctx, "warm", 2); err != nil {
		return err
	}
	return b.state(ctx, &f.Empty, f, of)
}

// crowded measures a namespace of many chats.
func (b *bench) crowded(ctx context.Context, f *Scale, of sizes) error {
	f.Chats.Chats = of.chats
	place := func(i int) (in, name string) { return namespace, fmt.Sprint(restful, i) }
	if err := b.fillAtRest(ctx, of.chats, place); err != nil {
		return err
	}
	return b.state(ctx, &f.Chats, f, of)
}

// scattered measures a cluster of many namespaces, and removes them.
func (b *bench) scattered(ctx context.Context, f *Scale, of sizes) error {
	f.Namespaces.Chats, f.Namespaces.Namespaces = of.namespaces*chatsEach, of.namespaces
	named := func(i int) *corev1.Namespace { return further(fmt.Sprint(restful, i)) }
	if err := some(ctx, of.namespaces, func(ctx context.Context, i int) error {
		if err := b.create(ctx, named(i)); err != nil {
			return err
		}
		return b.create(ctx, b.modelConfig(named(i).Name))
	}); err != nil {
		return err
	}
	if err := b.prepared(ctx, of.namespaces); err != nil {
		return err
	}
	if err := b.fillAtRest(ctx, f.Namespaces.Chats, func(i int) (in, name string) {
		return named(i / chatsEach).Name, fmt.Sprint(restful, i%chatsEach)
	}); err != nil {
		return err
	}
	return b.state(ctx, &f.Namespaces, f, of)
}

// prepared waits until the manager has prepared so many of the bench's further namespaces for generation pods. The
// NetworkPolicy is the last that it makes.
func (b *bench) prepared(ctx context.Context, namespaces int) error {
	began := time.Now()
	err := wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		there, err := b.core.NetworkingV1().NetworkPolicies("").
			List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + podspec.ServiceAccount})
		if err != nil {
			return false, err
		}
		prepared := 0
		for i := range there.Items {
			if strings.HasPrefix(there.Items[i].Namespace, further("").Name) {
				prepared++
			}
		}
		return prepared >= namespaces, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the namespaces to be prepared: %w", err)
	}
	fmt.Printf("%-34s %6.1f s\n", fmt.Sprint("  prepared ", namespaces), time.Since(began).Seconds())
	return nil
}

// further is a namespace besides that of the bench. hack/bench.sh removes it.
func further(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name,
		Labels: map[string]string{"parley-bench": ""}}}
}

// fillAtRest makes chats of one turn each, while no manager runs, and returns once one has looked at all of them.
func (b *bench) fillAtRest(ctx context.Context, chats int, place func(i int) (namespace, name string)) error {
	restore, err := b.withoutManager(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := some(ctx, chats, func(ctx context.Context, i int) error {
		namespace, name := place(i)
		return b.fill(ctx, namespace, name, 1, "How do I rotate the signing keys of my cluster?")
	}); err != nil {
		return err
	}
	fmt.Printf("%-34s %6.1f s\n", fmt.Sprint("  filled with ", chats), time.Since(began).Seconds())
	if err := restore(ctx); err != nil {
		return err
	}
	_, err = b.settledWrites(ctx)
	return err
}
