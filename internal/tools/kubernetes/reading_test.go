// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"parley.dev/parley/api/v1alpha1"
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
		if !strings.Contains(got.Object, "replicas: 2") || !strings.Contains(got.Object, "kind: Deployment") ||
			strings.Contains(got.Object, "managedFields") {
			t.Errorf("by %s it is\n%s", name, got.Object)
		}
	}
}

func TestToolsAreLimitedToServiceAccountPermissions(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("apps", "deployments"))
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

func TestNoNameIsAPath(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("*", "*"))
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
		for changes, on := range map[v1alpha1.ClusterChanges]bool{
			"": !changing, v1alpha1.ClusterChangesDenied: !changing,
			v1alpha1.ClusterChangesWithApproval: true, v1alpha1.ClusterChangesWithoutApproval: true,
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
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+file, "PATH="+os.Getenv("KUBEBUILDER_ASSETS")+":"+os.Getenv("PATH"),
		"KUBECACHEDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

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
		why.Reason != v1alpha1.KubernetesTokenForbidden || !strings.Contains(why.Message, "kubectl create role") {
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
	s.chat.Spec.Kubernetes.ServiceAccountName = "nobody"
	s.fails("k8s_get", `{"resource":"cm","name":"a"}`, "no token of service account nobody", "not found")
	if why := Unavailable(t.Context(), s.client(), s.chat); why == nil || why.Reason != v1alpha1.KubernetesTokenFailed ||
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
	if lines := strings.Split(first.Table, "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "NAME  READY  STATUS") ||
		!strings.HasPrefix(lines[1], "a     0/1    Pending") || first.Count != 2 || first.Continue == "" ||
		*first.Remaining != 1 {
		t.Errorf("the first page is %+v", first)
	}
	s.must("k8s_list", `{"resource":"po","limit":2,"continue":`+jsonString(first.Continue)+`}`, &next)
	if next.Count != 1 || next.Continue != "" || !strings.Contains(next.Table, "\nc ") {
		t.Errorf("the next page is %+v", next)
	}
	s.must("k8s_list", `{"resource":"po","wide":true,"label_selector":"n in (b)","field_selector":"metadata.name=b"}`,
		&selected)
	if selected.Count != 1 || !strings.Contains(selected.Table, "NOMINATED NODE") ||
		!strings.Contains(selected.Table, "\nb ") {
		t.Errorf("what is selected is %+v", selected)
	}
	var none listResult
	if s.must("k8s_list", `{"resource":"cm","label_selector":"none=here"}`, &none); none.Count != 0 {
		t.Errorf("of none there are %+v", none)
	}
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
	if !strings.HasPrefix(got.Table, "NAMESPACE") || !strings.Contains(got.Table, s.ns) {
		t.Errorf("it says\n%s", got.Table)
	}
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
	if len(all.Events) != 3 || !strings.HasPrefix(all.Events[0].Message, "new") || all.Events[1].Message != "of another" ||
		all.Events[2].Count != 3 || all.Events[0].About != "Pod/a" {
		t.Errorf("the events are %+v", all)
	}
	if strings.ContainsRune(all.Events[0].Message, '\x1b') {
		t.Errorf("a message of an event says %q", all.Events[0].Message)
	}
	s.must("k8s_events", `{"resource":"pod","name":"b"}`, &one)
	if len(one.Events) != 1 || one.Events[0].Message != "of another" {
		t.Errorf("the events about b are %+v", one)
	}
	s.must("k8s_events", `{"limit":1}`, &cut)
	if len(cut.Events) != 1 || cut.Older != 2 {
		t.Errorf("the newest event is %+v", cut)
	}
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
	if !strings.Contains(got.Object, "replicas: 1") || !strings.Contains(got.Pods, "web-1") ||
		strings.Contains(got.Pods, "other") {
		t.Errorf("the description is %+v", got)
	}
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "events: ") ||
		!strings.Contains(got.Notes[0], "cannot list") {
		t.Errorf("of the events that it may not read it says %q", got.Notes)
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
