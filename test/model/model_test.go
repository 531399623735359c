// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
)

// chatsInNamespace is how many chats share a namespace: lists past the cache look at all messages of one.
const chatsInNamespace = 20

// runner runs sequences, many at once.
type runner struct {
	t *testing.T
	// next is the number of the next sequence, chats that of the next chat.
	next, chats atomic.Int64
	// sequences and operations that were carried out, and sequences that proved nothing.
	sequences, operations, slow atomic.Int64

	mu        sync.Mutex
	namespace string
	left      int
	failures  int
}

// onceDifferent are sequences that showed a difference between the model and the operator once.
//
//go:embed testdata/once_different.txt
var onceDifferent string

func TestOperatorMatchesModelOnFormerlyDivergingSequences(t *testing.T) {
	r := &runner{t: t}
	r.warmUp()
	for line := range strings.Lines(onceDifferent) {
		ops, err := parse(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.run(t.Context(), ops, *patienceFlag); err != nil {
			t.Errorf("%v", describe(ops, err))
		}
	}
}

func TestTheOperatorDoesWhatTheModelSays(t *testing.T) {
	r := &runner{t: t}
	if *replayFlag != "" {
		ops, err := parse(*replayFlag)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.run(t.Context(), ops, *patienceFlag); err != nil {
			t.Errorf("%v", describe(ops, err))
		}
		return
	}
	seed := *seedFlag
	if seed == 0 {
		seed = time.Now().Unix()
	}
	r.warmUp()
	begun := time.Now()
	var workers sync.WaitGroup
	for range *workersFlag {
		workers.Go(func() { r.work(seed, begun) })
	}
	workers.Wait()
	took := time.Since(begun)
	t.Logf("seed %d: %d sequences with %d operations in %s: %.0f and %.0f a minute; %d were too slow to prove anything",
		seed, r.sequences.Load(), r.operations.Load(), took.Round(time.Second),
		float64(r.sequences.Load())/took.Minutes(), float64(r.operations.Load())/took.Minutes(), r.slow.Load())
	if r.sequences.Load() == 0 {
		t.Error("no sequence was carried out")
	}
}

// warmUp waits until the manager takes chats up. Those that it finds when it begins have to wait behind all that come
// later.
func (r *runner) warmUp() {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	if _, err := r.run(ctx, []operation{op("chat", "prompt")}, time.Minute); err != nil {
		r.t.Fatalf("the manager takes no chat up: %v", err)
	}
}

// work runs sequences until there are enough of them.
func (r *runner) work(seed int64, begun time.Time) {
	for r.wanted(begun) {
		n := r.next.Add(1) - 1
		if *sequencesFlag > 0 && n >= int64(*sequencesFlag) {
			return
		}
		ops := draw(seed+n, *opsFlag)
		done, err := r.run(r.t.Context(), ops, *patienceFlag)
		r.operations.Add(int64(done))
		switch {
		case errors.Is(err, errTooSlow):
			r.slow.Add(1)
		case err != nil:
			r.failed(seed+n, ops, err)
		default:
			r.sequences.Add(1)
		}
	}
}

// wanted reports whether another sequence is to begin.
func (r *runner) wanted(begun time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures < *failuresFlag && (*sequencesFlag > 0 || time.Since(begun) < *budgetFlag)
}

func (r *runner) failed(seed int64, ops []operation, err error) {
	r.mu.Lock()
	r.failures++
	shrinking := r.failures <= *failuresFlag
	r.mu.Unlock()
	if !shrinking {
		return
	}
	small, smallErr := r.shrink(ops, err)
	r.t.Errorf("the sequence of seed %d fails: replay it with -seed=%d -sequences=1\n  %s\n\nshrunk from %d to %d "+
		"operations: %v",
		seed, seed, text(ops), len(ops), len(small), describe(small, smallErr))
}

func describe(ops []operation, err error) string {
	where := ""
	if d, ok := errors.AsType[*difference](err); ok {
		where = fmt.Sprintf(" after %q", ops[min(d.at, len(ops)-1)])
	}
	return fmt.Sprintf("replay it with -replay='%s'\nit fails%s:\n%v", text(ops), where, err)
}

// run carries a sequence out on a chat of its own.
func (r *runner) run(ctx context.Context, ops []operation, patience time.Duration) (int, error) {
	room := r.room
	switch {
	case isModelless(ops[0]):
		room = bareNamespace
	case crowded(ops) || reasonOf(ops[0]) != "":
		room = newNamespace
	}
	namespace, err := room(ctx)
	if err != nil {
		return 0, err
	}
	return run(ctx, namespace, fmt.Sprintf("c%d", r.chats.Add(1)), ops, patience)
}

// room is a namespace for one more chat.
func (r *runner) room(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left--; r.left >= 0 {
		return r.namespace, nil
	}
	name, err := newNamespace(ctx)
	if err != nil {
		return "", err
	}
	r.namespace, r.left = name, chatsInNamespace-1
	return name, nil
}

// newNamespace creates a namespace in which chats find their model.
func newNamespace(ctx context.Context) (string, error) {
	name, err := bareNamespace(ctx)
	if err != nil {
		return "", err
	}
	if err := cluster.Client.Create(ctx, defaultConfig(name)); err != nil {
		return "", fmt.Errorf("creating a ChatModelConfig: %w", err)
	}
	return name, nil
}

// bareNamespace creates a namespace without a model.
func bareNamespace(ctx context.Context) (string, error) {
	name := "t-" + rand.String(8)
	if err := cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	return name, nil
}

// crowded reports whether the sequence needs a namespace of its own: it has quotas, or changes the model.
func crowded(ops []operation) bool {
	return slices.ContainsFunc(ops, func(o operation) bool { return o.verb == "quota" || o.verb == "unmodel" })
}
