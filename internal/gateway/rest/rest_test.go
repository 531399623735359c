// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/testing/testcluster"
)

var (
	cluster *testcluster.Cluster
	core    *kubernetes.Clientset
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Run(m, &cluster, func(ctx context.Context) (end func(), err error) {
		if core, err = kubernetes.NewForConfig(cluster.Config); err != nil {
			return nil, err
		}
		return nil, createClusterRoles(ctx)
	}))
}

// createClusterRoles brings the roles that people get.
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

var namespaces atomic.Int32

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
	d := &door{t: t, namespace: fmt.Sprintf("rest-%d", namespaces.Add(1))}
	d.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}})
	d.create(&corev1.ServiceAccount{ObjectMeta: d.meta("anna")})
	d.create(&rbacv1.RoleBinding{ObjectMeta: d.meta("anna"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: d.namespace, Name: "anna"}}})
	d.token = d.tokenOf("anna")
	api, err := rest.NewClient(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	o := rest.Options{Client: api, Permit: auth.New(nil, nil, auth.Options{APIServerTokens: true, Now: time.Now}).Permit,
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
	if err := cluster.Client.Create(d.t.Context(), o); err != nil {
		d.t.Fatal(err)
	}
}

func (d *door) tokenOf(account string, audiences ...string) string {
	d.t.Helper()
	request, err := core.CoreV1().ServiceAccounts(d.namespace).CreateToken(d.t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
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
	if err != nil {
		d.t.Fatal(err)
	}
	if d.token != "" {
		request.Header.Set("Authorization", "Bearer "+d.token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
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

func TestAPersonDoesWithAChatWhatTheirRoleLets(t *testing.T) {
	d := open(t, "parley-chat-user")
	made := d.does(http.StatusCreated, "POST", "/chats", `{"name":"c","spec":{"prompt":"hello"},"labels":{"team":"blue"}}`)
	if made.body["kind"] != "Chat" || made.field("spec", "prompt") != "hello" ||
		made.field("metadata", "labels", "team") != "blue" || made.field("metadata", "managedFields") != nil {
		t.Errorf("created %s", made.text)
	}
	d.refuses(http.StatusConflict, "AlreadyExists", `"c" already exists`, "POST", "/chats", `{"name":"c","spec":{}}`)
	if got := d.does(http.StatusCreated, "POST", "/chats", `{"spec":{}}`).field("metadata", "name"); !strings.HasPrefix(
		got.(string), "chat-") {
		t.Errorf("the name is %v", got)
	}
	page := d.does(http.StatusOK, "GET", "/chats?limit=1", "")
	rest := d.does(http.StatusOK, "GET", "/chats?continue="+page.body["continue"].(string), "")
	if len(page.body["chats"].([]any)) != 1 || len(rest.body["chats"].([]any)) != 1 || rest.body["continue"] != nil {
		t.Errorf("listed %s, then %s", page.text, rest.text)
	}
	version := d.does(http.StatusOK, "GET", "/chats/c", "").field("metadata", "resourceVersion").(string)
	changed := d.does(http.StatusOK, "PATCH", "/chats/c", `{"resourceVersion":"`+version+`","spec":{"title":"A","suspend":true}}`)
	if changed.field("spec", "title") != "A" || changed.field("spec", "prompt") != "hello" {
		t.Errorf("changed %s", changed.text)
	}
	d.refuses(http.StatusConflict, "Conflict", "modified", "PATCH", "/chats/c",
		`{"resourceVersion":"`+version+`","spec":{"title":"B"}}`)
	if got := d.does(http.StatusOK, "PATCH", "/chats/c", `{"spec":{"title":null}}`); got.field("spec", "title") != nil {
		t.Errorf("changed %s", got.text)
	}
	d.does(http.StatusNoContent, "DELETE", "/chats/c", "")
	d.refuses(http.StatusNotFound, "NotFound", `"c" not found`, "GET", "/chats/c", "")
}

func TestMessagesAreSentEditedPromotedAndDeleted(t *testing.T) {
	d := open(t, "parley-chat-user")
	d.create(&v1alpha1.Chat{ObjectMeta: d.meta("c")})
	d.create(&v1alpha1.Chat{ObjectMeta: d.meta("other")})
	sent := d.does(http.StatusCreated, "POST", "/chats/c/messages",
		`{"name":"m","content":"Hi.","whenBusy":"Queue","modelConfig":"small","reasoningEffort":"Low"}`)
	if sent.field("spec", "chatRef", "name") != "c" || sent.field("spec", "role") != "User" ||
		sent.field("spec", "modelConfigRef", "name") != "small" || sent.field("spec", "reasoningEffort") != "Low" {
		t.Errorf("sent %s", sent.text)
	}
	d.refuses(http.StatusConflict, "AlreadyExists", "m", "POST", "/chats/c/messages", `{"name":"m","content":"Hi."}`)
	version := sent.field("metadata", "resourceVersion").(string)
	edited := d.does(http.StatusOK, "PATCH", "/chats/c/messages/m", `{"resourceVersion":"`+version+`","content":"Ho."}`)
	if edited.field("spec", "content") != "Ho." || edited.field("metadata", "generation") != float64(2) {
		t.Errorf("edited %s", edited.text)
	}
	d.refuses(http.StatusConflict, "Conflict", "modified", "PATCH", "/chats/c/messages/m",
		`{"resourceVersion":"`+version+`","content":"Hu."}`)
	parts := d.does(http.StatusOK, "PATCH", "/chats/c/messages/m", `{"parts":[{"type":"Text","text":"Ha."}]}`)
	if parts.field("spec", "content") != nil || len(parts.field("spec", "parts").([]any)) != 1 {
		t.Errorf("edited %s", parts.text)
	}
	earlier := d.does(http.StatusCreated, "POST", "/chats/c/messages",
		`{"name":"h","history":[{"role":"User","content":"Hi."},{"role":"Assistant","content":"Ho."}]}`)
	if len(earlier.field("spec", "history").([]any)) != 2 {
		t.Errorf("sent %s", earlier.text)
	}
	if got := d.does(http.StatusOK, "PATCH", "/chats/c/messages/h", `{"content":"Ha."}`); got.field("spec", "history") != nil {
		t.Errorf("edited %s", got.text)
	}
	if got := d.does(http.StatusOK, "POST", "/chats/c/messages/m/promote", ""); got.field("spec", "whenBusy") !=
		"Interrupt" {
		t.Errorf("promoted %s", got.text)
	}
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		body := map[string]string{"PATCH": `{"content":"x"}`}[method]
		d.refuses(http.StatusNotFound, "NotFound", "chat other has no message m", method, "/chats/other/messages/m", body)
	}
	d.does(http.StatusNoContent, "DELETE", "/chats/c/messages/m", "")
	d.refuses(http.StatusNotFound, "NotFound", `"m" not found`, "GET", "/chats/c/messages/m", "")
}

func TestCallsAreDecidedAndAnswered(t *testing.T) {
	d := open(t, "parley-chat-user")
	d.create(&rbacv1.RoleBinding{ObjectMeta: d.meta("approver"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "parley-tool-approver"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: d.namespace, Name: "anna"}}})
	d.create(&v1alpha1.Chat{ObjectMeta: d.meta("c")})
	approved := d.does(http.StatusCreated, "POST", "/chats/c/approvals",
		`{"toolCallID":"call_1","decision":"Deny","comment":"not now"}`)
	if approved.field("spec", "decision") != "Deny" || approved.field("spec", "chatRef", "name") != "c" ||
		approved.body["kind"] != "ToolApproval" {
		t.Errorf("decided %s", approved.text)
	}
	results := d.does(http.StatusCreated, "POST", "/chats/c/results", `{"results":[{"id":"call_2","output":"4711"}]}`)
	if results.field("spec", "role") != "Tool" || !strings.Contains(results.text, `"output":"4711"`) {
		t.Errorf("answered %s", results.text)
	}
}

func TestARequestTellsWhatBecameOfIt(t *testing.T) {
	d := open(t, "parley-chat-user")
	chat := &v1alpha1.Chat{ObjectMeta: d.meta("c")}
	d.create(chat)
	if got := d.does(http.StatusOK, "POST", "/chats/c/requests?wait=1", `{"kind":"Clear","token":"a"}`); got.text !=
		`{"kind":"Clear","token":"a"}`+"\n" {
		t.Errorf("nobody has acted, and it is %s", got.text)
	}
	acted := make(chan error, 1)
	go func() { // The manager is not here.
		acted <- func() error {
			err := wait.PollUntilContextTimeout(d.t.Context(), 10*time.Millisecond, time.Minute, true,
				func(ctx context.Context) (bool, error) {
					err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(chat), chat)
					return chat.Annotations[v1alpha1.AnnotationInterrupt] == "b", err
				})
			if err != nil {
				return err
			}
			chat.Status.Requests = []v1alpha1.HandledRequest{{Kind: v1alpha1.RequestInterrupt, Token: "b",
				Outcome: v1alpha1.RequestRefused, Message: "nothing to stop", Time: metav1.Now()}}
			return cluster.Client.Status().Update(d.t.Context(), chat)
		}()
	}()
	got := d.does(http.StatusOK, "POST", "/chats/c/requests", `{"kind":"Interrupt","token":"b"}`)
	if err := <-acted; err != nil {
		t.Fatal(err)
	}
	if got.body["outcome"] != "Refused" || got.body["message"] != "nothing to stop" {
		t.Errorf("it is %s", got.text)
	}
	if named := d.does(http.StatusOK, "POST", "/chats/c/requests?wait=0", `{"kind":"Title"}`); named.body["token"] == "" {
		t.Errorf("it is %s", named.text)
	}
}

func TestWhoMayNotIsToldInTheWordsOfTheAPIServer(t *testing.T) {
	d := open(t, "parley-chat-viewer")
	d.create(&v1alpha1.Chat{ObjectMeta: d.meta("c")})
	d.does(http.StatusOK, "GET", "/chats/c", "")
	for path, body := range map[string]string{
		"/chats": `{"spec":{}}`, "/chats/c/messages": `{"content":"x"}`, "/chats/c/results": `{"results":[{"id":"a","output":"1"}]}`,
		"/chats/c/approvals": `{"toolCallID":"a","decision":"Approve"}`, "/chats/c/requests": `{"kind":"Interrupt"}`,
	} {
		d.refuses(http.StatusForbidden, "Forbidden", `User "system:serviceaccount:`+d.namespace+`:anna" cannot`, "POST", path,
			body)
	}
	d.refuses(http.StatusForbidden, "Forbidden", "cannot delete", "DELETE", "/chats/c", "")
	elsewhere := *d
	elsewhere.url = strings.Replace(d.url, d.namespace, "kube-system", 1)
	elsewhere.refuses(http.StatusForbidden, "Forbidden", `in the namespace "kube-system"`, "GET", "/chats", "")
}

func TestOnlyTokensOfTheAPIServerAreTaken(t *testing.T) {
	d := open(t, "parley-chat-user")
	good := d.token
	for name, c := range map[string]struct {
		token  string
		status int
		reason string
		words  string
	}{
		"none":    {"", http.StatusUnauthorized, "Unauthorized", "no bearer token"},
		"rubbish": {"rubbish", http.StatusUnauthorized, "Unauthorized", "the API server does not take this token"},
		"one for listening": {d.tokenOf("anna", "parley-gateway"), http.StatusForbidden, "Forbidden",
			"good for listening alone"},
		"one for others":       {d.tokenOf("anna", "vault"), http.StatusUnauthorized, "Unauthorized", "does not take"},
		"one that is too long": {strings.Repeat("a", 17<<10), http.StatusUnauthorized, "Unauthorized", "longer than"},
		"one that was changed": {good[:len(good)-8] + "AAAAAAAA", http.StatusUnauthorized, "Unauthorized", "does not take"},
	} {
		t.Run(name, func(t *testing.T) {
			as := *d
			as.t, as.token = t, c.token
			got := as.refuses(c.status, c.reason, c.words, "GET", "/chats", "")
			if (got.header.Get("WWW-Authenticate") == "Bearer") != (c.status == http.StatusUnauthorized) {
				t.Errorf("the header is %v", got.header)
			}
		})
	}
	closed := open(t, "parley-chat-user", func(o *rest.Options) {
		o.Permit = auth.New(nil, nil, auth.Options{Now: time.Now}).Permit
	})
	closed.refuses(http.StatusForbidden, "Forbidden", "streams alone", "GET", "/chats", "")
}

func TestABadRequestIsToldWhatIsWrongWithIt(t *testing.T) {
	d := open(t, "parley-chat-user")
	d.create(&v1alpha1.Chat{ObjectMeta: d.meta("c")})
	for name, c := range map[string]struct{ method, path, body, words string }{
		"no JSON":               {"POST", "/chats", `{"spec":`, "unexpected end"},
		"no body":               {"POST", "/chats", ``, "body is required"},
		"no spec":               {"POST", "/chats", `{"name":"x"}`, "spec"},
		"an unknown field":      {"POST", "/chats", `{"spec":{},"foo":1}`, "foo"},
		"an unknown setting":    {"POST", "/chats", `{"spec":{"promt":"hi"}}`, `unknown field "promt"`},
		"a change of no field":  {"PATCH", "/chats/c", `{"spec":{"titel":"x"}}`, `unknown field "titel"`},
		"an unknown parameter":  {"GET", "/chats?foo=1", ``, "foo"},
		"an unknown kind":       {"POST", "/chats/c/requests", `{"kind":"Explode"}`, "Interrupt"},
		"an unknown part":       {"POST", "/chats/c/messages", `{"parts":[{"type":"Text","txt":"x"}]}`, `unknown field "txt"`},
		"results of nothing":    {"POST", "/chats/c/results", `{"results":[]}`, "results"},
		"a name that is a path": {"GET", "/chats/..%2f..%2fsecrets", ``, "chat"},
	} {
		t.Run(name, func(t *testing.T) {
			as := *d
			as.t = t
			as.refuses(http.StatusBadRequest, "BadRequest", c.words, c.method, c.path, c.body)
		})
	}
	d.refuses(http.StatusUnprocessableEntity, "Invalid", "blank", "POST", "/chats/c/messages", `{"content":" "}`)
	d.refuses(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "", "POST", "/chats/c/messages",
		`{"content":"`+strings.Repeat("a", 4<<20)+`"}`)
}

func TestNoMoreRequestsAreUnderWayThanThereMayBe(t *testing.T) {
	arrived, leave := make(chan struct{}, 1), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-leave
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"ChatList","apiVersion":"parley.dev/v1alpha1","items":[]}`)
	}))
	defer slow.Close()
	api, err := rest.NewClient(&restclient.Config{Host: slow.URL})
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, "parley-chat-user", func(o *rest.Options) { o.Requests, o.Client = 1, api })
	first := make(chan answer, 1)
	go func() { first <- d.ask("GET", "/chats", "") }()
	<-arrived
	got := d.refuses(http.StatusServiceUnavailable, "GatewayFull", "try again", "GET", "/chats", "")
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("the header is %v", got.header)
	}
	close(leave)
	if ended := <-first; ended.status != http.StatusOK {
		t.Errorf("the first ends with %s", ended.text)
	}
	d.does(http.StatusOK, "GET", "/chats", "")
}

func TestATokenIsSentNowhereElse(t *testing.T) {
	var stolen atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer thief.Close()
	server := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	api, err := rest.NewClient(&restclient.Config{Host: server.URL, BearerToken: "the gateway's own"})
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, "parley-chat-user", func(o *rest.Options) { o.Client = api })
	d.refuses(http.StatusServiceUnavailable, "APIServerUnavailable", "does not answer", "GET", "/chats", "")
	if stolen.Load() > 0 {
		t.Error("the request was sent elsewhere")
	}
	if _, err := api.Chats("ns").Get(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("without a caller: %v", err)
	}
}

func TestTheDescriptionInOpenAPIIsThatOfTheDocs(t *testing.T) {
	_, description := rest.New(rest.Options{})
	want, err := rest.Description(description)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Clean(testcluster.Path("docs", "gateway-openapi.json")))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/gateway-openapi.json is not what the code says (%v): run make generate", err)
	}
}
