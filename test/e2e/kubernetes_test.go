// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/modelserver"
)

// fixes is a model that looks around, changes a Deployment and deletes a ConfigMap.
func fixes() modelserver.Script {
	batch := func(results int, calls ...modelserver.Step) modelserver.Rule {
		return modelserver.Rule{Match: modelserver.Match{LastUserText: "fix it", ToolResults: &results},
			Reply: modelserver.Reply{Steps: calls}}
	}
	return modelserver.Script{Rules: []modelserver.Rule{
		batch(0, modelserver.Call("k8s_describe", `{"resource":"deploy","name":"web"}`),
			modelserver.Call("k8s_list", `{"resource":"pods"}`), modelserver.Call("k8s_logs", `{"pod":"model"}`),
			modelserver.Call("k8s_events", `{"resource":"pods","name":"model"}`),
			modelserver.Call("k8s_get", `{"resource":"secrets","name":"model"}`)),
		batch(5, modelserver.Call("k8s_apply", `{"manifest":"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, `+
			`spec: {minReadySeconds: 7}}"}`)),
		batch(6, modelserver.Call("k8s_delete", `{"resource":"configmaps","name":"old"}`)),
		{Reply: say("Done.")},
	}}
}

// fixLength is how many messages that makes: the prompt and its answer, what a person says, three replies with calls,
// and their results, of which those that people have approved have a message for the question before; and the last
// reply.
const fixLength = 2 + 1 + 2 + 3 + 3 + 1

// setUp runs the commands of the page as an administrator does, in this namespace.
func (w *world) setUp() {
	w.t.Helper()
	page, err := os.ReadFile(testcluster.Path("docs", "how-to", "kubernetes.md"))
	check.OK(w.t, err)
	_, section, _ := strings.Cut(string(page), "## Set it up\n")
	section, _, _ = strings.Cut(section, "\n`config/samples")
	var script strings.Builder
	here := strings.NewReplacer("-n team", "-n "+w.ns, "team:", w.ns+":", "namespace: team", "namespace: "+w.ns)
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			script.WriteString(here.Replace(command))
		}
	}
	cmd := exec.CommandContext(w.t.Context(), "/bin/sh", "-ec", "kubectl() { "+cmp.Or(os.Getenv("KUBECTL"), "kubectl")+
		` "$@"; }`+"\n"+script.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %v\n%s", script.String(), err, out)
	}
}

// toFix is what the model finds.
func (w *world) toFix() {
	w.t.Helper()
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: w.meta("web"), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/web:1"}}}},
	}}
	w.create(web)
	w.eventually("the cluster has rolled web out", func() bool { return rolledOut(w.t, web) })
	w.create(&corev1.ConfigMap{ObjectMeta: w.meta("old")})
	// The page lets its account delete nothing.
	w.create(&rbacv1.Role{ObjectMeta: w.meta("fixer-delete"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "delete"}}}})
	w.create(&rbacv1.RoleBinding{ObjectMeta: w.meta("fixer-delete"),
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "fixer", Namespace: w.ns}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "fixer-delete"}})
}

// rolledOut reports whether the cluster's own controller has written all that it writes of a Deployment without pods:
// the model reads it.
func rolledOut(t *testing.T, d *appsv1.Deployment) bool {
	t.Helper()
	check.OK(t, c.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	return d.Annotations["deployment.kubernetes.io/revision"] != "" && d.Status.ObservedGeneration == d.Generation &&
		d.Status.TerminatingReplicas != nil &&
		slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentProgressing && c.Reason == "NewReplicaSetAvailable"
		})
}

func TestApprovedCallFixesDeploymentAsServiceAccount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kill  func(*world, *step)
		kills int
	}{
		"nothing is killed": {nothing, 0}, "the generator is killed in each step": {killGenerator, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.kills > 0 {
				localnode.Needed(t)
			}
			w := newWorld(t, fixes())
			w.toFix()
			w.setUp()
			w.ready("fix-web", 2)
			events := w.watch()
			w.say("fix-web", "go", "Then fix it.")
			killed := w.plays(events, "fix-web", func(length int64) bool { return length > 3 }, w.approved, c.kill)
			w.fixed(killed)
			if killed < c.kills {
				t.Errorf("it was killed in %d steps", killed)
			}
		})
	}
}

// approved approves the one call of the chat that waits, after a look at what it would do.
func (w *world) approved(chat *v1beta1.Chat) {
	w.t.Helper()
	calls := chat.Status.RequiresAction.ToolCalls
	if len(calls) != 1 || calls[0].ApprovalCause != v1beta1.ApprovalReviewRequired {
		w.t.Fatalf("people are asked for %+v", calls)
	}
	shown, err := w.plugin("calls", chat.Name).CombinedOutput()
	want := map[string]string{
		"k8s_apply": "| +  minReadySeconds: 7", "k8s_delete": "| delete v1 ConfigMap old",
	}[calls[0].Name]
	if err != nil || !strings.Contains(string(shown), want) ||
		!strings.Contains(string(shown), "| As service account fixer of namespace "+w.ns) {
		w.t.Errorf("kubectl chat calls shows %s, %v", shown, err)
	}
	w.approve(chat)
}

// fixed checks what the model was told, and what became of the objects.
func (w *world) fixed(killed int) {
	w.t.Helper()
	chat := w.chat("fix-web")
	check.Equal(w.t, "the history", fixLength, chat.Status.History.Length)
	results := map[string]v1beta1.ToolResult{}
	for _, r := range w.results("fix-web") {
		results[r.Name] = r
	}
	for name, want := range map[string]string{
		"k8s_describe": "kind: Deployment", "k8s_list": "model", "k8s_logs": `"lines":`, "k8s_events": "Pod/model",
	} {
		if r := results[name]; r.IsError || !strings.Contains(r.Output, want) {
			w.t.Errorf("%s returned %+v", name, r)
		}
	}
	if r := results["k8s_get"]; !r.IsError || !strings.Contains(r.Output, w.ns+`:fixer" cannot get resource "secrets"`) {
		w.t.Errorf("the Secret that it may not read: %+v", r)
	}
	for name, outcomes := range map[string][]string{
		"k8s_apply": {"changed", "unchanged"}, "k8s_delete": {"deleted", "gone"},
	} {
		r := results[name]
		is := func(outcome string) bool { return strings.Contains(r.Output, `"outcome":"`+outcome+`"`) }
		if r.IsError || !slices.ContainsFunc(outcomes, is) || killed == 0 && !is(outcomes[0]) {
			w.t.Errorf("%s returned %+v", name, r)
		}
	}
	var web appsv1.Deployment
	check.OK(w.t, c.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: "web"}, &web))
	if web.Spec.MinReadySeconds != 7 || !slices.ContainsFunc(web.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == "parley" && f.Operation == metav1.ManagedFieldsOperationApply
	}) {
		w.t.Errorf("the Deployment is %+v", web)
	}
	if !w.gone(&corev1.ConfigMap{ObjectMeta: w.meta("old")}) {
		w.t.Error("the ConfigMap is still there")
	}
}
