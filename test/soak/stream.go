// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
)

// event is one server-sent event of the gateway.
type event struct {
	id, name, data string
}

// maxLine holds a committed message of 1 MiB with its escapes.
const maxLine = 16 << 20

// silence is how long a stream may be silent: the gateway sends a comment every 15 seconds.
const silence = 40 * time.Second

// errSilent means that the stream has died without an end.
var errSilent = errors.New("the stream is silent")

// stream reads a chat's events behind the last one until the stream ends, for whatever reason.
func (w *world) stream(ctx context.Context, chat, last string, each func(event)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	address, stop, err := w.forward(ctx)
	if err != nil {
		return err
	}
	defer stop()
	url := fmt.Sprintf("http://%s/v1alpha1/namespaces/%s/chats/%s/stream", address, w.ns, chat)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking the gateway: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+w.token)
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	dying := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer dying.Stop()
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return fmt.Errorf("asking the gateway: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // What there is of it.
		return fmt.Errorf("asking the gateway: %s: %s", response.Status, body)
	}
	if err := readEvents(response.Body, func() { dying.Reset(silence) }, each); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return io.EOF
}

// readEvents calls alive for every line, and each for every event that has come whole.
func readEvents(body io.Reader, alive func(), each func(event)) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var e event
	for lines.Scan() {
		alive()
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e.name != "" && lines.Text() == "" {
				each(e)
			}
			e = event{}
		}
	}
	return lines.Err()
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
