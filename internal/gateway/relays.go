// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
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
}

func newRelays(pods cache.Store, port int, tokenFile string) *relays {
	return &relays{pods: pods, port: port, reader: &relayreader.Reader{
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
	return r.reader.Subscribe(ctx, "http://"+net.JoinHostPort(ip, strconv.Itoa(r.port)), ep, after)
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
