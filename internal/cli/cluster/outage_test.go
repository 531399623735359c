// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// refusedConnection is the error of a connection to a port that no server has.
func refusedConnection(t *testing.T) error {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	check.OK(t, port.Close())
	_, err = net.Dial("tcp", port.Addr().String())
	if err == nil {
		t.Fatal("another server has taken the port")
	}
	return err
}

// answered is the error of an answer with an HTTP status, as a proxy gives it.
func answered(status int) error {
	return apierrors.NewGenericServerResponse(status, "get", schema.GroupResource{Resource: "chats"}, "", "", 0, true)
}

func TestWatchOutlivesTroubleOfServers(t *testing.T) {
	for name, c := range map[string]struct {
		failed error
		final  bool
	}{
		"a refused connection":   {refusedConnection(t), false},
		"a lost connection":      {fmt.Errorf("get: %w", net.ErrClosed), false},
		"too many requests":      {answered(http.StatusTooManyRequests), false},
		"a bad gateway":          {answered(http.StatusBadGateway), false},
		"an unavailable service": {answered(http.StatusServiceUnavailable), false},
		"a missing right":        {answered(http.StatusForbidden), true},
		"an invalid token":       {answered(http.StatusUnauthorized), true},
		"a missing kind":         {answered(http.StatusNotFound), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries, reported := 0, 0
				begin := func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					if tries++; tries < 10 {
						return nil, c.failed
					}
					events := watch.NewFakeWithChanSize(1, false)
					events.Add(chattest.Chat("triage"))
					return events, nil
				}
				err := Await(t.Context(), begin, "triage", func(err error) {
					reported++
					check.Contains(t, err.Error(), "the API server is out of reach", c.failed.Error())
				}, func(*v1beta1.Chat) (bool, error) { return true, nil })
				check.Equal(t, "final", c.final, errors.Is(err, c.failed))
				check.Equal(t, "reports", map[bool]int{true: 0, false: 1}[c.final], reported)
			})
		})
	}
}

func TestEndedWaitReportsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return nil, answered(http.StatusBadGateway)
		}
		err := Await(ctx, begin, "triage", func(error) {}, func(*v1beta1.Chat) (bool, error) { return true, nil })
		check.Equal(t, "timed out", true, errors.Is(err, context.DeadlineExceeded))
	})
}
