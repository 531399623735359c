// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/auth"
	operations "parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realrelay"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/waiting"
)

var (
	cluster *testcluster.Cluster
	core    *kubernetes.Clientset
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.RunShared(m, &cluster, func(context.Context) (end func(), err error) {
		core, err = kubernetes.NewForConfig(cluster.Config)
		return nil, err
	}))
}

// installation is a namespace with a gateway, and the relay of its one generation pod.
type installation struct {
	t         *testing.T
	namespace string
	url       string
	client    *http.Client
	token     string              // of an account that may follow
	binding   *rbacv1.RoleBinding // of that account
	gateway   *Gateway
	generator *publish.Client
	relay     *realrelay.Relay
	gets      atomic.Int32 // messages that the gateway has fetched
	mu        sync.Mutex   // held while the API server is "away" for messages
	podMu     sync.Mutex
	podUIDs   []string
	// minted counts the gateway's tokens for relays, which have expired when they are shown if they are shortLived.
	minted     atomic.Int32
	shortLived atomic.Bool
}

// install makes an installation. configure may change the gateway before it runs.
func install(t *testing.T, configure func(*Gateway)) *installation {
	t.Helper()
	in := &installation{t: t, client: http.DefaultClient, namespace: cluster.Namespace(t, "gateway")}
	in.create(&rbacv1.Role{ObjectMeta: in.meta("viewer"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chats/stream"}, Verbs: []string{"get"}}}})
	for _, name := range []string{"parley-gateway", "viewer", "second", "stranger"} {
		cluster.Account(t, in.namespace, name)
	}
	in.binding = cluster.Bind(t, in.namespace, "viewer", "Role", "viewer")
	in.token = in.tokenOf("viewer")
	in.startRelay()
	in.generator = publish.New(in.relay.Socket, "incarnation-1", time.Now)
	in.pod("pod-1", "127.0.0.1")

	api, err := apiclient.New(cluster.Config, "parley-gateway")
	check.OK(t, err)
	callers, err := operations.NewClient(cluster.Config)
	check.OK(t, err)
	in.gateway, err = New(Config{
		Callers: callers,
		// What other packages do in a shared control plane is no load of this gateway.
		Namespaces: []string{in.namespace, in.namespace + "-later"},
		Sources:    NewSources(api, core.CoreV1().RESTClient()),
		GetMessage: func(ctx context.Context, namespace, name string) (*v1beta1.ChatMessage, error) {
			in.mu.Lock()
			defer in.mu.Unlock()
			in.gets.Add(1)
			return api.Messages(namespace).Get(ctx, name)
		},
		Checker: auth.New(core.AuthenticationV1().TokenReviews(), core.AuthorizationV1().SubjectAccessReviews(),
			auth.Options{APIServerTokens: true, Now: time.Now}),
		RelayPort: in.relay.Port(),
		PodToken:  in.mint,
		Now:       time.Now,
	})
	check.OK(t, err)
	if configure != nil {
		configure(in.gateway)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { in.gateway.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	server := httptest.NewUnstartedServer(nil)
	server.Config = in.gateway.server(t.Context())
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	in.url = server.URL
	waitUntil(t, "the gateway is synced", func() bool { return in.gateway.syncedIn(in.namespace) })
	return in
}

func (in *installation) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: in.namespace, Name: name}
}

func (in *installation) create(o client.Object) {
	in.t.Helper()
	cluster.Create(in.t, o)
}

// mint is the gateway's way to tokens.
func (in *installation) mint(ctx context.Context, audience string) (string, time.Time, error) {
	request, err := core.CoreV1().ServiceAccounts(in.namespace).CreateToken(ctx, "parley-gateway",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}},
		metav1.CreateOptions{})
	if err != nil {
		return "", time.Time{}, err
	}
	in.minted.Add(1)
	if in.shortLived.Load() {
		return request.Status.Token, time.Now(), nil
	}
	return request.Status.Token, request.Status.ExpirationTimestamp.Time, nil
}

func (in *installation) tokenOf(account string, audiences ...string) string {
	in.t.Helper()
	return cluster.Token(in.t, in.namespace, account, audiences...)
}

// pod makes a generation pod that was given an address.
func (in *installation) pod(name, ip string) {
	in.t.Helper()
	meta := in.meta(name)
	meta.Labels = map[string]string{"parley.dev/component": "generation"}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		ServiceAccountName: "parley-generation", AutomountServiceAccountToken: new(false),
		Containers: []corev1.Container{{Name: "generator", Image: "none"}},
	}}
	in.create(pod)
	in.podMu.Lock()
	in.podUIDs = append(in.podUIDs, string(pod.UID))
	in.podMu.Unlock()
	pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	check.OK(in.t, cluster.Client.Status().Update(in.t.Context(), pod))
}

