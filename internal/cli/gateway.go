// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/gateway/token"
	"parley.dev/parley/internal/netguard/httpguard"
)

// errNoToken means that the kubeconfig has no token that could be shown to the gateway.
var errNoToken = errors.New("your kubeconfig has no token to show to the gateway")

// gateway is a way to the gateway, as somebody.
type gateway struct {
	way    client.Client
	stop   func()
	outage outage
}

func (g *gateway) close() { g.stop() }

// dialer finds ways to the gateway.
type dialer struct {
	options *options
	// namespace of the service account that --service-account names.
	namespace string
	rest      *rest.Config
	core      kubernetes.Interface
}

// dial finds a way to the gateway, and a token for it.
func (d *dialer) dial(ctx context.Context) (*gateway, error) {
	caller, err := d.identity(ctx)
	if err != nil {
		return nil, err
	}
	g := &gateway{way: client.Client{URL: d.given(), HTTP: caller}, stop: func() {}}
	g.way.Reopen = func(ctx context.Context, way *client.Client, lost error) error { return d.reopen(ctx, g, way, lost) }
	if g.way.URL == "" {
		g.way.URL, g.stop, err = d.forward(ctx)
		return g, err
	}
	return g, d.check(g.way.URL)
}

// reopen finds another token when the gateway takes the one it had no longer, and else another pod of the gateway: the
// one that a port was forwarded to may be gone. Until there is one, the old way stays, which leads nowhere.
func (d *dialer) reopen(ctx context.Context, g *gateway, way *client.Client, lost error) error {
	if refused, ok := errors.AsType[*client.Error](lost); ok && refused.Status == http.StatusUnauthorized {
		caller, err := d.identity(ctx)
		if err == nil {
			way.HTTP = caller
		}
		return err
	}
	if d.given() != "" {
		return nil
	}
	found, stop, err := d.forward(ctx)
	if err == nil {
		g.stop()
		way.URL, g.stop = found, stop
	}
	return err
}

// follow implements source.
func (g *gateway) follow(ctx context.Context, namespace, chat string, fromStart bool, connected func(),
	each func(stream.Event) (done bool, err error)) error {
	options := client.FollowOptions{FromNow: !fromStart, Lost: func(err error) { g.outage.lost(time.Now(), err) }}
	for e, err := range g.way.Namespace(namespace).Follow(ctx, chat, options) {
		if err != nil {
			return explained(err)
		}
		g.outage.over()
		if connected != nil {
			connected()
		}
		if done, err := each(e); done || err != nil {
			return err
		}
	}
	return nil
}

// explained says which flag helps against an error of the connection, where that is known.
func explained(err error) error {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	refused, _ := errors.AsType[*client.Error](err)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("it speaks plain HTTP: leave --gateway-ca out, or name a URL that begins with http://: %w", err)
	case unverified:
		return fmt.Errorf("%w: --gateway-ca names the file with the CA of its certificate", err)
	case refused != nil && refused.Message == client.SpeaksTLS:
		return fmt.Errorf("%w: name the file with its CA with --gateway-ca, or that URL with --gateway", err)
	}
	return err
}

// given is the gateway's URL, if one was named.
func (d *dialer) given() string {
	return cmp.Or(d.options.gateway, os.Getenv("PARLEY_GATEWAY"))
}

// check refuses a URL that a token would be shown at in plain text, unless it is of this very machine.
func (d *dialer) check(given string) error {
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the URL of the gateway, %q, does not begin with https:// or http:// and a host", given)
	}
	if u.Scheme == "https" || d.options.insecure || ofThisMachine(u) {
		return nil
	}
	return fmt.Errorf("the gateway at %s would be shown your token over plain HTTP, where others can read it on the way: "+
		"name a URL that begins with https://, leave it out for a port-forward, or take the risk with --insecure-gateway",
		u.Host)
}

// ofThisMachine reports whether a URL leads to this very machine.
func ofThisMachine(u *url.URL) bool {
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

// transport carries the requests to the gateway. With a CA of its own, the certificate must be from that CA, and for
// the gateway's Service where a forwarded port of this machine leads there.
func (d *dialer) transport() (http.RoundTripper, error) {
	if d.options.gatewayCA == "" {
		return http.DefaultTransport, nil
	}
	pem, err := os.ReadFile(d.options.gatewayCA)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of the gateway: %w", err)
	}
	trusted := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !trusted.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading the CA of the gateway: there is no certificate in %s", d.options.gatewayCA)
	}
	given := d.given()
	if u, err := url.Parse(given); given == "" || err == nil && ofThisMachine(u) {
		trusted.ServerName = fmt.Sprintf("parley-gateway.%s.svc", d.options.gatewayNamespace)
	}
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.TLSClientConfig = trusted
	return own, nil
}

