// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
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

// ErrNoToken means that the kubeconfig has no token that could be shown to the gateway.
var ErrNoToken = errors.New("your kubeconfig has no token to show to the gateway: " +
	"name a service account with --service-account")

// opaqueTokenError is ErrNoToken of a kubeconfig whose token the gateway does not accept.
type opaqueTokenError struct{}

// Error says what helps.
func (opaqueTokenError) Error() string {
	return "your kubeconfig has a token that is no JSON web token, as some clouds issue them, and the gateway runs " +
		"without --accept-opaque-tokens: name a service account with --service-account"
}

// Is reports whether the target is ErrNoToken.
func (opaqueTokenError) Is(target error) bool { return target == ErrNoToken }

// Gateway is a connection to the gateway with one identity.
type Gateway struct {
	// Way is the gateway's client.
	Way client.Client

	stop func()
}

// Close implements Source.
func (g *Gateway) Close() { g.stop() }

// GatewayOptions define how the gateway is reached.
type GatewayOptions struct {
	// URL of the gateway. Default: $PARLEY_GATEWAY, else a port-forward to one of its pods.
	URL string
	// Insecure allows the token over plain HTTP.
	Insecure bool
	// CA is the file with the CA of the gateway's certificate, and Namespace that of its pods.
	CA, Namespace string
	// ServiceAccount is the identity to use. Default: that of the kubeconfig.
	ServiceAccount string
}

// Dialer connects to the gateway.
type Dialer struct {
	Options GatewayOptions
	// Namespace of the service account that the options name.
	Namespace string
	Config    *rest.Config
	Core      kubernetes.Interface
	// AsCaller shows the gateway a token that the API server accepts, as operations need, and none for the gateway alone.
	AsCaller bool
}

// Dial connects to the gateway with a token for it.
func (d *Dialer) Dial(ctx context.Context) (*Gateway, error) {
	caller, err := d.identity(ctx)
	if err != nil {
		return nil, err
	}
	g := &Gateway{Way: client.Client{URL: d.url(), HTTP: caller}, stop: func() {}}
	g.Way.Reopen = func(ctx context.Context, way *client.Client, lost error) error { return d.reopen(ctx, g, way, lost) }
	if g.Way.URL == "" {
		g.Way.URL, g.stop, err = d.Forward(ctx)
		return g, err
	}
	return g, d.check(g.Way.URL)
}

// opaqueTimeout bounds the question whether the gateway accepts a token.
const opaqueTimeout = 5 * time.Second

// DialStream connects as Dial does. It also fails with ErrNoToken if the gateway accepts no token such as that of the
// kubeconfig, which may come from a program. It asks the gateway unless it sees the token of the kubeconfig.
func (d *Dialer) DialStream(ctx context.Context) (*Gateway, error) {
	g, err := d.Dial(ctx)
	if _, isJWT := token.Read(d.Config.BearerToken); err != nil || isJWT || d.Options.ServiceAccount != "" {
		return g, err
	}
	ctx, cancel := context.WithTimeout(ctx, opaqueTimeout)
	defer cancel()
	_, err = g.Way.Namespace(d.Namespace).ListChats(ctx, 1, "")
	if refused, ok := errors.AsType[*client.Error](err); ok && strings.HasPrefix(refused.Message, token.NotJWT) {
		g.Close()
		return nil, opaqueTokenError{}
	}
	return g, nil // The stream meets all other errors, too.
}

// reopen finds another token when the gateway refuses the current one, and otherwise another pod of the gateway: the
// one that a port was forwarded to may be gone. Until there is one, the old way stays.
func (d *Dialer) reopen(ctx context.Context, g *Gateway, way *client.Client, lost error) error {
	if refused, ok := errors.AsType[*client.Error](lost); ok && refused.Status == http.StatusUnauthorized {
		caller, err := d.identity(ctx)
		if err == nil {
			way.HTTP = caller
		}
		return err
	}
	if d.url() != "" {
		return nil
	}
	found, stop, err := d.Forward(ctx)
	if err == nil {
		g.stop()
		way.URL, g.stop = found, stop
	}
	return err
}

// Follow implements Source.
func (g *Gateway) Follow(ctx context.Context, namespace, chat string, fromStart bool, lost func(error),
) iter.Seq2[stream.Event, error] {
	return func(yield func(stream.Event, error) bool) {
		o := Outage{Report: lost, server: "gateway"}
		options := client.FollowOptions{FromNow: !fromStart, Lost: func(err error) { o.lost(time.Now(), Explain(err)) }}
		for e, err := range g.Way.Namespace(namespace).Follow(ctx, chat, options) {
			o.over()
			if !yield(e, Explain(err)) {
				return
			}
		}
	}
}

// Explain adds to an error of the connection which flag helps, where that is known.
func Explain(err error) error {
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

func (d *Dialer) url() string {
	return cmp.Or(d.Options.URL, os.Getenv("PARLEY_GATEWAY"))
}

// check refuses a URL over plain HTTP, which would show the token to others, unless it is of this machine.
func (d *Dialer) check(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the URL of the gateway, %q, does not begin with https:// or http:// and a host", address)
	}
	if u.Scheme == "https" || d.Options.Insecure || isLocal(u) {
		return nil
	}
	return fmt.Errorf("the gateway at %s would be shown your token over plain HTTP, where others can read it on the way: "+
		"name a URL that begins with https://, leave it out for a port-forward, or take the risk with --insecure-gateway",
		u.Host)
}

