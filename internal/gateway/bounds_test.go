// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/test/kit/check"
)

func TestTheServerWaitsForNobodyForEver(t *testing.T) {
	api, err := apiclient.New(cluster.Config, "parley-gateway")
	check.OK(t, err)
	gateway, err := New(Config{Sources: NewSources(api, core.CoreV1().RESTClient()), Checker: &auth.Checker{}})
	check.OK(t, err)
	server := gateway.server(t.Context())
	if server.ReadHeaderTimeout != 10*time.Second || server.ReadTimeout != 30*time.Second ||
		server.IdleTimeout != 2*time.Minute || server.MaxHeaderBytes != 64<<10 {
		t.Errorf("got %+v", server)
	}
}

// raw sends bytes to the gateway and returns what comes back until the connection ends.
func (in *installation) raw(request string) string {
	in.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(in.url, "http://"))
	check.OK(in.t, err)
	defer conn.Close()
	check.OK(in.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	if _, err := io.WriteString(conn, request); err != nil {
		in.t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		in.t.Errorf("the connection did not end: %v", err)
	}
	return string(answer)
}

func TestConnectionWithoutItsBodyEnds(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) { g.readTimeout = 2 * time.Second })
	in.converse("chat")
	head := "Host: gateway\r\nAuthorization: Bearer " + in.token + "\r\nContent-Length: 100\r\n\r\n"
	if got := in.raw("GET " + in.path("chat") + " HTTP/1.1\r\n" + head); !strings.HasPrefix(got, "HTTP/1.1 400 ") ||
		!strings.Contains(got, "without a body") {
		t.Errorf("a stream: %s", got)
	}
	if got := in.raw("GET /healthz HTTP/1.1\r\n" + head); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("another request: %s", got)
	}
	in.raw("GET /healthz HTTP/1.1\r\nHost: gate")
}

func TestStreamOutlivesRequestTimeout(t *testing.T) {
	t.Parallel()
	// The question to the API server about the token counts, too, which takes some time under load.
	const timeout = 2 * time.Second
	in := install(t, func(g *Gateway) { g.readTimeout = timeout })
	c := in.converse("chat")
	l := in.listen("chat", "", 0)
	l.waitName(stream.EventStatus)
	<-time.After(timeout + 300*time.Millisecond)
	c.ask("q1", 1)
	c.commit()
	l.waitID("1.0.1")
}

func TestTooLongAHeaderIsRefused(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	got := in.raw("GET /healthz HTTP/1.1\r\nHost: gateway\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		t.Errorf("got %.100q", got)
	}
}

func TestStreamsAreLimitedPerCallerAndGateway(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) { g.streams = limit.NewPerCaller(3, 2) })
	in.converse("chat")
	cluster.Bind(t, in.namespace, "second", "Role", "viewer")
	other := in.tokenOf("second")
	status := func(token string) (int, string, refusal.Body) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		resp := in.get(ctx, in.path("chat"), token, nil)
		t.Cleanup(func() { resp.Body.Close() })
		var body refusal.Body
		if resp.StatusCode != http.StatusOK {
			if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
				t.Error(err)
			}
		}
		return resp.StatusCode, resp.Header.Get("Retry-After"), body
	}
	first := in.get(t.Context(), in.path("chat"), in.token, nil)
	if got, _, _ := status(in.token); first.StatusCode != http.StatusOK || got != http.StatusOK {
		t.Fatalf("got %d and %d", first.StatusCode, got)
	}
	if got, after, body := status(in.token); got != http.StatusTooManyRequests || after == "" ||
		body.Reason != refusal.TooManyStreams {
		t.Errorf("one too many of a caller: %d, after %q, %+v", got, after, body)
	}
	if got, _, _ := status(other); got != http.StatusOK {
		t.Errorf("another caller: %d", got)
	}
	if got, after, body := status(other); got != http.StatusServiceUnavailable || after == "" ||
		body.Reason != refusal.GatewayFull {
		t.Errorf("one too many for the gateway: %d, after %q, %+v", got, after, body)
	}
	first.Body.Close()
	waitUntil(t, "there is room again", func() bool {
		resp := in.get(t.Context(), in.path("chat"), in.token, nil)
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func TestWithdrawnRightEndsTheStreamWithAWord(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) { g.lease.every = 20 * time.Millisecond })
	in.converse("chat")
	l := in.listen("chat", "", 0)
	l.waitName(stream.EventStatus)
	check.OK(t, cluster.Client.Delete(t.Context(), in.binding))
	events := l.waitName(stream.EventClosing)
	<-l.done
	if last := events[len(events)-1]; !strings.Contains(last.Data, stream.ClosingWithdrawn) ||
		strings.Contains(last.Data, in.token) {
		t.Errorf("the last event is %+v", last)
	}
	resp := in.get(t.Context(), in.path("chat"), in.token, nil)
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("afterwards: %s", resp.Status)
	}
}