// forwarded is the URL of the gateway behind a port of this machine.
func (d *dialer) forwarded(port uint16) string {
	scheme := "http"
	if d.options.gatewayCA != "" {
		scheme = "https"
	}
	return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port)
}

// identity is an HTTP client that shows a token to the gateway alone: one that is for it where that can be had, else
// that of the kubeconfig, whether it is written there or comes from a program.
func (d *dialer) identity(ctx context.Context) (*http.Client, error) {
	auth := rest.AnonymousClientConfig(d.rest)
	auth.TLSClientConfig = rest.TLSClientConfig{}
	auth.BearerToken, auth.BearerTokenFile = d.rest.BearerToken, d.rest.BearerTokenFile
	auth.ExecProvider, auth.AuthProvider = d.rest.ExecProvider, d.rest.AuthProvider
	has := auth.BearerToken != "" || auth.BearerTokenFile != "" || auth.ExecProvider != nil || auth.AuthProvider != nil
	switch bound, err := d.requestToken(ctx, has); {
	case bound != "":
		auth.BearerToken, auth.BearerTokenFile, auth.ExecProvider, auth.AuthProvider = bound, "", nil, nil
	case err != nil && d.options.serviceAccount != "":
		return nil, err
	case !has:
		return nil, errNoToken
	}
	transport, err := d.transport()
	if err != nil {
		return nil, err
	}
	wrapped, err := rest.HTTPWrappersForConfig(auth, transport)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig's credentials: %w", err)
	}
	return &http.Client{Transport: wrapped, CheckRedirect: httpguard.Stay}, nil
}

// requestToken asks for a token that only the gateway takes: of the service account that --service-account names, or of
// the caller, if that is one and may. Empty without an error means that there is nobody to ask for.
func (d *dialer) requestToken(ctx context.Context, has bool) (string, error) {
	namespace, name := d.namespace, d.options.serviceAccount
	if name == "" && has {
		namespace, name = d.whoAmI(ctx)
	}
	if name == "" {
		return "", nil
	}
	request, err := d.core.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{token.Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of service account %s: %w", name, err)
	}
	return request.Status.Token, nil
}

// whoAmI returns the service account that the kubeconfig's credentials are of; empty for others.
func (d *dialer) whoAmI(ctx context.Context) (namespace, name string) {
	review, err := d.core.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return "", ""
	}
	account, ok := strings.CutPrefix(review.Status.UserInfo.Username, "system:serviceaccount:")
	if !ok {
		return "", ""
	}
	namespace, name, _ = strings.Cut(account, ":")
	return namespace, name
}

// forward opens a port on this machine that leads to a gateway pod, through the API server.
func (d *dialer) forward(ctx context.Context) (string, func(), error) {
	pod, err := d.gatewayPod(ctx)
	if err != nil {
		return "", nil, err
	}
	target := d.core.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		SubResource("portforward").URL()
	tunnel, err := portforward.NewSPDYOverWebsocketDialer(target, d.rest)
	if err != nil {
		return "", nil, fmt.Errorf("preparing the port-forward: %w", err)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(tunnel, []string{"127.0.0.1"}, []string{"0:8080"}, stop, ready,
		io.Discard, io.Discard)
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
	return d.forwarded(ports[0].Local), func() { close(stop); <-ended }, nil
}

func (d *dialer) gatewayPod(ctx context.Context) (*corev1.Pod, error) {
	finding, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pods, err := d.core.CoreV1().Pods(d.options.gatewayNamespace).List(finding, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=parley,app.kubernetes.io/component=gateway",
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the gateway in namespace %s: %w", d.options.gatewayNamespace, err)
	}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pods.Items[i].DeletionTimestamp == nil {
				return &pods.Items[i], nil
			}
		}
	}
	return nil, fmt.Errorf("no gateway pod is ready in namespace %s: is Parley installed there? Otherwise name its "+
		"namespace with --gateway-namespace, or its URL with --gateway", d.options.gatewayNamespace)
}
