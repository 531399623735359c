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
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/internal/parts"
	"parley.dev/parley/internal/relay/relayreader"
)

// dialTimeout bounds the connection to a relay: a pod that is gone answers nothing.
const dialTimeout = 2 * time.Second

// relays reads live parts from the relays of generation pods. It implements follow.Parts.
type relays struct {
	pods   cache.Store
	port   int
	reader *relayreader.Reader
	log    *slog.Logger
	warned atomic.Int64 // when, in Unix seconds
}

func newRelays(pods cache.Store, port int, tokenFile string, log *slog.Logger) *relays {
	return &relays{pods: pods, port: port, log: log, reader: &relayreader.Reader{
		HTTP: &http.Client{Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			DisableCompression:  true,
			MaxIdleConnsPerHost: 4,
			IdleConnTimeout:     time.Minute,
		}},
		Token: func() (string, error) {
			token, err := os.ReadFile(tokenFile) // each time: it is rotated
			if err != nil {
				return "", fmt.Errorf("read the token for relays: %w", err)
			}
			return strings.TrimSpace(string(token)), nil
		},
	}}
}

// Subscribe implements follow.Parts.
func (r *relays) Subscribe(ctx context.Context, namespace, pod string, ep parts.Episode, after int64) iter.Seq2[parts.Frame, error] {
	ip, err := r.address(namespace, pod)
	if err != nil {
		return func(yield func(parts.Frame, error) bool) { yield(parts.Frame{}, err) }
	}
	frames := r.reader.Subscribe(ctx, "http://"+net.JoinHostPort(ip, strconv.Itoa(r.port)), ep, after)
	return func(yield func(parts.Frame, error) bool) {
		for frame, err := range frames {
			if err != nil && ctx.Err() == nil {
				r.report(ctx, namespace, pod, err)
			}
			if !yield(frame, err) {
				return
			}
		}
	}
}

// report is loud only where trying again does not help, and then once a minute for all streams.
func (r *relays) report(ctx context.Context, namespace, pod string, err error) {
	level := slog.LevelDebug
	if now, last := time.Now().Unix(), r.warned.Load(); errors.Is(err, relayreader.ErrRefused) && now-last >= 60 {
		if r.warned.CompareAndSwap(last, now) {
			level = slog.LevelWarn
		}
	}
	r.log.Log(ctx, level, "no live parts from a relay", "namespace", namespace, "pod", pod, "error", err)
}

func (r *relays) address(namespace, name string) (string, error) {
	obj, exists, err := r.pods.GetByKey(namespace + "/" + name)
	if err != nil {
		return "", fmt.Errorf("find pod %s: %w", name, err)
	}
	pod, ok := obj.(*corev1.Pod)
	if !exists || !ok || pod.Status.PodIP == "" {
		return "", fmt.Errorf("pod %s has no address yet", name)
	}
	return pod.Status.PodIP, nil
}
