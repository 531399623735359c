// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

var (
	cluster *testcluster.Cluster
	core    *kubernetes.Clientset
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.RunShared(m, &cluster, func(ctx context.Context) (end func(), err error) {
		if core, err = kubernetes.NewForConfig(cluster.Config); err != nil {
			return nil, err
		}
		return nil, cluster.CreateClusterRoles(ctx, testcluster.Path("config", "rbac", "users.yaml"))
	}))
}

// door is a gateway's operations before a namespace of its own.
type door struct {
	t         *testing.T
	namespace string
	url       string
	token     string
}

// open opens a door for somebody with a cluster role in the namespace.
func open(t *testing.T, role string, change ...func(*rest.Options)) *door {
	t.Helper()
	d := &door{t: t, namespace: cluster.Namespace(t, "rest")}
	d.account("anna", role)
	d.token = d.tokenOf("anna")
	api, err := rest.NewClient(cluster.Config)
	check.OK(t, err)
	o := rest.Options{Client: api, Permit: checker(auth.Options{APIServerTokens: true}).Permit,
		Refused: func(context.Context, *refusal.Error) {}, Now: time.Now}
	for _, c := range change {
		c(&o)
	}
	handler, _ := rest.New(o)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	d.url = server.URL + "/v1beta1/namespaces/" + d.namespace
	return d
}

func (d *door) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: d.namespace, Name: name}
}

// account creates an account with cluster roles in the namespace.
func (d *door) account(name string, roles ...string) {
	d.t.Helper()
	cluster.Account(d.t, d.namespace, name)
	for _, role := range roles {
		cluster.Bind(d.t, d.namespace, name, "ClusterRole", role)
	}
}

func (d *door) create(o client.Object) {
	d.t.Helper()
	cluster.Create(d.t, o)
}

func (d *door) tokenOf(account string, audiences ...string) string {
	d.t.Helper()
	return cluster.Token(d.t, d.namespace, account, audiences...)
}

// answer is what a request is answered with.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

// field is what stands in the body at a path of names.
func (a answer) field(path ...string) any {
	var at any = a.body
	for _, name := range path {
		object, _ := at.(map[string]any)
		at = object[name]
	}
	return at
}

func (d *door) ask(method, path, body string) answer {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	check.OK(d.t, err)
	if d.token != "" {
		request.Header.Set("Authorization", "Bearer "+d.token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	check.OK(d.t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	check.OK(d.t, err)
	got := answer{status: response.StatusCode, header: response.Header, text: string(raw)}
	_ = json.Unmarshal(raw, &got.body) // Some have none.
	return got
}

// does makes a request that must have the status.
func (d *door) does(status int, method, path, body string) answer {
	d.t.Helper()
	got := d.ask(method, path, body)
	if got.status != status {
		d.t.Fatalf("%s %s %s: %d %s", method, path, body, got.status, got.text)
	}
	return got
}

// refuses makes a request that must be refused, for the reason and in the words.
func (d *door) refuses(status int, reason, words, method, path, body string) answer {
	d.t.Helper()
	got := d.does(status, method, path, body)
	message, _ := got.body["message"].(string)
	if got.body["reason"] != reason || !strings.Contains(message, words) || got.body["status"] != float64(status) {
		d.t.Errorf("%s %s %s: refused with %s", method, path, body, got.text)
	}
	return got
}

// checker asks the API server whose a token is.
func checker(o auth.Options) *auth.Checker {
	o.Now = time.Now
	return auth.New(core.AuthenticationV1().TokenReviews(), core.AuthorizationV1().SubjectAccessReviews(), o)
}
