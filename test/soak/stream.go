// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/client"
)

// stream reads a chat's events behind the last one until the stream ends, for whatever reason.
func (w *world) stream(ctx context.Context, chat, last string, each func(stream.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	address, stop, err := w.forward(ctx)
	if err != nil {
		return err
	}
	defer stop()
	gateway := &client.Client{URL: "http://" + address,
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

// forward opens a port of this machine that leads to a gateway pod,
// through the API server, as the kubectl plug-in does.
func (w *world) forward(ctx context.Context) (address string, closed func(), err error) {
	pod, err := w.gatewayPod(ctx)
	if err != nil {
		return "", nil, err
	}
	target := w.core.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		SubResource("portforward").URL()
	dialer, err := portforward.NewSPDYOverWebsocketDialer(target, w.cfg)
	if err != nil {
		return "", nil, fmt.Errorf("preparing the port-forward: %w", err)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:8080"}, stop, ready,
		io.Discard, io.Discard)
	if err != nil {
		return "", nil, fmt.Errorf("forwarding a port to the gateway: %w", err)
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	closed = func() { close(stop) }
	select {
	case <-ready:
	case err := <-failed:
		return "", nil, fmt.Errorf("forwarding a port to gateway pod %s: %w", pod.Name, err)
	case <-ctx.Done():
		closed()
		return "", nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		closed()
		return "", nil, fmt.Errorf("forwarding a port to the gateway: %w", err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), closed, nil
}

func (w *world) gatewayPod(ctx context.Context) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pods, err := w.core.CoreV1().Pods(systemNamespace).
		List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=gateway"})
	if err != nil {
		return nil, fmt.Errorf("looking for the gateway: %w", err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil && isReady(p) {
			return p, nil
		}
	}
	return nil, errors.New("no gateway is ready")
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
