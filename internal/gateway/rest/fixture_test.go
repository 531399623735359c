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

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

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
		return nil, createClusterRoles(ctx)
	}))
}

// createClusterRoles brings the roles that people get. No other package that shares the control plane has them.
func createClusterRoles(ctx context.Context) error {
	text, err := os.ReadFile(testcluster.Path("config", "rbac", "users.yaml"))
	if err != nil {
		return err
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return err
		}
		if role.Kind != "ClusterRole" {
			continue
		}
		if err := cluster.Client.Create(ctx, &role); err != nil {
			return err
		}
	}
	return nil
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
	d.create(&corev1.ServiceAccount{ObjectMeta: d.meta("anna")})
	d.create(&rbacv1.RoleBinding{ObjectMeta: d.meta("anna"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: d.namespace, Name: "anna"}}})
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
	d.url = server.URL + "/v1alpha1/namespaces/" + d.namespace
	return d
}

func (d *door) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: d.namespace, Name: name}
}

func (d *door) create(o client.Object) {
	d.t.Helper()
	check.OK(d.t, cluster.Client.Create(d.t.Context(), o))
}

func (d *door) tokenOf(account string, audiences ...string) string {
	d.t.Helper()
	request, err := core.CoreV1().ServiceAccounts(d.namespace).CreateToken(d.t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
	check.OK(d.t, err)
	return request.Status.Token
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
