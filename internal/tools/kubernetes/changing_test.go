// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/waiting"
)

// setting is a ConfigMap with one value, as a manifest.
func setting(name, value string) string {
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {k: " + value + "}\n"
	return `{"manifest":` + jsonString(manifest) + `}`
}

// value is that of a ConfigMap; empty if there is none.
func (s *scene) value(name string) string {
	s.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: s.meta(name)}
	s.read(o)
	return o.Data["k"]
}

func (s *scene) outcomes(tool, input string) (outcomes []string) {
	s.t.Helper()
	var got applyResult
	s.must(tool, input, &got)
	for _, o := range got.Objects {
		outcomes = append(outcomes, o.Outcome)
	}
	return outcomes
}

// changesIt changes an object as somebody else does.
func (s *scene) changesIt(o client.Object, body string) {
	s.t.Helper()
	err := cluster.Client.Patch(s.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(body)),
		client.FieldOwner("somebody"))
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestChangeIsAppliedAfterUserApprovesDiff(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
	create := setting("a", "one")
	q := s.asks("k8s_apply", create)
	if !strings.Contains(q.Proposal, "As service account worker of namespace "+s.ns) ||
		!strings.Contains(q.Proposal, "create v1 ConfigMap a in namespace "+s.ns) ||
		!strings.Contains(q.Proposal, "+  k: one") {
		t.Errorf("people are asked\n%s", q.Proposal)
	}
	if s.value("a") != "" {
		t.Fatal("it was done before anybody approved it")
	}
	s.decide(q, true, "")
	if got := s.outcomes("k8s_apply", create); got[0] != "created" || s.value("a") != "one" {
		t.Errorf("it was %v", got)
	}

	change := setting("a", "two")
	q = s.asks("k8s_apply", change)
	if !strings.Contains(q.Proposal, "change v1 ConfigMap a") || !strings.Contains(q.Proposal, "-  k: one\n+  k: two") {
		t.Errorf("people are asked\n%s", q.Proposal)
	}
	s.decide(q, true, "")
	if got := s.outcomes("k8s_apply", change); got[0] != "changed" || s.value("a") != "two" {
		t.Errorf("it was %v", got)
	}
	o := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	if s.read(o); len(o.ManagedFields) == 0 || o.ManagedFields[0].Manager != "parley" {
		t.Errorf("its fields are managed by %+v", o.ManagedFields)
	}
}

func TestADeniedChangeIsNotMade(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
	s.decide(s.asks("k8s_apply", setting("a", "one")), false, "not today")
	s.fails("k8s_apply", setting("a", "one"), "A person denied this change", "not today")
	if s.value("a") != "" {
		t.Error("it was made")
	}
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("b"), Data: map[string]string{"k": "v"}})
	s.decide(s.asks("k8s_delete", `{"resource":"cm","name":"b"}`), false, "")
	s.fails("k8s_delete", `{"resource":"cm","name":"b"}`, "A person denied this change")
	if s.value("b") != "v" {
		t.Error("it was deleted")
	}
}

func TestRetriedApprovedCallIsIdempotent(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
	input := setting("a", "one")
	s.decide(s.asks("k8s_apply", input), true, "")
	s.outcomes("k8s_apply", input)
	o := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	s.read(o)
	version := o.ResourceVersion
	s.again = true
	if got := s.outcomes("k8s_apply", input); got[0] != "unchanged" {
		t.Errorf("made again, it was %v", got)
	}
	if s.read(o); o.ResourceVersion != version {
		t.Error("made again, it wrote again")
	}

	s.again = false
	input = `{"resource":"cm","name":"a"}`
	q := s.asks("k8s_delete", input)
	s.decide(q, true, "")
	var gone deleteResult
	if s.must("k8s_delete", input, &gone); gone.Outcome != "deleted" {
		t.Errorf("the object is %s", gone.Outcome)
	}
	s.again = true
	if s.must("k8s_delete", input, &gone); gone.Outcome != "gone" {
		t.Errorf("made again, the object is %s", gone.Outcome)
	}
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a"), Data: map[string]string{"k": "another"}})
	s.fails("k8s_delete", input, "changed since it was shown to a person")
	if s.value("a") != "another" {
		t.Error("another object of the name was deleted")
	}
}