// startRelay starts a relay that trusts the cluster's issuer.
func (in *installation) startRelay() {
	in.t.Helper()
	token := in.tokenOf("stranger") // every service account may read the issuer's keys
	cfg := rest.AnonymousClientConfig(cluster.Config)
	cfg.BearerToken = token
	api, err := apiclient.New(cfg, "parley-generator")
	check.OK(in.t, err)
	in.relay = realrelay.Start(in.t, "127.0.0.1:0", func(s *relay.Subscribers, keys *relay.IssuerKeys) {
		s.Authorizer = podRelays{in, satoken.Verifier{Issuer: issuerOf(in.t, token), Keys: keys, Now: time.Now,
			Subjects: []string{"system:serviceaccount:" + in.namespace + ":parley-gateway"}}}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		publish.New(in.relay.Socket, "keys", time.Now).KeepKeys(ctx, api.IssuerKeys, slog.New(slog.DiscardHandler))
	})
	in.t.Cleanup(func() { cancel(); running.Wait() })
}

// podRelays authorizes as the relays of all pods of the installation do,
// which are one relay here: a token must be for one of them.
type podRelays struct {
	in *installation
	satoken.Verifier
}

// Authorize implements relay.Authorizer.
func (p podRelays) Authorize(ctx context.Context, token string) error {
	p.in.podMu.Lock()
	pods := slices.Clone(p.in.podUIDs)
	p.in.podMu.Unlock()
	err := satoken.ErrUnauthenticated
	for _, uid := range pods {
		p.Audience = relay.Audience(p.in.namespace, uid)
		if err = p.Verifier.Authorize(ctx, token); err == nil {
			return nil
		}
	}
	return err
}

func issuerOf(t *testing.T, token string) string {
	t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	check.OK(t, err)
	var claims struct {
		Issuer string `json:"iss"`
	}
	check.OK(t, json.Unmarshal(payload, &claims))
	return claims.Issuer
}

func (in *installation) get(ctx context.Context, path, token string, header map[string]string) *http.Response {
	in.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.url+path, nil)
	check.OK(in.t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := in.client.Do(req)
	check.OK(in.t, err)
	return resp
}

func (in *installation) path(chat string) string {
	return "/v1beta1/namespaces/" + in.namespace + "/chats/" + chat + "/stream"
}

func (in *installation) list() string {
	return "/v1beta1/namespaces/" + in.namespace + "/chats?watch"
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	waiting.Until(t, time.Minute, what, done)
}

// serve serves another gateway of the same configuration, with certificates if they are not nil, until the test ends or
// stop is called. Clients use it from now on.
func (in *installation) serve(certificates *tls.Config, configure func(*Gateway)) (stop func()) {
	in.t.Helper()
	gateway, err := New(in.gateway.config)
	check.OK(in.t, err)
	gateway.lameDuck = 0
	configure(gateway)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(in.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gateway.Serve(ctx, listener, certificates) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			in.t.Errorf("the gateway ended in %v", err)
		}
	})
	in.t.Cleanup(stop)
	waitUntil(in.t, "it knows the chat",
		func() bool { return gateway.Synced() && gateway.chats.Get(in.namespace, "chat") != nil })
	scheme := "http"
	if certificates != nil {
		scheme = "https"
	}
	in.url = scheme + "://" + listener.Addr().String()
	return stop
}
