// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

func TestHundredAttemptsAtOnceLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	const chats = 100
	p := startPod(t, usesTool, nil)
	p.settled() // What is there now, stays.
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	before := runtime.NumGoroutine()
	conversations := make([]*conversation, chats)
	for i := range conversations {
		conversations[i] = p.newChat(fmt.Sprint("many-", i), nil)
	}
	var asking sync.WaitGroup
	for i, c := range conversations {
		asking.Go(func() { c.ask(fmt.Sprint("many-", i, "-u"), fmt.Sprint("question of chat ", i)) })
	}
	asking.Wait()
	for _, c := range conversations {
		m := c.result()
		check.Equal(t, c.chat.Name, []any{v1alpha1.OutcomeCompleted, 2},
			[]any{m.Spec.Generation.Outcome, m.Spec.Generation.PendingCalls})
		c.commit(m, "")
	}
	check.Equal(t, "the model was asked", chats+1, len(p.models.Requests()))
	p.eventually("the model's requests are over", func() bool { return p.models.InFlight() == 0 })
	p.stop()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	buffer := make([]byte, 1<<20)
	p.eventually("the goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before: %s", after, before, buffer[:runtime.Stack(buffer, true)])
	}
}