func TestObjectChangedAfterReviewIsNotModified(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a"), Data: map[string]string{"k": "v", "other": "1"}})
	patch := `{"manifest":"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {new: x}}"}`
	apply, remove := s.asks("k8s_apply", patch), s.asks("k8s_delete", `{"resource":"cm","name":"a"}`)
	created := s.asks("k8s_apply", setting("b", "mine"))

	o := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	s.changesIt(o, `{"data":{"other":"2"}}`)
	s.decide(apply, true, "")
	s.fails("k8s_apply", patch, "changed since it was shown to a person")
	s.decide(remove, true, "")
	s.fails("k8s_delete", `{"resource":"cm","name":"a"}`, "changed since it was shown to a person")
	if s.read(o); o.Data["new"] != "" || o.Data["other"] != "2" {
		t.Errorf("it holds %v", o.Data)
	}

	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("b"), Data: map[string]string{"theirs": "1"}})
	s.decide(created, true, "")
	s.fails("k8s_apply", setting("b", "mine"), "changed since it was shown to a person")
	if s.value("b") != "" {
		t.Error("an object that somebody else has created was changed")
	}
}

func TestANewStatusIsNoChange(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("apps", "deployments"))
	s.create(s.deployment("web", 1))
	input := `{"manifest":"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {paused: true}}"}`
	s.decide(s.asks("k8s_apply", input), true, "")
	o := &appsv1.Deployment{ObjectMeta: s.meta("web")}
	s.read(o)
	o.Status.ObservedGeneration, o.Status.Replicas = 1, 1
	if err := cluster.Client.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := s.outcomes("k8s_apply", input); got[0] != "changed" {
		t.Errorf("it was %v", got)
	}
	if s.read(o); !o.Spec.Paused || *o.Spec.Replicas != 1 || o.Status.Replicas != 1 {
		t.Errorf("it is %+v", o)
	}
}

func TestApprovalIsInvalidForAnotherServiceAccount(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
	s.decide(s.asks("k8s_apply", setting("a", "one")), true, "")
	s.create(&corev1.ServiceAccount{ObjectMeta: s.meta("other")})
	s.grant("other", all("", "configmaps"))
	kubectl(t, "kubectl -n "+s.ns+` patch role parley-generation --type json -p '[{"op":"add",`+
		`"path":"/rules/0/resourceNames/-","value":"other"}]'`)
	s.chat.Spec.Kubernetes.ServiceAccountName = "other"
	waiting.Until(t, time.Minute, "the grant", func() bool { return Unavailable(t.Context(), s.client(), s.chat) == nil })
	s.fails("k8s_apply", setting("a", "one"), "changed since it was shown")
	if s.value("a") != "" {
		t.Error("another account did it")
	}
}

func TestApplyTakesOverForeignFieldsOnlyWithForce(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a"), Data: map[string]string{"k": "first"}})
	s.changesIt(&corev1.ConfigMap{ObjectMeta: s.meta("a")}, `{"data":{"k":"theirs"}}`)
	s.fails("k8s_apply", setting("a", "mine"), `conflict with "somebody"`, "call again with force")
	forced := strings.TrimSuffix(setting("a", "mine"), "}") + `,"force":true}`
	q := s.asks("k8s_apply", forced)
	if !strings.Contains(q.Proposal, `take fields over from others: conflict with "somebody" using v1: .data.k`) {
		t.Errorf("people are asked\n%s", q.Proposal)
	}
	s.decide(q, true, "")
	if got := s.outcomes("k8s_apply", forced); got[0] != "changed" || s.value("a") != "mine" {
		t.Errorf("it was %v", got)
	}
}

