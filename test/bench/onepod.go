// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/modelserver"
)

// OnePod is a generation pod that answers many chats at once.
type OnePod struct {
	Chats int `json:"chats"`
	// Reply is how many seconds a model takes to say a reply, and All from the first message to the last answer.
	Reply float64 `json:"reply_s"`
	All   float64 `json:"all_answered_s"`
	// AtOnce is the most chats that were seen to be generating at one moment.
	AtOnce int `json:"at_once"`
	// CPU of the generator and the relay for all of it, in seconds of one processor, and the most memory that they had.
	CPU       Components `json:"cpu_s"`
	Generator float64    `json:"generator_rss_mib"`
	Relay     float64    `json:"relay_rss_mib"`
	// Late is by how much more than the model's own pace a part came after the one before it, for clients of the gateway
	// that follow some of the chats. Milliseconds.
	Late Percentiles `json:"part_late_ms"`
}

const (
	// pieces of a reply, and pace at which the model says them.
	pieces = 100
	pace   = 100 * time.Millisecond
	// followed is how many of the chats are followed.
	followed = 20
)

// onePod has a pod that takes as many chats as there are answer them.
func (b *bench) onePod(ctx context.Context, f *OnePod, chats int) (err error) {
	f.Chats, f.Reply = chats, (modelDelay + (pieces-1)*pace).Seconds()
	restore, err := b.withCapacity(ctx, chats+1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore(context.WithoutCancel(ctx))) }()
	if err := b.script(ctx, modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{
		Steps:       []modelserver.Step{modelserver.Say(slices.Repeat([]string{"word "}, pieces)...)},
		DelayBefore: modelserver.Duration(modelDelay), DelayBetween: modelserver.Duration(pace),
	}}}}); err != nil {
		return err
	}
	pod, err := b.firstPod(ctx)
	if err != nil {
		return err
	}
	if err := some(ctx, chats, func(ctx context.Context, i int) error {
		return b.create(ctx, chattest.In(namespace, chattest.Chat(fmt.Sprint("many-", i))))
	}); err != nil {
		return err
	}
	return b.allAtOnce(ctx, f, pod)
}

// withCapacity has the manager put so many chats into a pod.
func (b *bench) withCapacity(ctx context.Context, capacity int) (restore func(context.Context) error, err error) {
	deployments := b.core.AppsV1().Deployments("parley-system")
	before, err := deployments.Get(ctx, "parley-manager", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the manager's deployment: %w", err)
	}
	args := before.Spec.Template.Spec.Containers[0].Args
	set := func(ctx context.Context, args []string) error {
		patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/template/spec/containers/0/args",
			"value": append([]string{}, args...)}})
		if err != nil {
			return fmt.Errorf("changing the manager's arguments: %w", err)
		}
		d, err := deployments.Patch(ctx, "parley-manager", types.JSONPatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("changing the manager's arguments: %w", err)
		}
		return b.rolledOut(ctx, d)
	}
	return func(ctx context.Context) error { return set(ctx, args) },
		set(ctx, append(slices.Clone(args), fmt.Sprint("--pod-capacity=", capacity)))
}

// rolledOut waits until the deployment is what it was last changed to.
func (b *bench) rolledOut(ctx context.Context, changed *appsv1.Deployment) error {
	for {
		d, err := b.core.AppsV1().Deployments(changed.Namespace).Get(ctx, changed.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("looking at the manager: %w", err)
		}
		if st := d.Status; st.ObservedGeneration >= changed.Generation && st.UpdatedReplicas == *d.Spec.Replicas &&
			st.ReadyReplicas == st.Replicas && st.Replicas == st.UpdatedReplicas {
			return nil
		}
		time.Sleep(look)
	}
}

// firstPod has the chat warm answered by a pod of the new capacity, and returns that pod.
func (b *bench) firstPod(ctx context.Context) (*corev1.Pod, error) {
	length := b.follow.length("warm")
	if err := b.say(ctx, "warm", fmt.Sprintf("warm-%d", length)); err != nil {
		return nil, err
	}
	if err := b.follow.answered(ctx, "warm", length+2); err != nil {
		return nil, err
	}
	name := b.follow.lastRunning("warm").status.Generation.Pod
	pod, err := b.core.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", name, err)
	}
	return pod, nil
}

// allAtOnce gives all chats a message at once, and waits until all are answered.
func (b *bench) allAtOnce(ctx context.Context, f *OnePod, pod *corev1.Pod) error {
	ctx, stop := context.WithCancel(ctx) // The streams end with the stage.
	defer stop()
	var streams []<-chan part
	for i := range min(followed, f.Chats) {
		parts, err := b.stream(ctx, fmt.Sprint("many-", i))
		if err != nil {
			return err
		}
		streams = append(streams, parts)
	}
	before, err := b.pairOf(ctx, pod)
	if err != nil {
		return err
	}
	began := time.Now()
	group, running := errgroup.WithContext(ctx)
	watched, answered := context.WithCancel(running)
	defer answered()
	group.Go(func() error { return b.most(watched, f, pod) })
	group.Go(func() error {
		defer answered()
		if err := each(running, f.Chats, func(ctx context.Context, i int) error {
			return b.say(ctx, fmt.Sprint("many-", i), fmt.Sprintf("many-%d-q", i))
		}); err != nil {
			return err
		}
		return b.follow.until(running, func(all map[string]*v1beta1.Chat) bool { return f.see(all, pod.Name) })
	})
	late := make([][]time.Duration, len(streams))
	for i, parts := range streams {
		group.Go(func() (err error) { late[i], err = lateness(running, parts); return err })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	f.All, f.Late = time.Since(began).Seconds(), percentiles(slices.Concat(late...))
	after, err := b.pairOf(ctx, pod)
	f.CPU.Generator, f.CPU.Relay = after[0].cpu-before[0].cpu, after[1].cpu-before[1].cpu
	return err
}

// see counts the chats that the pod has, and reports whether all have been answered.
func (f *OnePod) see(all map[string]*v1beta1.Chat, pod string) (answered bool) {
	generating, done := 0, 0
	for name, chat := range all {
		switch g := chat.Status.Generation; {
		case g != nil && g.Pod == pod:
			generating++
		case strings.HasPrefix(name, "many-") && isAnswered(chat, 2):
			done++
		}
	}
	f.AtOnce = max(f.AtOnce, generating)
	return done == f.Chats
}

// pairOf asks generator and relay of a pod.
func (b *bench) pairOf(ctx context.Context, pod *corev1.Pod) (pair [2]Process, err error) {
	for i, port := range []int{podspec.MetricsPort, podspec.RelayMetricsPort} {
		if pair[i], err = b.process(ctx, pod, fmt.Sprint(port)); err != nil {
			return pair, err
		}
	}
	return pair, nil
}

// most keeps the most memory that the pod has until the context is done.
func (b *bench) most(ctx context.Context, f *OnePod, pod *corev1.Pod) error {
	for {
		pair, err := b.pairOf(context.WithoutCancel(ctx), pod)
		if err != nil {
			return err
		}
		f.Generator, f.Relay = max(f.Generator, pair[0].RSS), max(f.Relay, pair[1].RSS)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// lateness reads the parts of one reply.
func lateness(ctx context.Context, parts <-chan part) (late []time.Duration, err error) {
	var last time.Time
	for {
		p, err := next(ctx, parts, 0, "Text")
		if err != nil {
			return nil, err
		}
		if p.kind == kindReply {
			return late, nil
		}
		if !last.IsZero() {
			late = append(late, max(0, p.at.Sub(last)-pace))
		}
		last = p.at
	}
}
