// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/modelserver"
)

func TestProviderIsNotCalledBeforeRetryAfter(t *testing.T) {
	t.Parallel()
	limited := modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429,
		RetryAfter: &modelserver.RetryAfter{Seconds: new(600)}}}
	p, url := newPod(t, modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: limited},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Fine.")}}},
	}})
	create(t, modelConfig(p.ns, "default", url+"/v1"))
	other := modelConfig(p.ns, "other", url+"/v1")
	create(t, other)
	other.Status.RetryAfter = new(metav1.NewTime(time.Now().Add(10 * time.Minute)))
	other.Status.RetryAfterGeneration = other.Generation
	if err := cluster.Client.Status().Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	p.launch(nil)
	refused := func(chat, config string) {
		t.Helper()
		c := p.newChat(chat, nil)
		c.config = config
		c.ask(chat+"-1", "hello")
		e := c.result().Spec.Generation.Error
		if e == nil || e.Reason != v1alpha1.ErrorRateLimited || !e.Retryable || e.RetryAfter() < 500*time.Second {
			t.Errorf("chat %s: error %+v", chat, e)
		}
	}
	refused("first", "default")
	t.Log("The pod knows it from its own call, and from the status.")
	refused("second", "default")
	refused("third", "other")
	if n := len(p.models.Requests()); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}
