// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/cluster"
)

// stream reads a chat's events behind the last one until the stream ends, for whatever reason.
func (w *world) stream(ctx context.Context, chat, last string, each func(stream.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialer := &cluster.Dialer{Options: cluster.GatewayOptions{Namespace: systemNamespace}, Config: w.cfg, Core: w.core}
	address, stop, err := dialer.Forward(ctx)
	if err != nil {
		return err
	}
	defer stop()
	gateway := &client.Client{URL: address,
		Token: func(context.Context) (string, error) { return w.token, nil },
		HTTP:  &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	options := client.FollowOptions{LastEventID: last, Lost: func(error) { cancel() }}
	for e, err := range gateway.Namespace(w.ns).Follow(ctx, chat, options) {
		if err != nil {
			return err
		}
		each(e)
	}
	return nil
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
