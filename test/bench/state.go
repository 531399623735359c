// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Process is what a program says of itself.
type Process struct {
	// RSS is its resident memory, and Live what its last garbage collection has left of its heap, in MiB. Live is 0 of
	// programs that do not say so.
	RSS  float64 `json:"rss_mib"`
	Live float64 `json:"live_heap_mib,omitempty"`
	// cpu is what it has used since its start, in seconds of one processor.
	cpu float64
}

// process asks the program in a pod that serves metrics at the port. The API server passes the request on.
func (b *bench) process(ctx context.Context, pod *corev1.Pod, port string) (p Process, err error) {
	raw, err := b.core.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, port, "/metrics", nil).DoRaw(ctx)
	if err != nil {
		return p, fmt.Errorf("reading the metrics of pod %s: %w", pod.Name, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return p, fmt.Errorf("reading the metrics of pod %s: %w", pod.Name, err)
	}
	for name, into := range map[string]*float64{"process_resident_memory_bytes": &p.RSS,
		"go_gc_heap_live_bytes": &p.Live, "process_cpu_seconds_total": &p.cpu} {
		for _, metric := range families[name].GetMetric() {
			*into = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	p.RSS, p.Live = p.RSS/(1<<20), p.Live/(1<<20)
	return p, nil
}

// component is the pod of a component of Parley that is ready; nil if there is none.
func (b *bench) component(ctx context.Context, name string) (*corev1.Pod, error) {
	pods, err := b.core.CoreV1().Pods("parley-system").
		List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + name})
	if err != nil {
		return nil, fmt.Errorf("finding the %s: %w", name, err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil && ready(p) {
			return p, nil
		}
	}
	return nil, nil
}

// state measures turns of the chat warm, what Parley's programs hold, and a manager that starts.
func (b *bench) state(ctx context.Context, s *State, f *Scale, of sizes) error {
	w, err := b.turnsOf(ctx, func(done int) bool { return done == of.turns })
	if err != nil {
		return err
	}
	s.FirstPart, s.Turn = w.percentiles()
	s.FirstPartShare, s.TurnShare = s.FirstPart.P50/f.Empty.FirstPart.P50, s.Turn.P50/f.Empty.Turn.P50
	if err := b.restart(ctx, s); err != nil {
		return err
	}
	for name, into := range map[string]*Process{"manager": &s.Manager, "gateway": &s.Gateway} {
		pod, err := b.component(ctx, name)
		if err == nil && pod == nil {
			err = fmt.Errorf("no %s is ready", name)
		}
		if err == nil {
			*into, err = b.process(ctx, pod, strconv.Itoa(metricsPorts[name]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// turnsOf measures turns of the chat warm, one after another, until enough are done.
func (b *bench) turnsOf(ctx context.Context, enough func(done int) bool) (*warmChat, error) {
	ctx, stop := context.WithCancel(ctx) // The stream ends with the stage.
	defer stop()
	parts, err := b.stream(ctx, "warm")
	if err != nil {
		return nil, err
	}
	w := &warmChat{bench: b, parts: parts, length: b.follow.length("warm")}
	for !enough(len(w.turns)) {
		if err := w.turn(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// creates are how long it took to create the messages that began the turns.
func (w *warmChat) creates() Percentiles {
	took := make([]time.Duration, len(w.turns))
	for i := range w.turns {
		took[i] = w.turns[i].created.Sub(w.began[i])
	}
	return percentiles(took)
}

// length is that of the history of a chat.
func (f *followers) length(name string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.chats[name].Status.History.Length
}

// restart deletes the manager's pod, and says a message once that is gone: until then it may still answer.
func (b *bench) restart(ctx context.Context, s *State) error {
	before, err := b.component(ctx, "manager")
	if err == nil && before == nil {
		err = errors.New("no manager is ready")
	}
	if err != nil {
		return err
	}
	began, length := time.Now(), b.follow.length("warm")
	if err := b.core.CoreV1().Pods(before.Namespace).Delete(ctx, before.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting the manager's pod: %w", err)
	}
	for {
		pod, err := b.core.CoreV1().Pods(before.Namespace).Get(ctx, before.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && pod.UID != before.UID {
			break
		}
		if err != nil {
			return fmt.Errorf("looking at the manager's pod: %w", err)
		}
		time.Sleep(look)
	}
	if err := b.say(ctx, "warm", fmt.Sprintf("warm-%d", length)); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := b.follow.answered(ctx, "warm", length+2)
		s.Answered = time.Since(began).Seconds()
		return err
	})
	group.Go(func() error {
		for pod, err := b.component(ctx, "manager"); pod == nil; pod, err = b.component(ctx, "manager") {
			if err != nil {
				return err
			}
			time.Sleep(look)
		}
		s.Ready = time.Since(began).Seconds()
		return nil
	})
	return group.Wait()
}

// look is how often something is looked at that nothing tells of.
const look = 20 * time.Millisecond
