// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// beat is the time between two writes of the pulse.
	beat = 250 * time.Millisecond
	// arrest is how late a beat may be: 3 s. Where one write of one small object takes longer, the disk or the processors
	// are at somebody else's work, and what the operator does not do within its time proves nothing.
	arrest = 3 * time.Second
)

// pulse writes to the API server all the time, and remembers when that was late: it tells a machine that stands still
// from an operator that does.
type pulse struct {
	mu   sync.Mutex
	last time.Time // of the last beat that went well
	late time.Time // when the last beat that was late ended
}

// beats begins the pulse. It ends with ctx.
func beats(ctx context.Context, c client.Client) (p *pulse, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	p = &pulse{last: time.Now()}
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "pulse-"}}
			if c.Create(ctx, o) == nil && c.Delete(ctx, o) == nil {
				p.beat(time.Now())
			}
			select {
			case <-time.After(beat):
			case <-ctx.Done():
			}
		}
	})
	return p, func() {
		cancel()
		running.Wait()
	}
}

func (p *pulse) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.last) > arrest {
		p.late = now
	}
	p.last = now
}

// stoodStill reports whether a beat was late since then, or is late now.
func (p *pulse) stoodStill(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late.After(since) || time.Since(p.last) > arrest
}
