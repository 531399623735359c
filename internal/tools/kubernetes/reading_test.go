// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

func TestGetAcceptsAnyResourceNameForm(t *testing.T) {
	t.Parallel()
	s := newScene(t, "", all("apps", "deployments"))
	s.create(s.deployment("web", 2))
	for _, name := range []string{"deployments", "deployment", "Deployment", "deploy", "deployments.apps",
		"deployments.v1.apps"} {
		var got getResult
		s.must("k8s_get", `{"resource":"`+name+`","name":"web"}`, &got)
		check.Contains(t, got.Object, "replicas: 2", "kind: Deployment")
		check.Lacks(t, got.Object, "managedFields")
	}
}

// Security (a model that works in the cluster): can read whatever the account may, including logs, and disclose it to
// whoever reads the chat.
func TestToolsAreLimitedToServiceAccountPermissions(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("apps", "deployments"))
	worker := `User "system:serviceaccount:` + s.ns + `:worker" cannot `
	for _, call := range []struct{ tool, input, words string }{
		{"k8s_get", `{"resource":"configmaps","name":"a"}`, worker + "get resource"},
		{"k8s_get", `{"resource":"deployments","name":"a","namespace":"kube-system"}`, worker + "get resource"},
		{"k8s_get", `{"resource":"nodes","name":"a"}`, worker + "get resource"},
		{"k8s_list", `{"resource":"deployments","all_namespaces":true}`, worker + "list resource"},
		{"k8s_describe", `{"resource":"secrets","name":"a"}`, worker + "get resource"},
		{"k8s_events", `{}`, worker + "list resource"},
		{"k8s_logs", `{"pod":"a"}`, worker + "get resource"},
		{"k8s_delete", `{"resource":"pods","name":"a"}`, worker + "get resource"},
		{"k8s_apply", `{"manifest":"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"}`, worker + "get resource"},
	} {
		t.Run(call.tool, func(*testing.T) { s.fails(call.tool, call.input, call.words) })
	}
}

// Security (a model that works in the cluster): cannot reach another path of the API server by a name, a namespace or a
// kind, nor a subresource except logs. Also TestNoSegmentLeadsElsewhere of internal/kube/kubeapi.
func TestNoNameIsAPath(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("*", "*"))
	for _, call := range []struct{ tool, input, words string }{
		{"k8s_get", `{"resource":"configmaps","name":"../secrets/a"}`, "cannot be part of a path"},
		{"k8s_get", `{"resource":"configmaps","name":".."}`, "cannot be part of a path"},
		{"k8s_get", `{"resource":"configmaps","name":"a%2fb"}`, "cannot be part of a path"},
		{"k8s_get", `{"resource":"configmaps","name":"a","namespace":"x/secrets"}`, "cannot be part of a path"},
		{"k8s_get", `{"resource":"pods/log","name":"a"}`, "no kind of objects"},
		{"k8s_get", `{"resource":"../secrets","name":"a"}`, "no kind of objects"},
		{"k8s_get", `{"resource":"serviceaccounts/token","name":"worker"}`, "no kind of objects"},
		{"k8s_list", `{"resource":"configmaps","namespace":".."}`, "cannot be part of a path"},
		{"k8s_logs", `{"pod":"a/exec"}`, "cannot be part of a path"},
		{"k8s_events", `{"namespace":"a/b"}`, "cannot be part of a path"},
		{"k8s_delete", `{"resource":"pods","name":"a/b"}`, "cannot be part of a path"},
		{"k8s_apply", `{"manifest":"{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}"}`, "cannot be part of a path"},
		{"k8s_apply", `{"manifest":"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ../b}}"}`,
			"cannot be part of a path"},
	} {
		t.Run(call.tool+" "+call.input, func(*testing.T) { s.fails(call.tool, call.input, call.words) })
	}
}

func TestChatWithoutServiceAccountGetsNoKubernetesTools(t *testing.T) {
	t.Parallel()
	s := newScene(t, "")
	for name, tool := range s.all {
		enabledFor := tool.Definition().EnabledFor
		changing := name == "k8s_apply" || name == "k8s_delete"
		with := s.chat.DeepCopy()
		for changes, on := range map[v1beta1.ClusterChanges]bool{
			"": !changing, v1beta1.ClusterChangesDenied: !changing,
			v1beta1.ClusterChangesWithApproval: true, v1beta1.ClusterChangesWithoutApproval: true,
		} {
			if with.Spec.Kubernetes.Changes = changes; enabledFor(with) != on {
				t.Errorf("with changes %q %s is offered: %t", changes, name, !on)
			}
		}
		if with.Spec.Kubernetes = nil; enabledFor(with) {
			t.Errorf("%s is offered to a chat without a service account", name)
		}
	}
}

