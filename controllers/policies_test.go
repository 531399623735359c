// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/config"
	"parley.dev/parley/test/kit/check"
)

var (
	chats    = v1beta1.GroupVersion.WithResource("chats").GroupResource()
	starting = apierrors.NewForbidden(chats, "x", errors.New("not yet ready to handle request"))
	denied   = apierrors.NewForbidden(chats, "x", errors.New("the manager creates the sub-chats alone"))
)

func TestManagersWaitForPoliciesAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		forbidden, allowed error
		mayBeLifted, want  bool
	}{
		"the policies are in force":                {denied, nil, false, false},
		"no policy refuses yet":                    {nil, nil, false, true},
		"no policy refuses for long":               {nil, nil, true, false},
		"all chats are refused":                    {starting, starting, false, true},
		"all chats are refused for long":           {starting, starting, true, true},
		"one policy is in force, another is not":   {denied, starting, true, true},
		"the manager has no right to create chats": {denied, denied, false, false},
		"the API server does not answer":           {context.DeadlineExceeded, context.DeadlineExceeded, false, false},
	} {
		check.Equal(t, name, c.want, isPending(c.forbidden, c.allowed, c.mayBeLifted))
	}
}

// apiServer answers each create with the next of its answers, and the last one stays. It has all policies, and a
// binding of each.
func apiServer(answers ...error) client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			for _, m := range config.Manifests("admission", "ValidatingAdmissionPolicy") {
				switch l := list.(type) {
				case *metav1.PartialObjectMetadataList:
					l.Items = append(l.Items, metav1.PartialObjectMetadata{ObjectMeta: m.ObjectMeta})
				case *admissionv1.ValidatingAdmissionPolicyBindingList:
					l.Items = append(l.Items, admissionv1.ValidatingAdmissionPolicyBinding{
						Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: m.Name,
							ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}})
				}
			}
			return nil
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			answer := answers[0]
			if len(answers) > 1 {
				answers = answers[1:]
			}
			return answer
		},
	})
}

func TestManagersAreReadyOncePoliciesAreInForce(t *testing.T) {
	for name, c := range map[string]client.Client{
		"after the start of the API server": apiServer(starting, starting, denied, starting, denied, nil),
		"without policies":                  apiServer(nil),
		"although chats are refused":        apiServer(denied),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policies := newPoliciesCheck(c, c, "ns")
				if policies.Check(nil) == nil {
					t.Error("the manager is ready before it has asked")
				}
				check.OK(t, policies.Start(t.Context()))
				if err := policies.Check(nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestManagersWaitForPoliciesOfTheirVersion(t *testing.T) {
	for name, c := range map[string]struct {
		lists int // with a missing policy
		want  time.Duration
	}{"a policy comes last": {3, 3 * probeInterval}, "a policy never comes": {1000, policiesTimeout}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all, began := apiServer(denied), time.Now()
				live := interceptor.NewClient(nil, interceptor.Funcs{
					List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
						err := all.List(ctx, list)
						if l, ok := list.(*metav1.PartialObjectMetadataList); ok && c.lists > 0 {
							c.lists--
							l.Items = l.Items[1:]
						}
						return err
					}})
				policies := newPoliciesCheck(all, live, "ns")
				check.OK(t, policies.Start(t.Context()))
				check.OK(t, policies.Check(nil))
				if waited := time.Since(began); waited < c.want || waited > c.want+probeInterval {
					t.Errorf("it waits %s", waited)
				}
			})
		})
	}
}

func TestMissingPoliciesAreReportedUntilTheyReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := apiServer(denied, nil, starting, denied)
		var log bytes.Buffer
		watch := &policiesWatch{dry: c, live: c, namespace: "ns", log: logr.FromSlogHandler(slog.NewJSONHandler(&log, nil))}
		ended := make(chan error, 1)
		go func() { ended <- watch.Start(ctx) }()
		for i, want := range []int64{0, 1, 1, 0} {
			synctest.Wait()
			check.Equal(t, fmt.Sprintf("missing after check %d", i), want, watch.missing.Load())
			<-time.After(watchInterval)
		}
		cancel()
		check.OK(t, <-ended)
		var messages []string
		for line := range strings.Lines(log.String()) {
			var entry struct{ Msg string }
			check.OK(t, json.Unmarshal([]byte(line), &entry))
			messages = append(messages, entry.Msg)
		}
		check.Equal(t, "log", []string{"admission policies do not refuse a chat that they forbid",
			"admission policies are enforced again"}, messages)
	})
}

func TestEachUnenforcedPolicyIsReported(t *testing.T) {
	all := apiServer(denied)
	for name, c := range map[string]struct {
		list func(client.ObjectList) error
		want int64
		says string
	}{
		"all are enforced": {func(client.ObjectList) error { return nil }, 0, ""},
		"a policy is missing": {func(list client.ObjectList) error {
			if l, ok := list.(*metav1.PartialObjectMetadataList); ok {
				l.Items = l.Items[1:]
			}
			return nil
		}, 1, `"missing":["parley-authors"]`},
		"two bindings are missing": {func(list client.ObjectList) error {
			if l, ok := list.(*admissionv1.ValidatingAdmissionPolicyBindingList); ok {
				l.Items = l.Items[2:]
			}
			return nil
		}, 2, `"withoutBinding":["parley-authors",`},
		"a binding only audits, another one is for some namespaces": {func(list client.ObjectList) error {
			if l, ok := list.(*admissionv1.ValidatingAdmissionPolicyBindingList); ok {
				l.Items[0].Spec.ValidationActions[0] = admissionv1.Audit
				l.Items[1].Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{}}
			}
			return nil
		}, 2, `"withoutBinding":["parley-authors",`},
		"the manager may not list them": {func(client.ObjectList) error { return denied }, 0, "cannot be listed"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			watch := &policiesWatch{dry: all, namespace: "ns", live: interceptor.NewClient(nil, interceptor.Funcs{
				List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					return cmp.Or(all.List(ctx, list), c.list(list))
				}}), log: logr.FromSlogHandler(slog.NewJSONHandler(&log, nil))}
			for range 2 {
				watch.check(t.Context())
			}
			check.Equal(t, "unenforced", c.want, watch.missing.Load())
			check.Equal(t, "lines in the log", min(1, len(c.says)), strings.Count(log.String(), "\n"))
			check.Contains(t, log.String(), c.says)
		})
	}
}

func TestACheckOfPoliciesEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := apiServer(starting)
	policies := newPoliciesCheck(c, c, "ns")
	if err := policies.Start(ctx); err != nil || policies.Check(nil) == nil {
		t.Errorf("got %v, ready: %t", err, policies.ready.Load())
	}
}
