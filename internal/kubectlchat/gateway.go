// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
)

// errNoToken means that the kubeconfig has no token that could be shown to the gateway.
var errNoToken = errors.New("your kubeconfig has no token to show to the gateway")

// gateway is a way to the gateway, as somebody.
type gateway struct {
	url  string
	http *http.Client
	stop func()
	// open finds another way when this one is lost: the gateway pod that it led to may be gone. nil: there is only this one.
	open func(ctx context.Context) (url string, stop func(), err error)
}

func (g *gateway) close() { g.stop() }

// dial finds a way to the gateway.
func (s *session) dial(ctx context.Context) (*gateway, error) {
	client, err := s.identity(ctx)
	if err != nil {
		return nil, err
	}
	for _, given := range []string{s.options.gateway, os.Getenv("PARLEY_GATEWAY")} {
		if given != "" {
			return &gateway{url: given, http: client, stop: func() {}}, nil
		}
	}
	local, stop, err := s.forward(ctx)
	if err != nil {
		return nil, err
	}
	return &gateway{url: local, http: client, stop: stop, open: s.forward}, nil
}

// reopen finds another way to the gateway. Until there is one, the old one stays, which leads nowhere.
func (g *gateway) reopen(ctx context.Context) {
	if g.open == nil {
		return
	}
	if url, stop, err := g.open(ctx); err == nil {
		g.stop()
		g.url, g.stop = url, stop
	}
}

// identity is an HTTP client that shows the kubeconfig's token, whether it is written there or comes from a program.
func (s *session) identity(ctx context.Context) (*http.Client, error) {
	auth := rest.AnonymousClientConfig(s.rest)
	auth.TLSClientConfig = rest.TLSClientConfig{}
	auth.BearerToken, auth.BearerTokenFile = s.rest.BearerToken, s.rest.BearerTokenFile
	auth.ExecProvider, auth.AuthProvider = s.rest.ExecProvider, s.rest.AuthProvider
	if auth.BearerToken == "" && auth.BearerTokenFile == "" && auth.ExecProvider == nil && auth.AuthProvider == nil {
		token, err := s.requestToken(ctx)
		if err != nil {
			return nil, err
		}
		auth.BearerToken = token
	}
	wrapped, err := rest.HTTPWrappersForConfig(auth, http.DefaultTransport)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig's credentials: %w", err)
	}
	return &http.Client{Transport: wrapped}, nil
}

func (s *session) requestToken(ctx context.Context) (string, error) {
	name := s.options.serviceAccount
	if name == "" {
		return "", errNoToken
	}
	request, err := s.core.CoreV1().ServiceAccounts(s.namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of service account %s: %w", name, err)
	}
	return request.Status.Token, nil
}

// forward opens a port on this machine that leads to a gateway pod, through the API server.
func (s *session) forward(ctx context.Context) (string, func(), error) {
	pod, err := s.gatewayPod(ctx)
	if err != nil {
		return "", nil, err
	}
	target := s.core.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer, err := portforward.NewSPDYOverWebsocketDialer(target, s.rest)
	if err != nil {
		return "", nil, fmt.Errorf("preparing the port-forward: %w", err)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, fmt.Errorf("forwarding a port to the gateway: %w", err)
	}
	failed, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		failed <- forwarder.ForwardPorts()
	}()
	select {
	case <-ready:
	case err := <-failed:
		return "", nil, fmt.Errorf("forwarding a port to gateway pod %s: %w", pod.Name, err)
	case <-ctx.Done():
		close(stop)
		return "", nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stop)
		return "", nil, fmt.Errorf("forwarding a port to the gateway: %w", err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", ports[0].Local), func() { close(stop); <-ended }, nil
}

func (s *session) gatewayPod(ctx context.Context) (*corev1.Pod, error) {
	finding, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pods, err := s.core.CoreV1().Pods(s.options.gatewayNamespace).List(finding, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=parley,app.kubernetes.io/component=gateway",
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the gateway in namespace %s: %w", s.options.gatewayNamespace, err)
	}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pods.Items[i].DeletionTimestamp == nil {
				return &pods.Items[i], nil
			}
		}
	}
	return nil, fmt.Errorf("no gateway pod is ready in namespace %s: is Parley installed there? Otherwise name its namespace with --gateway-namespace, or its URL with --gateway", s.options.gatewayNamespace)
}