// kubectl runs commands for people, as an administrator.
func kubectl(t *testing.T, script string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	c := clientcmdapi.NewConfig()
	c.Clusters["own"] = &clientcmdapi.Cluster{Server: cluster.Config.Host, CertificateAuthorityData: cluster.Config.CAData}
	c.AuthInfos["own"] = &clientcmdapi.AuthInfo{ClientCertificateData: cluster.Config.CertData,
		ClientKeyData: cluster.Config.KeyData}
	c.Contexts["own"] = &clientcmdapi.Context{Cluster: "own", AuthInfo: "own"}
	c.CurrentContext = "own"
	check.OK(t, clientcmd.WriteToFile(*c, file))
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+file, "PATH="+os.Getenv("KUBEBUILDER_ASSETS")+":"+os.Getenv("PATH"),
		"KUBECACHEDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// Security (a model that works in the cluster): cannot act as any account of a namespace that does not grant its
// generation pods tokens of it. Also TestGenerationPodCannotRequestTokenOfAnotherAccount of test/admission.
func TestMissingTokenGrantErrorListsCommandsToFix(t *testing.T) {
	t.Parallel()
	s := ungranted(t, "")
	s.grant("worker", reads("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a"), Data: map[string]string{"k": "v"}})
	const input = `{"resource":"cm","name":"a"}`
	_, err := s.run("k8s_get", input)
	if err == nil || !strings.Contains(err.Error(), "kubectl create role") {
		t.Fatalf("it says %v", err)
	}
	if why := Unavailable(t.Context(), s.client(), s.chat); why == nil ||
		why.Reason != v1beta1.KubernetesTokenForbidden || !strings.Contains(why.Message, "kubectl create role") {
		t.Errorf("people read %+v", why)
	}
	_, commands, _ := strings.Cut(err.Error(), "lets them by: ")
	kubectl(t, commands)
	waiting.Until(t, time.Minute, "the object can be read", func() bool { // The authorizer sees the Role a moment later.
		_, err := s.run("k8s_get", input)
		return err == nil
	})
	if why := Unavailable(t.Context(), s.client(), s.chat); why != nil {
		t.Errorf("then people read %+v", why)
	}
}

func TestAnAccountThatDoesNotExistIsNamed(t *testing.T) {
	t.Parallel()
	s := ungranted(t, "")
	s.grant("parley-generation", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
		Verbs: []string{"create"}})
	s.chat.Spec.Kubernetes.ServiceAccountName = "none"
	s.fails("k8s_get", `{"resource":"cm","name":"a"}`, "no token of service account none", "not found")
	if why := Unavailable(t.Context(), s.client(), s.chat); why == nil || why.Reason != v1beta1.KubernetesTokenFailed ||
		!strings.Contains(why.Message, "not found") {
		t.Errorf("people read %+v", why)
	}
}

func TestListsArePrintedAsKubectlPrintsThem(t *testing.T) {
	t.Parallel()
	s := newScene(t, "", reads("", "pods", "configmaps"))
	for _, name := range []string{"a", "b", "c"} {
		s.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Labels: map[string]string{"n": name}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}}})
	}
	var first, next, selected listResult
	s.must("k8s_list", `{"resource":"po","limit":2}`, &first)
	check.InOrder(t, first.Table, "NAME  READY  STATUS", "\na     0/1    Pending", "\nb ")
	check.Equal(t, "first page", listResult{Table: first.Table, Count: 2, Continue: first.Continue,
		Remaining: new(int64(1))}, first)
	s.must("k8s_list", `{"resource":"po","limit":2,"continue":`+jsonString(first.Continue)+`}`, &next)
	check.Contains(t, next.Table, "\nc ")
	check.Equal(t, "next page", listResult{Table: next.Table, Count: 1}, next)
	s.must("k8s_list", `{"resource":"po","wide":true,"label_selector":"n in (b)","field_selector":"metadata.name=b"}`,
		&selected)
	check.Equal(t, "selected", 1, selected.Count)
	check.InOrder(t, selected.Table, "NOMINATED NODE", "\nb ")
	var none listResult
	s.must("k8s_list", `{"resource":"cm","label_selector":"none=here"}`, &none)
	check.Equal(t, "none", 0, none.Count)
}