func isLocal(u *url.URL) bool {
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

// transport carries the requests to the gateway. With --gateway-ca the certificate must be from that CA, and for the
// gateway's Service where the port is a forwarded one of this machine.
func (d *Dialer) transport() (http.RoundTripper, error) {
	if d.Options.CA == "" {
		return http.DefaultTransport, nil
	}
	pem, err := os.ReadFile(d.Options.CA)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of the gateway: %w", err)
	}
	trusted := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !trusted.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading the CA of the gateway: there is no certificate in %s", d.Options.CA)
	}
	address := d.url()
	if u, err := url.Parse(address); address == "" || err == nil && isLocal(u) {
		trusted.ServerName = fmt.Sprintf("parley-gateway.%s.svc", d.Options.Namespace)
	}
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.TLSClientConfig = trusted
	return own, nil
}

func (d *Dialer) forwarded(port uint16) string {
	scheme := "http"
	if d.Options.CA != "" {
		scheme = "https"
	}
	return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port)
}

// identity returns an HTTP client that shows a token to the gateway alone: one for its audience where the API server
// issues that, else that of the kubeconfig, from a file, the kubeconfig itself or a program.
func (d *Dialer) identity(ctx context.Context) (*http.Client, error) {
	auth := rest.AnonymousClientConfig(d.Config)
	auth.TLSClientConfig = rest.TLSClientConfig{}
	auth.BearerToken, auth.BearerTokenFile = d.Config.BearerToken, d.Config.BearerTokenFile
	auth.ExecProvider, auth.AuthProvider = d.Config.ExecProvider, d.Config.AuthProvider
	has := auth.BearerToken != "" || auth.BearerTokenFile != "" || auth.ExecProvider != nil || auth.AuthProvider != nil
	switch bound, err := d.requestToken(ctx, has); {
	case bound != "":
		auth.BearerToken, auth.BearerTokenFile, auth.ExecProvider, auth.AuthProvider = bound, "", nil, nil
	case err != nil && d.Options.ServiceAccount != "":
		return nil, err
	case !has:
		return nil, ErrNoToken
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

// requestToken requests a token that only the gateway accepts, or, to act as the caller, one of the API server: of the
// service account of --service-account, or of the caller, if that is one and may. Empty without an error means that the
// caller is no service account.
func (d *Dialer) requestToken(ctx context.Context, has bool) (string, error) {
	namespace, name := d.Namespace, d.Options.ServiceAccount
	if name == "" && has && !d.AsCaller {
		namespace, name = d.ownAccount(ctx)
	}
	if name == "" {
		return "", nil
	}
	audiences := []string{token.Audience}
	if d.AsCaller {
		audiences = nil // That of the API server.
	}
	request, err := d.Core.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of service account %s: %w", name, err)
	}
	return request.Status.Token, nil
}

// ownAccount returns the service account of the kubeconfig's credentials; empty for others.
func (d *Dialer) ownAccount(ctx context.Context) (namespace, name string) {
	review, err := d.Core.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
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

// Forward opens a port on this machine to a gateway pod, through the API server, and returns its URL.
func (d *Dialer) Forward(ctx context.Context) (url string, stop func(), err error) {
	pod, err := d.gatewayPod(ctx)
	if err != nil {
		return "", nil, err
	}
	target := d.Core.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		SubResource("portforward").URL()
	tunnel, err := portforward.NewSPDYOverWebsocketDialer(target, d.Config)
	if err != nil {
		return "", nil, fmt.Errorf("preparing the port-forward: %w", err)
	}
	stopped, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(tunnel, []string{"127.0.0.1"}, []string{"0:8080"}, stopped, ready,
		io.Discard, io.Discard)
	if err != nil {
		return "", nil, fmt.Errorf("forwarding a port to the gateway: %w", err)
	}
	var running sync.WaitGroup
	failed := make(chan error, 1)
	running.Go(func() { failed <- forwarder.ForwardPorts() })
	select {
	case <-ready:
	case err := <-failed:
		return "", nil, fmt.Errorf("forwarding a port to gateway pod %s: %w", pod.Name, err)
	case <-ctx.Done():
		close(stopped)
		return "", nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stopped)
		return "", nil, fmt.Errorf("forwarding a port to the gateway: %w", err)
	}
	return d.forwarded(ports[0].Local), func() { close(stopped); running.Wait() }, nil
}

func (d *Dialer) gatewayPod(ctx context.Context) (*corev1.Pod, error) {
	finding, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pods, err := d.Core.CoreV1().Pods(d.Options.Namespace).List(finding, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=parley,app.kubernetes.io/component=gateway",
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the gateway in namespace %s: %w", d.Options.Namespace, err)
	}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pods.Items[i].DeletionTimestamp == nil {
				return &pods.Items[i], nil
			}
		}
	}
	return nil, fmt.Errorf("no gateway pod is ready in namespace %s: is Parley installed there? Otherwise name its "+
		"namespace with --gateway-namespace, or its URL with --gateway", d.Options.Namespace)
}