func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.converse("chat")
	soon := time.Now().Add(time.Second).Truncate(time.Second).Add(time.Second)
	in.gateway.config.Checker = expiring{in.gateway.config.Checker, soon}
	l := in.listen("chat", "", 0)
	events := l.waitName(stream.EventClosing)
	<-l.done
	if last := events[len(events)-1]; !strings.Contains(last.Data, stream.ClosingExpired) || time.Now().Before(soon) {
		t.Errorf("at %s, want %s, with %+v", time.Now(), soon, last)
	}
}

// expiring lets tokens expire sooner: the API server gives out none for less than ten minutes.
type expiring struct {
	Checker
	at time.Time
}

func (e expiring) Check(ctx context.Context, token string, access auth.Access) (auth.Grant, *refusal.Error) {
	grant, refused := e.Checker.Check(ctx, token, access)
	grant.Expires = e.at
	return grant, refused
}

func TestGatewaysAudienceIsEnough(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) {
		g.config.Checker = auth.New(core.AuthenticationV1().TokenReviews(), core.AuthorizationV1().SubjectAccessReviews(),
			auth.Options{Now: time.Now})
	})
	in.converse("chat")
	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"ours":                    {in.tokenOf("viewer", "parley-gateway"), http.StatusOK},
		"ours of a stranger":      {in.tokenOf("stranger", "parley-gateway"), http.StatusForbidden},
		"the API server's":        {in.tokenOf("viewer"), http.StatusUnauthorized},
		"another one's":           {in.tokenOf("viewer", "vault"), http.StatusUnauthorized},
		"a claim without a proof": {forged(in.tokenOf("viewer", "parley-gateway")), http.StatusUnauthorized},
	} {
		resp := in.get(t.Context(), in.path("chat"), tt.token, nil)
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: %s, want %d", name, resp.Status, tt.want)
		}
	}
}

// forged is a token with another signature.
func forged(token string) string {
	at := strings.LastIndex(token, ".")
	return token[:at+1] + strings.Repeat("A", len(token)-at-1)
}

// away is an API server that does not answer reviews.
type away struct {
	authenticationclient.TokenReviewInterface
}

func (away) Create(context.Context, *authenticationv1.TokenReview, metav1.CreateOptions) (*authenticationv1.TokenReview,
	error) {
	return nil, errors.New(`Post "https://10.96.0.1:443/apis": dial tcp 10.96.0.1:443: connect: connection refused`)
}

func TestTheAnonymousAreToldNoInnerAddresses(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) {
		g.config.Checker = auth.New(away{}, core.AuthorizationV1().SubjectAccessReviews(),
			auth.Options{APIServerTokens: true, Now: time.Now})
	})
	resp := in.get(t.Context(), in.path("chat"), in.token, nil)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" ||
		strings.Contains(string(body), "10.") {
		t.Errorf("got %s %s, %v", resp.Status, body, err)
	}
}

func TestGatewayShutdownNotifiesClients(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.converse("chat")
	stop := in.serve(nil, func(g *Gateway) { g.lameDuck = lameDuck })
	before := in.listen("chat", "", 0)
	before.waitName(stream.EventStatus)
	go stop()
	waitUntil(t, "the gateway is not ready", func() bool {
		resp := in.get(t.Context(), "/readyz", "", nil)
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusServiceUnavailable
	})
	meanwhile := in.listen("chat", "", 0)
	meanwhile.waitName(stream.EventStatus)
	for _, l := range []*listener{before, meanwhile} {
		events := l.waitName(stream.EventClosing)
		check.Contains(t, events[len(events)-1].Data, stream.ClosingShutdown)
	}
}

func TestLongHistoryIsStreamedWithBoundedMemory(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) {
		g.memory = follow.NewMemory(4 << 20)
		g.messages = newMessages(g.messages.get, nil)
	})
	c := in.converse("chat")
	c.ask("q1", 1)
	text := strings.Repeat("ÿ\\\"<&>", 50<<10)
	for range 8 {
		c.attempt(1)
		c.finish("Assistant", text)
	}
	c.commit()
	var all []*listener
	for range 8 {
		all = append(all, in.listen("chat", "", 0))
	}
	for _, l := range all {
		check.Equal(t, "messages", 9, len(ids(l.waitID("9.0.9"))))
	}
}