func TestAListOfAllNamespacesNamesThem(t *testing.T) {
	t.Parallel()
	s := newScene(t, "", reads("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("mine")})
	cluster.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.ns}, Rules: []rbacv1.PolicyRule{
		reads("", "configmaps")}})
	cluster.Create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: s.ns + "-own"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "worker", Namespace: s.ns}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.ns}})
	waiting.Until(t, time.Minute, "the account may list those of all namespaces", func() bool {
		_, err := s.run("k8s_list", `{"resource":"cm","all_namespaces":true}`)
		return err == nil
	})
	var got listResult
	s.must("k8s_list", `{"resource":"cm","all_namespaces":true,"field_selector":"metadata.name=mine"}`, &got)
	check.InOrder(t, got.Table, "NAMESPACE", s.ns)
}

// event is one about a pod, seen so long ago.
func (s *scene) event(name, pod, message string, ago time.Duration) {
	s.t.Helper()
	s.create(&corev1.Event{ObjectMeta: s.meta(name), Reason: "Because", Type: "Warning", Message: message, Count: 3,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.ns, Name: pod},
		LastTimestamp:  metav1.NewTime(time.Now().Add(-ago))})
}

func TestEventsComeTheNewestFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t, "", reads("", "events", "pods"))
	s.event("e1", "a", "old", 2*time.Hour)
	s.event("e2", "a", "new\x1b[2J", time.Minute)
	s.event("e3", "b", "of another", time.Hour)
	var all, one, cut eventsResult
	s.must("k8s_events", `{}`, &all)
	line := func(about, message string) eventLine {
		return eventLine{Count: 3, Type: "Warning", Reason: "Because", About: about, Message: message}
	}
	check.Equal(t, "events", []eventLine{line("Pod/a", "new [2J"), line("Pod/b", "of another"), line("Pod/a", "old")},
		all.Events, cmpopts.IgnoreFields(eventLine{}, "Last"))
	s.must("k8s_events", `{"resource":"pod","name":"b"}`, &one)
	check.Equal(t, "events about b", all.Events[1:2], one.Events)
	s.must("k8s_events", `{"limit":1}`, &cut)
	check.Equal(t, "newest event", eventsResult{Events: all.Events[:1], Older: 2}, cut)
	s.fails("k8s_events", `{"name":"b"}`, "give resource and name, or neither")
}

func TestDescribeReturnsObjectEventsAndPods(t *testing.T) {
	t.Parallel()
	s := newScene(t, "", reads("apps", "deployments"), reads("", "pods"))
	s.create(s.deployment("web", 1))
	pod := &corev1.Pod{ObjectMeta: s.meta("web-1"),
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "m", Image: "x"}}}}
	other := pod.DeepCopy()
	pod.Labels, other.Name = map[string]string{"app": "web"}, "other"
	s.create(pod)
	s.create(other)
	var got describeResult
	s.must("k8s_describe", `{"resource":"deploy","name":"web"}`, &got)
	check.Contains(t, got.Object, "replicas: 1")
	check.Contains(t, got.Pods, "web-1")
	check.Lacks(t, got.Pods, "other")
	check.Equal(t, "number of notes", 1, len(got.Notes))
	check.InOrder(t, got.Notes[0], "events: ", "cannot list")
}

func TestDescriptionFitsASmallContext(t *testing.T) {
	t.Parallel()
	s := newScene(t, "", reads("apps", "deployments"), reads("", "pods", "events"))
	s.chat.Status.Context = &v1beta1.ContextStatus{Limit: 8192}
	s.create(s.deployment("web", 1))
	for i := range describedPods {
		pod := &corev1.Pod{ObjectMeta: s.meta(fmt.Sprintf("web-%d-%s", i, strings.Repeat("x", 200))),
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "m", Image: "x"}}}}
		pod.Labels = map[string]string{"app": "web"}
		s.create(pod)
	}
	for i := range describedEvents {
		s.create(&corev1.Event{ObjectMeta: s.meta(fmt.Sprint("e", i)), Message: strings.Repeat("long ", 200),
			InvolvedObject: corev1.ObjectReference{Kind: "Deployment", Namespace: s.ns, Name: "web"}})
	}
	var got describeResult
	s.must("k8s_describe", `{"resource":"deploy","name":"web"}`, &got)
	check.Contains(t, got.Object, "replicas: 1")
	check.Contains(t, got.Pods, "web-0-", "bytes left out")
	if n := len(got.Events); n == 0 || n == describedEvents {
		t.Errorf("%d events are shown", n)
	}
}

