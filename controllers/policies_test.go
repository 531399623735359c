// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parley.dev/parley/api/v1beta1"
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

// apiServer answers each create with the next of its answers, and the last one stays.
func apiServer(answers ...error) client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
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
				policies := newPoliciesCheck(c, "ns")
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

func TestMissingPoliciesAreReportedUntilTheyReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		watch := &policiesWatch{dry: apiServer(denied, nil, starting, denied), namespace: "ns"}
		ended := make(chan error, 1)
		go func() { ended <- watch.Start(ctx) }()
		for i, want := range []bool{false, true, true, false} {
			synctest.Wait()
			check.Equal(t, fmt.Sprintf("missing after check %d", i), want, watch.missing.Load())
			<-time.After(watchInterval)
		}
		cancel()
		check.OK(t, <-ended)
	})
}

func TestACheckOfPoliciesEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	policies := newPoliciesCheck(apiServer(starting), "ns")
	if err := policies.Start(ctx); err != nil || policies.Check(nil) == nil {
		t.Errorf("got %v, ready: %t", err, policies.ready.Load())
	}
}
