// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// frontend is a proxy in front of the API server, as load balancers are.
type frontend struct {
	*httptest.Server

	down atomic.Bool
	mu   sync.Mutex
	// passed and refused are the requests that came while it was up and while it was down.
	passed, refused []string
}

// note records a request, and reports whether it is passed on.
func (f *frontend) note(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	request := r.Method + " " + r.URL.String()
	if f.down.Load() {
		f.refused = append(f.refused, request)
		return false
	}
	f.passed = append(f.passed, request)
	return true
}

// has reports whether so many of the requests contain the piece.
func (f *frontend) has(requests *[]string, number int, piece string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Count(strings.Join(*requests, "\n"), piece) >= number
}

// behindFrontend gives the person a kubeconfig "frontend", with which requests go through a frontend.
func (p *person) behindFrontend() *frontend {
	p.t.Helper()
	api, err := url.Parse(shared.cluster.Config.Host)
	check.OK(p.t, err)
	passing := httputil.NewSingleHostReverseProxy(api)
	passing.Transport, err = rest.TransportFor(rest.AnonymousClientConfig(shared.cluster.Config))
	check.OK(p.t, err)
	passing.FlushInterval = -1
	passing.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // The client has left.
	f := &frontend{}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.note(r) {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		passing.ServeHTTP(w, r)
	}))
	p.t.Cleanup(f.Close)
	p.t.Cleanup(f.CloseClientConnections)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	p.files["frontend"] = p.kubeconfigOf(f.URL, ca, &clientcmdapi.AuthInfo{Token: p.token()})
	return f
}

// restart takes the frontend down after so many requests that contain the piece, until it has refused one.
func (f *frontend) restart(t *testing.T, number int, piece string) {
	t.Helper()
	eventually(t, piece+" was requested", func() bool { return f.has(&f.passed, number, piece) })
	f.down.Store(true)
	f.CloseClientConnections()
	eventually(t, piece+" was refused", func() bool { return f.has(&f.refused, 1, piece) })
	f.down.Store(false)
}

func TestRunOutlivesOutageOfAPIServer(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	api := p.behindFrontend()
	c := p.start("frontend", "", "run", "--rm", "why?")
	m := p.asked("run-", "why?")
	p.begin(m)
	api.restart(t, 1, "/chatmessages?fieldSelector=metadata.name")
	p.answer(m, "because")
	c.shows("because\n")
}

func TestRunReportsOutageOfAPIServerOnce(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	api := p.behindFrontend()
	c := p.start("frontend", "", "run", "why?")
	p.begin(p.asked("run-", "why?"))
	eventually(t, "the message is watched", func() bool {
		return api.has(&api.passed, 1, "/chatmessages?fieldSelector=metadata.name")
	})
	api.down.Store(true)
	api.CloseClientConnections()
	c.waitNote("▎[the API server is out of reach, and is asked again until it answers: ")
	eventually(t, "watching the message has failed for seconds", func() bool {
		return api.has(&api.refused, 6, "/chatmessages?fieldSelector=metadata.name")
	})
	check.Equal(t, "reports", 1, strings.Count(c.errOut.String(), "out of reach"))
	c.stop()
	c.exits(exitStopped, "")
}

// allow sets what the person may do with chats, besides getting and creating them.
func (p *person) allow(verbs ...string) {
	p.t.Helper()
	role := &rbacv1.Role{ObjectMeta: p.meta("person")}
	p.get(role)
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"parley.dev"}, Resources: []string{"chats"},
		Verbs: append(verbs, "get", "create", "delete")})
	role.Rules[0].Resources = []string{"chatmessages"}
	p.update(role)
	for _, verb := range []string{"list", "watch"} {
		eventually(p.t, "the rights of the person are known", func() bool {
			return p.may(verb, "chats") == slices.Contains(verbs, verb)
		})
	}
}

func TestUnwatchableChatEndsWait(t *testing.T) {
	t.Parallel()
	for _, verbs := range [][]string{nil, {"list"}} {
		t.Run(fmt.Sprint(verbs), func(t *testing.T) {
			t.Parallel()
			p := newPerson(t)
			p.allow(verbs...)
			p.run("run", "why?").exits(exitForbidden, "watching chat "+p.namespace+"/run-")
		})
	}
}

func TestRequestOutlivesOutageOfAPIServer(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	api := p.behindFrontend()
	c := p.start("frontend", "", "interrupt", "triage")
	token := p.annotated(v1beta1.AnnotationInterrupt)
	api.restart(t, 1, "/chats?fieldSelector=metadata.name")
	p.handle(v1beta1.HandledRequest{Kind: v1beta1.RequestInterrupt, Token: token, Outcome: v1beta1.RequestDone})
	c.shows("chat.parley.dev/triage interrupted: Done\n")
}

func TestDeletionOutlivesOutageOfAPIServer(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.chat.Finalizers = []string{"parley.dev/test"}
	p.update(p.chat)
	api := p.behindFrontend()
	c := p.start("frontend", "", "delete", "triage")
	api.restart(t, 2, "GET /apis/parley.dev/v1beta1/namespaces/"+p.namespace+"/chats/triage")
	p.get(p.chat)
	p.chat.Finalizers = nil
	p.update(p.chat)
	c.shows("chat.parley.dev/triage deleted\n")
}

func TestLsReportsOutageOfAPIServer(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	api := p.behindFrontend()
	c := p.start("frontend", "", "ls", "--watch")
	c.waitOutput("triage")
	api.down.Store(true)
	api.CloseClientConnections()
	c.waitNote("▎[the API server is out of reach, and is asked again until it answers: ")
	api.down.Store(false)
	p.chat.Status.Title = "It has a title"
	p.updateStatus(p.chat)
	c.waitOutput("It has a title")
	c.stop()
	c.succeeds()
	check.Equal(t, "reports", 1, strings.Count(c.errOut.String(), "out of reach"))
}

func TestUnreadVerdictIsNoRefusal(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	s := p.session()
	s.Namespace = "default" // The person has no rights there.
	c := &conversation{s: s, chat: "triage"}
	check.OK(t, c.Await(t.Context(), "sent"))
	c.s.Namespace = p.namespace
	p.write("sent", "why?")
	m := p.sent()
	m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageRejected,
		Conditions: ready(metav1.ConditionFalse, v1beta1.ReasonQueueFull, "20 messages wait")}
	p.updateStatus(m)
	check.Contains(t, c.Await(t.Context(), "sent").Error(), "20 messages wait")
}