func TestALargeObjectIsCut(t *testing.T) {
	t.Parallel()
	s := newScene(t, "", reads("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("big"), Data: map[string]string{"a": strings.Repeat("<\"&\n", 100_000)}})
	said, err := s.run("k8s_get", `{"resource":"cm","name":"big"}`)
	if err != nil || len(said) > 64<<10 || len(said) < 32<<10 || !strings.Contains(said, "bytes left out") {
		t.Errorf("of 400 KB %d bytes are shown: %v", len(said), err)
	}
}

// logging is a chat whose API server answers each request for logs so: that of the tests has no nodes.
func logging(t *testing.T, handler http.HandlerFunc) func(input string) (logsResult, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := kubeapi.New(&rest.Config{Host: server.URL},
		func(context.Context, string) (string, time.Time, error) { return "t", time.Now().Add(time.Hour), nil }, time.Now)
	check.OK(t, err)
	chat := chattest.In("team", chattest.Chat("c"))
	chat.Spec.Kubernetes = &v1beta1.KubernetesAccess{ServiceAccountName: "worker"}
	return func(input string) (got logsResult, err error) {
		said, err := newTool(client, logsDefinition, logs).Run(t.Context(),
			tools.Call{ToolCall: v1beta1.ToolCall{Input: input}, Chat: chat})
		if err == nil {
			err = json.Unmarshal([]byte(said), &got)
		}
		return got, err
	}
}

func TestTheNewestLinesOfAContainerAreRead(t *testing.T) {
	var path, query string
	read := logging(t, func(w http.ResponseWriter, r *http.Request) {
		path, query = r.URL.Path, r.URL.RawQuery
		fmt.Fprint(w, "one\ntwo \xff\n")
	})
	got, err := read(`{"pod":"web-1"}`)
	check.OK(t, err)
	check.Equal(t, "logs", logsResult{Lines: "one\ntwo \uFFFD\n"}, got)
	if path != "/api/v1/namespaces/team/pods/web-1/log" || query != "limitBytes=4194304&tailLines=200" {
		t.Errorf("it asks for %s?%s", path, query)
	}
	_, err = read(`{"pod":"web-1","namespace":"other","container":"main","previous":true,"tail_lines":7,` +
		`"since_seconds":60,"timestamps":true}`)
	if err != nil || path != "/api/v1/namespaces/other/pods/web-1/log" ||
		query != "container=main&limitBytes=4194304&previous=true&sinceSeconds=60&tailLines=7&timestamps=true" {
		t.Errorf("it asks for %s?%s: %v", path, query, err)
	}
}

func TestOfManyLinesTheNewestAreShown(t *testing.T) {
	size := 0
	read := logging(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range size / 10 {
			fmt.Fprintf(w, "line %04d\n", i%10000)
		}
	})
	size = 1 << 20
	got, err := read(`{"pod":"web-1"}`)
	if err != nil || !got.Cut || got.Newest || len(got.Lines) < 8<<10 || len(got.Lines) > tools.MaxResultBytes ||
		!strings.HasPrefix(got.Lines, "line ") || !strings.HasSuffix(got.Lines, "line 4856\n") {
		t.Errorf("of 1 MiB it says %d bytes, %t, %t, %v", len(got.Lines), got.Cut, got.Newest, err)
	}
	size = maxLogBytes + 10
	if got, err = read(`{"pod":"web-1"}`); err != nil || !got.Newest {
		t.Errorf("where the API server leaves lines out it says %t, %v", got.Newest, err)
	}
	size = kubeapi.MaxAnswer * 2
	if _, err = read(`{"pod":"web-1"}`); err == nil || !strings.Contains(err.Error(), "ask for less") {
		t.Errorf("of too much it says %v", err)
	}
}

func TestLogsErrorOfAPIServerIsReturned(t *testing.T) {
	read := logging(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"kind":"Status","status":"Failure","code":400,"reason":"BadRequest",`+
			`"message":"a container name must be specified for pod web-1, choose one of: [a\u001b[2J b]"}`)
	})
	_, err := read(`{"pod":"web-1"}`)
	if err == nil || !strings.Contains(err.Error(), "choose one of: [a") || strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("it says %v", err)
	}
}
