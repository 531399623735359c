// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"parley.dev/parley/test/kit/check"
)

// asked returns a client of a server, and how many tokens were asked for. The first token is "worker-1".
func asked(t *testing.T, handler http.HandlerFunc) (*Client, *atomic.Int32) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	minted := &atomic.Int32{}
	mint := func(_ context.Context, account string) (string, time.Time, error) {
		return fmt.Sprintf("%s-%d", account, minted.Add(1)), time.Now().Add(time.Hour), nil
	}
	cfg := &rest.Config{Host: server.URL + "/prefix", BearerToken: "the pod's own", Username: "u", Password: "p"}
	client, err := New(cfg, mint, time.Now)
	check.OK(t, err)
	return client, minted
}

// Security (a model that works in the cluster): cannot do anything with the rights of the operator, of the generation
// pod or of another account. Also TestToolsAreLimitedToServiceAccountPermissions,
// TestApprovalIsInvalidForAnotherServiceAccount of internal/tools/kubernetes.
func TestRequestUsesOnlyTokenOfItsAccount(t *testing.T) {
	client, minted := asked(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization"), " ", r.URL.Path)
	})
	for _, account := range []string{"a", "b", "a"} {
		said, err := client.Do(t.Context(), account, Request{Path: []string{"api", "v1"}})
		if err != nil || string(said) != map[string]string{"a": "Bearer a-1", "b": "Bearer b-2"}[account]+" /prefix/api/v1" {
			t.Errorf("%s asks with %s, %v", account, said, err)
		}
	}
	check.Equal(t, "tokens were asked for", 2, minted.Load())
}

func TestUnauthorizedTokenIsRenewedOnce(t *testing.T) {
	var good atomic.Value
	good.Store("Bearer a-2")
	client, minted := asked(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != good.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"kind":"Status","status":"Failure","reason":"Unauthorized","code":401,"message":"Unauthorized"}`)
		}
	})
	if _, err := client.Do(t.Context(), "a", Request{Path: []string{"api"}}); err != nil || minted.Load() != 2 {
		t.Errorf("after %d tokens: %v", minted.Load(), err)
	}
	good.Store("none")
	if _, err := client.Do(t.Context(), "a", Request{Path: []string{"api"}}); !apierrors.IsUnauthorized(err) ||
		minted.Load() != 3 {
		t.Errorf("after %d tokens: %v", minted.Load(), err)
	}
}

// Security (a model that works in the cluster): cannot have a token sent elsewhere by a redirect, nor fill the
// generation pod by answers. Also TestOversizedAPIResponseIsNotReadToEnd of internal/kube/kubeapi.
func TestRedirectIsNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was followed") }))
	defer other.Close()
	client, _ := asked(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusFound)
	})
	if _, err := client.Do(t.Context(), "a", Request{Path: []string{"api"}}); err == nil ||
		!strings.Contains(err.Error(), "which is not followed") {
		t.Errorf("it says %v", err)
	}
}

func TestOversizedAPIResponseIsNotReadToEnd(t *testing.T) {
	code := http.StatusOK
	client, _ := asked(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		piece := []byte(strings.Repeat("x", 1<<20))
		for range 64 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	_, err := client.Do(t.Context(), "a", Request{Path: []string{"api"}})
	if _, ok := errors.AsType[*OversizedError](err); !ok {
		t.Errorf("it says %v", err)
	}
	code = http.StatusForbidden
	if _, err = client.Do(t.Context(), "a", Request{Path: []string{"api"}}); !apierrors.IsForbidden(err) ||
		len(err.Error()) > 200 {
		t.Errorf("it says %v", err)
	}
}

func TestNoSegmentLeadsElsewhere(t *testing.T) {
	client, _ := asked(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) })
	for _, segment := range []string{"", ".", "..", "a/b", "/", "a%2fb", "%"} {
		if _, err := client.Do(t.Context(), "a", Request{Path: []string{"api", segment, "v1"}}); err == nil ||
			!strings.Contains(err.Error(), "cannot be part of a path") {
			t.Errorf("%q: %v", segment, err)
		}
	}
}

// groupList is what an API server says of groups that each have one kind.
func groupList(groups ...string) string {
	var items []string
	for _, g := range groups {
		items = append(items, `{"metadata":{"name":"`+g+`"},"versions":[{"version":"v1","resources":[{"resource":"pods",`+
			`"responseKind":{"group":"","version":"","kind":"Pod"},"scope":"Namespaced","singularResource":"pod",`+
			`"shortNames":["po"]}]}]}`)
	}
	return `{"kind":"APIGroupDiscoveryList","items":[` + strings.Join(items, ",") + `]}`
}

func TestCoreGroupKindTakesPrecedence(t *testing.T) {
	client, _ := asked(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/prefix/api" {
			fmt.Fprint(w, groupList(""))
			return
		}
		fmt.Fprint(w, groupList("metrics.k8s.io"))
	})
	for name, group := range map[string]string{"po": "", "Pod": "", "pods.metrics.k8s.io": "metrics.k8s.io",
		"pods.v1.metrics.k8s.io": "metrics.k8s.io"} {
		if kind, err := client.Find(t.Context(), "a", name); err != nil || kind.Group != group || kind.Resource != "pods" {
			t.Errorf("%s is %+v, %v", name, kind, err)
		}
	}
	if kind, err := client.Find(t.Context(), "a", "pods.none"); err == nil {
		t.Errorf("there is %+v", kind)
	}
}

func TestAKindThatIsNewIsFound(t *testing.T) {
	var requests atomic.Int32
	client, _ := asked(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 2 && r.URL.Path == "/prefix/apis" {
			fmt.Fprint(w, groupList("new.example"))
			return
		}
		fmt.Fprint(w, groupList())
	})
	now := time.Now()
	client.kinds.now = func() time.Time { return now }
	if _, err := client.Find(t.Context(), "a", "pods"); err == nil {
		t.Error("it is there too early")
	}
	check.Equal(t, "to find nothing requests were made", 2, requests.Load())
	now = now.Add(pause)
	if _, err := client.Find(t.Context(), "a", "pods"); err != nil {
		t.Errorf("then it says %v", err)
	}
}
