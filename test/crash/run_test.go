// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"parley.dev/parley/test/kit/faultclient"
)

// runTimeout is how long one run may take. A run takes seconds, and over a minute where twenty programs share two CPUs.
const runTimeout = 5 * time.Minute

// world is one run of a scenario.
type world struct {
	ns        string
	scenario  *scenario
	generator *generator
	// sub plays the generation pods for the sub-chat.
	sub *generator

	// managers is how many there are at a time.
	managers int

	mu    sync.Mutex
	lives []*manager // every life that any of the run's managers has had
	err   error      // why one could not begin

	// common is the number of the first manager's writes before fromHere.
	common int
}

// outcome is what a run has come to.
type outcome struct {
	state    string
	attempts int
	broken   []string
	writes   []faultclient.Write // of the first life
	common   int                 // how many of them are not disturbed
	struck   bool
}

// run runs the scenario with the managers of the disturbance, and with each of them again when it has died.
func run(ctx context.Context, s *scenario, d disturbance) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	w := &world{ns: "t-" + rand.String(8), scenario: s, generator: newGenerator(), sub: newGenerator()}
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	living, die := context.WithCancel(ctx)
	var managers sync.WaitGroup
	options := d.managers(w.ns)
	w.managers = len(options)
	for _, o := range options {
		managers.Go(func() { w.keepAlive(living, o) })
	}
	end, err := w.play(ctx, d.quiet)
	die()
	managers.Wait()
	if end == nil {
		return nil, err
	}
	out := &outcome{state: end.render(), attempts: w.generator.attempts() + w.sub.attempts(), common: w.common,
		broken: broken(end, watched.course(w.ns))}
	if err = errors.Join(err, w.err); err != nil {
		out.broken = append(out.broken, err.Error())
	}
	if len(w.lives) > 0 {
		out.writes, out.struck = w.lives[0].Writes(), w.lives[0].Struck()
	}
	return out, nil
}

func (w *world) prepare(ctx context.Context) error {
	if err := cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}); err != nil {
		return fmt.Errorf("creating namespace %s: %w", w.ns, err)
	}
	if w.scenario.bare {
		return nil
	}
	return configures()(ctx, w)
}

// keepAlive runs a manager, and a new one each time it has died. Only the first life has the fault.
func (w *world) keepAlive(ctx context.Context, o faultclient.Options) {
	for ctx.Err() == nil {
		m, err := startManager(ctx, w.ns, o)
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			return
		}
		w.mu.Lock()
		w.lives = append(w.lives, m)
		w.mu.Unlock()
		select {
		case <-m.Dead():
		case <-ctx.Done():
		}
		m.stop()
		o.Fault = nil
	}
}

// idle is for how long no manager has asked the API server anything; 0 while one has died and not begun again, which
// has all to do that the last life has left.
func (w *world) idle() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	least, alive := runTimeout, 0
	for _, m := range w.lives {
		select {
		case <-m.Dead():
		default:
			least, alive = min(least, m.Idle()), alive+1
		}
	}
	if alive < w.managers {
		return 0
	}
	return least
}

// play does the scenario's steps and waits for the end. With an error it still returns how far things have come,
// if it can.
func (w *world) play(ctx context.Context, quiet time.Duration) (*snapshot, error) {
	err := w.steps(ctx)
	if err == nil {
		err = w.rest(ctx, quiet)
	}
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), runTimeout)
	defer cancel()
	end, readErr := readAll(reading, w.ns)
	return end, errors.Join(err, readErr)
}

func (w *world) steps(ctx context.Context) error {
	for i, step := range w.scenario.does {
		if err := step(ctx, w); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// rest waits until the scenario's end is reached and nothing has changed for the given time.
func (w *world) rest(ctx context.Context, quiet time.Duration) error {
	ends := w.scenario.ends
	if ends == nil {
		ends = atRest
	}
	for {
		if err := w.await(ctx, "the end is reached", ends); err != nil {
			return err
		}
		before, err := readAll(ctx, w.ns)
		if err != nil {
			return err
		}
		if err := w.awaitQuiet(ctx, quiet); err != nil {
			return err
		}
		after, err := readAll(ctx, w.ns)
		if err != nil {
			return err
		}
		if ends(after) && before.versions() == after.versions() {
			return nil
		}
	}
}

func (w *world) awaitQuiet(ctx context.Context, quiet time.Duration) error {
	for since := w.idle(); since < quiet; since = w.idle() {
		select {
		case <-time.After(quiet - since):
		case <-ctx.Done():
			return fmt.Errorf("the manager does not come to rest")
		}
	}
	return nil
}

// await waits until the condition holds, and lets the generation pods work meanwhile.
func (w *world) await(ctx context.Context, what string, holds func(*snapshot) bool) error {
	for {
		change := watched.change(w.ns)
		s, err := read(ctx, watched.cache, w.ns)
		if err != nil {
			return err
		}
		if err := w.generate(ctx, s); err != nil {
			return err
		}
		if holds(s) {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s", what)
		}
	}
}

// generate lets the generation pods work.
func (w *world) generate(ctx context.Context, s *snapshot) error {
	if s.sub != nil {
		if err := w.sub.generate(ctx, s.sub.chat); err != nil {
			return err
		}
	}
	return w.generator.generate(ctx, s.chat)
}
