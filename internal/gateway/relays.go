// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/internal/stream/subscribe"
)

// dialTimeout bounds the connection to a relay: a pod that is gone answers nothing.
const dialTimeout = 2 * time.Second

// maxRelayHeader bounds the header of a relay's answer.
const maxRelayHeader = 16 << 10

// relayWriteBuffer is what a request is written from: it is kept as long as its stream.
const relayWriteBuffer = 512

// relays reads live parts from the relays of generation pods. It implements fanout.Source.
type relays struct {
	// pod returns a generation pod; nil if it is not known.
	pod    func(namespace, name string) *corev1.Pod
	port   int
	http   *http.Client
	tokens *tokencache.Cache
	log    *slog.Logger
	warned rate.Sometimes
	// failed counts reads that failed.
	failed func()
	// waiting are the streams that wait for the address of a pod.
	waiting listeners
}

func newRelays(port int, tokens *tokencache.Cache, log *slog.Logger, failed func()) *relays {
	return &relays{port: port, tokens: tokens, log: log, failed: failed, warned: rate.Sometimes{Interval: warnEvery},
		http: &http.Client{Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
			DisableCompression:     true,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: maxRelayHeader,
			WriteBufferSize:        relayWriteBuffer,
		}}}
}

// Subscribe implements fanout.Source.
func (r *relays) Subscribe(ctx context.Context, namespace, name string, ep fence.Fence,
	after int64) iter.Seq2[parts.Frame, error] {
	return func(yield func(parts.Frame, error) bool) {
		pod, err := r.await(ctx, namespace, name)
		if err != nil {
			yield(parts.Frame{}, err)
			return
		}
		reader := subscribe.Client{HTTP: r.http,
			Token: func(ctx context.Context) (string, error) {
				return r.tokens.Of(ctx, relay.Audience(namespace, string(pod.UID)))
			}}
		address := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(r.port))
		for frame, err := range reader.Subscribe(ctx, address, ep, after) {
			if err != nil && ctx.Err() == nil {
				r.failed()
				r.report(ctx, namespace, name, err)
			}
			if !yield(frame, err) {
				return
			}
		}
	}
}

// report logs why there are no parts: as a warning if a retry does not help, and then once a minute for all streams.
func (r *relays) report(ctx context.Context, namespace, pod string, err error) {
	level := slog.LevelDebug
	if errors.Is(err, subscribe.ErrRefused) {
		r.warned.Do(func() { level = slog.LevelWarn })
	}
	r.log.Log(ctx, level, "no live parts from a relay", "namespace", namespace, "pod", pod, "error", err)
}

// errNoAddress means that a pod does not exist yet, or has no address.
var errNoAddress = errors.New("no address yet")

// await returns the pod once it has an address, so that no part of a starting pod is missed.
func (r *relays) await(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	changed, stop := r.waiting.listen(namespace + "/" + name)
	defer stop()
	for {
		pod, err := r.find(namespace, name)
		if !errors.Is(err, errNoAddress) {
			return pod, err
		}
		r.log.DebugContext(ctx, "waiting for the address of a pod", "namespace", namespace, "pod", name)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the relay: %w: %w", err, context.Cause(ctx))
		}
	}
}

// find returns the pod, if the gateway may send a token to it. Only the manager writes the chat's status, which names
// the pod, and only the manager gives pods this account. The address must not be that of the node.
func (r *relays) find(namespace, name string) (*corev1.Pod, error) {
	pod := r.pod(namespace, name)
	switch {
	case pod == nil || pod.Status.PodIP == "":
		return nil, fmt.Errorf("pod %s: %w", name, errNoAddress)
	case pod.Spec.ServiceAccountName != podspec.ServiceAccount || pod.Spec.HostNetwork:
		return nil, fmt.Errorf("%w: pod %s is no generation pod", subscribe.ErrRefused, name)
	}
	return pod, nil
}

// podChanged notifies the streams that wait for the pod, and drops the token of a deleted pod.
func (r *relays) podChanged(before, after *corev1.Pod) {
	switch {
	case after != nil:
		r.waiting.notify(after.Namespace + "/" + after.Name)
	case before != nil:
		r.tokens.Forget(relay.Audience(before.Namespace, string(before.UID)))
	}
}