func TestADeletedServiceAccountIsNoDeletedObject(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a")})
	input := `{"resource":"cm","name":"a"}`
	s.decide(s.asks("k8s_delete", input), true, "")
	if err := cluster.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: s.meta("worker")}); err != nil {
		t.Fatal(err)
	}
	waiting.Until(t, time.Minute, "its token is refused", func() bool {
		_, err := s.run("k8s_get", input)
		return err != nil
	})
	s.fails("k8s_delete", input, "there is no token of service account worker")
}

func TestManifestWithSeveralObjectsRequestsSingleApproval(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a"), Data: map[string]string{"k": "one"}})
	both := `{"manifest":` + jsonString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: one}\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: two}\n---\n") + `}`
	q := s.asks("k8s_apply", both)
	if !strings.Contains(q.Proposal, "leave v1 ConfigMap a") || !strings.Contains(q.Proposal, "create v1 ConfigMap b") {
		t.Errorf("people are asked\n%s", q.Proposal)
	}
	s.decide(q, true, "")
	if got := s.outcomes("k8s_apply", both); got[0] != "unchanged" || got[1] != "created" {
		t.Errorf("they were %v", got)
	}
}

func TestForbiddenChangeFailsWithoutAskingForApproval(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, reads("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a")})
	s.fails("k8s_apply", setting("a", "x"), "cannot patch resource")
	s.fails("k8s_apply", setting("b", "x"), "cannot create resource")
	s.fails("k8s_delete", `{"resource":"cm","name":"a"}`, "cannot delete resource")
	s.fails("k8s_delete", `{"resource":"cm","name":"none"}`, "not found")
	if s.asked != nil {
		t.Error("people were asked")
	}
}

func TestWithoutApprovalAChangeIsMadeAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithoutApproval, all("", "configmaps"))
	if got := s.outcomes("k8s_apply", setting("a", "one")); got[0] != "created" || s.value("a") != "one" {
		t.Errorf("it was %v", got)
	}
	if got := s.outcomes("k8s_apply", setting("a", "two")); got[0] != "changed" || s.value("a") != "two" {
		t.Errorf("then it was %v", got)
	}
	s.again = true
	s.fails("k8s_delete", `{"resource":"cm","name":"a"}`, "may have been deleted")
	s.again = false
	var gone deleteResult
	if s.must("k8s_delete", `{"resource":"cm","name":"a"}`, &gone); gone.Outcome != "deleted" || s.value("a") != "" {
		t.Errorf("it is %s", gone.Outcome)
	}
}

func TestAPolicyForToolsDemandsApprovalNonetheless(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithoutApproval, all("", "configmaps"))
	s.chat.Spec.Tools = &v1alpha1.ChatTools{ToolPolicy: v1alpha1.ToolPolicy{Approval: []v1alpha1.ToolPattern{"k8s_*"}}}
	s.asks("k8s_apply", setting("a", "one"))
	if s.value("a") != "" {
		t.Error("it was done")
	}
}

func TestADeletionSaysWhatBecomesOfTheRest(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
	o := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	o.Finalizers = []string{"example.dev/keep"}
	s.create(o)
	t.Cleanup(func() {
		_ = cluster.Client.Patch(context.WithoutCancel(t.Context()), o,
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	input := `{"resource":"cm","name":"a","propagation":"Orphan"}`
	q := s.asks("k8s_delete", input)
	if !strings.Contains(q.Proposal, "(propagation Orphan)") ||
		!strings.Contains(q.Proposal, "finalizers are done: example.dev/keep") {
		t.Errorf("people are asked\n%s", q.Proposal)
	}
	s.decide(q, true, "")
	var gone deleteResult
	for range 2 { // The second time it goes already.
		if s.must("k8s_delete", input, &gone); gone.Outcome != "deleting" {
			t.Errorf("it is %s", gone.Outcome)
		}
	}
}

func TestInvalidManifestIsRejectedWithHint(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("*", "*"))
	for manifest, words := range map[string]string{
		"":                                       "/manifest: must have at least 1 characters",
		"---":                                    "has no object",
		"a: [":                                   "neither YAML nor JSON",
		"- a":                                    "is no object",
		"{kind: ConfigMap, metadata: {name: a}}": "no apiVersion",
		"{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a}}":                   "generateName is not enough",
		"{apiVersion: v1, kind: List, items: []}":                                          "give its objects one by one",
		"{apiVersion: example.dev/v1, kind: None, metadata: {name: a}}":                    "no kind of objects",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dat: {}}":                  "unknown field",
		"{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: b}}":             "is in no namespace",
		"{apiVersion: parley.dev/v1alpha1, kind: ToolApproval, metadata: {name: a}}":       "people decide",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: none}}":          "cannot get resource",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: A_B}, data: {k: v}}":           "Invalid value",
		strings.Repeat("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n", 9): "at most 8",
	} {
		s.fails("k8s_apply", `{"manifest":`+jsonString(manifest)+`}`, words)
	}
	s.fails("k8s_apply", setting("a", strings.Repeat("x", 17000)), "Change less at once")
}

func TestWhatPeopleReadHidesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
	q := s.asks("k8s_apply", setting("a", "\"\u202e\\e[2Jhidden\""))
	if strings.ContainsAny(q.Proposal, "\u202e\x1b") || !strings.Contains(q.Proposal, `\u202e`) {
		t.Errorf("people are asked %q", q.Proposal)
	}
}

func TestProposalHasAllThatIsApplied(t *testing.T) {
	t.Parallel()
	const metadata = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
	for name, c := range map[string]struct{ manifest, shown string }{
		"an owner that looks like a Secret": {metadata + "  ownerReferences: [{apiVersion: v1, kind: Secret, name: gone, " +
			"uid: 4c3e0e5d-0000-4000-8000-000000000001}]\n", "uid: 4c3e0e5d-0000-4000-8000-000000000001"},
		"what kubectl apply has noted": {metadata + "  annotations: {kubectl.kubernetes.io/last-applied-configuration: " +
			"'{\"data\":{\"k\":\"x\"}}'}\n", "last-applied-configuration"},
		"a long run of spaces":    {metadata + "data: {k: \"a" + strings.Repeat(" ", 40) + "b\"}\n", `a\u0020\u0020`},
		"a space of another kind": {metadata + "data: {k: \"rm\u00a0-rf\"}\n", `rm\u00a0-rf`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("", "configmaps"))
			q := s.asks("k8s_apply", `{"manifest":`+jsonString(c.manifest)+`}`)
			if !strings.Contains(q.Proposal, c.shown) {
				t.Errorf("people are asked %q", q.Proposal)
			}
			s.decide(q, true, "")
			if got := s.outcomes("k8s_apply", `{"manifest":`+jsonString(c.manifest)+`}`); len(got) != 1 || got[0] != "created" {
				t.Errorf("the outcome is %v", got)
			}
		})
	}
}

func TestPodTemplateIsProposedWithItsAnnotations(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithApproval, all("apps", "deployments"))
	s.create(s.deployment("web", 1))
	q := s.asks("k8s_apply", `{"manifest":`+jsonString("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"+
		"spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: hidden}}}}\n")+`}`)
	if !strings.Contains(q.Proposal, "+        kubectl.kubernetes.io/last-applied-configuration: hidden") {
		t.Errorf("people are asked %s", q.Proposal)
	}
}

func TestAnObjectKeepsWhatOthersHaveSet(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1alpha1.ClusterChangesWithoutApproval, all("", "configmaps"))
	theirs := &corev1.ConfigMap{ObjectMeta: s.meta("a"), Data: map[string]string{"theirs": "1"}}
	theirs.Labels = map[string]string{"l": "1"}
	s.create(theirs)
	s.outcomes("k8s_apply", setting("a", "mine"))
	o := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	if s.read(o); o.Data["theirs"] != "1" || o.Labels["l"] != "1" || o.Data["k"] != "mine" {
		t.Errorf("it is %+v", o)
	}
}
