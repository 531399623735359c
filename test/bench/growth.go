// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
)

// Growth is a burst of 300 chats over a model that takes half a second, in seconds until all are answered: with as many
// ready generation pods as their capacity asks for, and with one. The medians.
type Growth struct {
	PodsUp  float64 `json:"pods_up_s"`
	OnePod  float64 `json:"one_pod_s"`
	Share   float64 `json:"one_pod_share_of_pods_up"`
	PodsNow int     `json:"pods_after_one_pod"`
}

const (
	growthChats = 300
	growthPods  = 3
	growthDelay = 500 * time.Millisecond
)

// growth measures bursts, in turn with all pods and with one.
func growth(ctx context.Context, b *bench, f *Figures) error {
	if err := b.script(ctx, answer(growthDelay)); err != nil {
		return err
	}
	const prefix = "growth-"
	if err := each(ctx, growthChats, func(ctx context.Context, i int) error {
		return b.create(ctx, &v1beta1.Chat{ObjectMeta: meta(fmt.Sprint(prefix, i))})
	}); err != nil {
		return err
	}
	class := chattest.In(namespace, chattest.Class("growth", func(s *v1beta1.ChatClassSpec) { s.Default = true }))
	if err := b.create(ctx, class); err != nil {
		return err
	}
	var up, one []float64
	for round := range 2*rounds + 1 {
		pods, times := growthPods, &up
		if round%2 == 1 {
			pods, times = 1, &one
		}
		if err := havePods(ctx, b, class, pods); err != nil {
			return err
		}
		began := time.Now()
		if err := b.burstRound(ctx, prefix, growthChats, round); err != nil {
			return err
		}
		if round > 0 { // The first one warms up.
			*times = append(*times, time.Since(began).Seconds())
		}
		if err := b.countPods(ctx, f); err != nil {
			return err
		}
		if pods == 1 {
			f.Growth.PodsNow = f.GenerationPods
		}
	}
	f.Growth.PodsUp, f.Growth.OnePod = median(up), median(one)
	f.Growth.Share = f.Growth.OnePod / f.Growth.PodsUp
	return b.client.Delete(ctx, class)
}

// havePods makes it so many generation pods, all of them ready and without chats.
func havePods(ctx context.Context, b *bench, class *v1beta1.ChatClass, n int) error {
	if err := askForSpares(ctx, b, class, n); err != nil {
		return err
	}
	for ; ; time.Sleep(look) {
		var pods corev1.PodList
		if err := b.client.List(ctx, &pods, client.InNamespace(namespace),
			client.MatchingLabels{podspec.LabelComponent: podspec.ComponentGeneration}); err != nil {
			return fmt.Errorf("listing generation pods: %w", err)
		}
		ready, others := 0, []*corev1.Pod(nil)
		for i := range pods.Items {
			if isReady(&pods.Items[i]) && ready < n {
				ready++
				continue
			}
			others = append(others, &pods.Items[i])
		}
		if ready < n {
			continue
		}
		if len(others) == 0 {
			return askForSpares(ctx, b, class, 0) // In a burst, chats alone add pods.
		}
		for _, pod := range others {
			if err := client.IgnoreNotFound(b.client.Delete(ctx, pod)); err != nil {
				return fmt.Errorf("deleting a generation pod: %w", err)
			}
		}
	}
}

func askForSpares(ctx context.Context, b *bench, class *v1beta1.ChatClass, n int) error {
	before := class.DeepCopy()
	class.Spec.SpareGenerationPods = int32(n)
	if err := b.client.Patch(ctx, class, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("asking for spare pods: %w", err)
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
