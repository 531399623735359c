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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// setting is a ConfigMap with one value, as a manifest.
func setting(name, value string) string {
	return manifestOf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {k: " + value + "}\n")
}

// manifestOf are arguments of k8s_apply.
func manifestOf(manifest string) string { return `{"manifest":` + jsonString(manifest) + `}` }

// value is that of a ConfigMap; empty if there is none.
func (s *scene) value(name string) string {
	s.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: s.meta(name)}
	s.read(o)
	return o.Data["k"]
}

// holds checks the value of a ConfigMap.
func (s *scene) holds(name, want string) {
	s.t.Helper()
	check.Equal(s.t, name, want, s.value(name))
}

// applies makes a call that must have these outcomes.
func (s *scene) applies(input string, want ...string) {
	s.t.Helper()
	var got applyResult
	s.must("k8s_apply", input, &got)
	var outcomes []string
	for _, o := range got.Objects {
		outcomes = append(outcomes, o.Outcome)
	}
	check.Equal(s.t, "outcomes", want, outcomes)
}

// deletes makes a call that must have this outcome.
func (s *scene) deletes(input, want string) {
	s.t.Helper()
	var got deleteResult
	s.must("k8s_delete", input, &got)
	check.Equal(s.t, "outcome", want, got.Outcome)
}

// changesIt changes an object as another client does.
func (s *scene) changesIt(o client.Object, body string) {
	s.t.Helper()
	err := cluster.Client.Patch(s.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(body)),
		client.FieldOwner("another"))
	check.OK(s.t, err)
}

// Security (a model that works in the cluster): cannot change what a person has not approved, unless changes allows it,
// nor more or something else than they have seen. Also TestObjectChangedAfterReviewIsNotModified,
// TestApplyTakesOverForeignFieldsOnlyWithForce, TestAPolicyForToolsDemandsApprovalNonetheless of
// internal/tools/kubernetes.
func TestChangeIsAppliedAfterUserApprovesDiff(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
	create := setting("a", "one")
	q := s.asks("k8s_apply", create)
	check.Contains(t, q.Proposal, "As service account worker of namespace "+s.ns,
		"create v1 ConfigMap a in namespace "+s.ns, "+  k: one")
	s.holds("a", "")
	s.decide(q, true, "")
	s.applies(create, "created")
	s.holds("a", "one")

	change := setting("a", "two")
	q = s.asks("k8s_apply", change)
	check.Contains(t, q.Proposal, "change v1 ConfigMap a", "-  k: one\n+  k: two")
	s.decide(q, true, "")
	s.applies(change, "changed")
	s.holds("a", "two")
	o := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	if s.read(o); len(o.ManagedFields) == 0 || o.ManagedFields[0].Manager != "parley" {
		t.Errorf("its fields are managed by %+v", o.ManagedFields)
	}
}

func TestADeniedChangeIsNotMade(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
	s.decide(s.asks("k8s_apply", setting("a", "one")), false, "not today")
	s.fails("k8s_apply", setting("a", "one"), "A person denied this change", "not today")
	s.holds("a", "")
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("b"), Data: map[string]string{"k": "v"}})
	s.decide(s.asks("k8s_delete", `{"resource":"cm","name":"b"}`), false, "")
	s.fails("k8s_delete", `{"resource":"cm","name":"b"}`, "A person denied this change")
	s.holds("b", "v")
}

// Security (a model that works in the cluster): cannot have a change made twice, or the deletion of another object of
// the same name, by a crash. Also TestApprovedCallFixesDeploymentAsServiceAccount of test/e2e.
func TestRetriedApprovedCallIsIdempotent(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
	input := setting("a", "one")
	s.decide(s.asks("k8s_apply", input), true, "")
	s.applies(input, "created")
	o := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	s.read(o)
	version := o.ResourceVersion
	s.again = true
	s.applies(input, "unchanged")
	if s.read(o); o.ResourceVersion != version {
		t.Error("made again, it wrote again")
	}

	s.again = false
	input = `{"resource":"cm","name":"a"}`
	q := s.asks("k8s_delete", input)
	s.decide(q, true, "")
	s.deletes(input, "deleted")
	s.again = true
	s.deletes(input, "gone")
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a"), Data: map[string]string{"k": "another"}})
	s.fails("k8s_delete", input, "changed since it was shown to a person")
	s.holds("a", "another")
}

func TestObjectChangedAfterReviewIsNotModified(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
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
	s.holds("b", "")
}

func TestANewStatusIsNoChange(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("apps", "deployments"))
	s.create(s.deployment("web", 1))
	input := `{"manifest":"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {paused: true}}"}`
	s.decide(s.asks("k8s_apply", input), true, "")
	o := &appsv1.Deployment{ObjectMeta: s.meta("web")}
	s.read(o)
	o.Status.ObservedGeneration, o.Status.Replicas = 1, 1
	check.OK(t, cluster.Client.Status().Update(t.Context(), o))
	s.applies(input, "changed")
	if s.read(o); !o.Spec.Paused || *o.Spec.Replicas != 1 || o.Status.Replicas != 1 {
		t.Errorf("it is %+v", o)
	}
}

func TestApprovalIsInvalidForAnotherServiceAccount(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
	s.decide(s.asks("k8s_apply", setting("a", "one")), true, "")
	s.create(&corev1.ServiceAccount{ObjectMeta: s.meta("other")})
	s.grant("other", all("", "configmaps"))
	kubectl(t, "kubectl -n "+s.ns+` patch role parley-generation --type json -p '[{"op":"add",`+
		`"path":"/rules/0/resourceNames/-","value":"other"}]'`)
	s.chat.Spec.Kubernetes.ServiceAccountName = "other"
	waiting.Until(t, time.Minute, "the grant", func() bool { return Unavailable(t.Context(), s.client(), s.chat) == nil })
	s.fails("k8s_apply", setting("a", "one"), "changed since it was shown")
	s.holds("a", "")
}

func TestApplyTakesOverForeignFieldsOnlyWithForce(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a"), Data: map[string]string{"k": "first"}})
	s.changesIt(&corev1.ConfigMap{ObjectMeta: s.meta("a")}, `{"data":{"k":"theirs"}}`)
	s.fails("k8s_apply", setting("a", "mine"), `conflict with "another"`, "call again with force")
	forced := strings.TrimSuffix(setting("a", "mine"), "}") + `,"force":true}`
	q := s.asks("k8s_apply", forced)
	check.Contains(t, q.Proposal, `take fields over from others: conflict with "another" using v1: .data.k`)
	s.decide(q, true, "")
	s.applies(forced, "changed")
	s.holds("a", "mine")
}

func TestADeletedServiceAccountIsNoDeletedObject(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a")})
	input := `{"resource":"cm","name":"a"}`
	s.decide(s.asks("k8s_delete", input), true, "")
	check.OK(t, cluster.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: s.meta("worker")}))
	waiting.Until(t, time.Minute, "its token is refused", func() bool {
		_, err := s.run("k8s_get", input)
		return err != nil
	})
	s.fails("k8s_delete", input, "there is no token of service account worker")
}

func TestManifestWithSeveralObjectsRequestsSingleApproval(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a"), Data: map[string]string{"k": "one"}})
	both := `{"manifest":` + jsonString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: one}\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: two}\n---\n") + `}`
	q := s.asks("k8s_apply", both)
	check.Contains(t, q.Proposal, "leave v1 ConfigMap a", "create v1 ConfigMap b")
	s.decide(q, true, "")
	s.applies(both, "unchanged", "created")
}

func TestForbiddenChangeFailsWithoutAskingForApproval(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, reads("", "configmaps"))
	s.create(&corev1.ConfigMap{ObjectMeta: s.meta("a")})
	s.fails("k8s_apply", setting("a", "x"), "cannot patch resource")
	s.fails("k8s_apply", setting("b", "x"), "cannot create resource")
	s.fails("k8s_delete", `{"resource":"cm","name":"a"}`, "cannot delete resource")
	s.fails("k8s_delete", `{"resource":"cm","name":"none"}`, "not found")
	if s.asked != nil {
		t.Error("people were asked")
	}
}

// Security (a model that works in the cluster): can do with WithoutApproval whatever the account may.
func TestWithoutApprovalAChangeIsMadeAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithoutApproval, all("", "configmaps"))
	s.applies(setting("a", "one"), "created")
	s.holds("a", "one")
	s.applies(setting("a", "two"), "changed")
	s.holds("a", "two")
	s.again = true
	s.fails("k8s_delete", `{"resource":"cm","name":"a"}`, "may have been deleted")
	s.again = false
	s.deletes(`{"resource":"cm","name":"a"}`, "deleted")
	s.holds("a", "")
}

func TestAPolicyForToolsDemandsApprovalNonetheless(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithoutApproval, all("", "configmaps"))
	s.chat.Spec.Tools = &v1beta1.ChatTools{ToolPolicy: v1beta1.ToolPolicy{Approval: []v1beta1.ToolPattern{"k8s_*"}}}
	s.asks("k8s_apply", setting("a", "one"))
	s.holds("a", "")
}

func TestADeletionSaysWhatBecomesOfTheRest(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
	o := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	o.Finalizers = []string{"example.dev/keep"}
	s.create(o)
	t.Cleanup(func() {
		_ = cluster.Client.Patch(context.WithoutCancel(t.Context()), o,
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	input := `{"resource":"cm","name":"a","propagation":"Orphan"}`
	q := s.asks("k8s_delete", input)
	check.Contains(t, q.Proposal, "(propagation Orphan)", "finalizers are done: example.dev/keep")
	s.decide(q, true, "")
	for range 2 { // The second time it goes already.
		s.deletes(input, "deleting")
	}
}

// Security (a model that works in the cluster): cannot approve its own calls by a ToolApproval that it applies.
func TestInvalidManifestIsRejectedWithHint(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("*", "*"))
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
		"{apiVersion: parley.dev/v1beta1, kind: ToolApproval, metadata: {name: a}}":        "people decide",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: none}}":          "cannot get resource",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: A_B}, data: {k: v}}":           "Invalid value",
		strings.Repeat("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n", 9): "at most 8",
	} {
		s.fails("k8s_apply", manifestOf(manifest), words)
	}
	s.fails("k8s_apply", setting("a", strings.Repeat("x", 17000)), "Change less at once")
}

// Security (a model that works in the cluster): cannot hide a part of a change from whoever approves it, by length,
// whitespace, control characters or formats, by annotations, or by parts that look like a Secret. Also
// TestProposalHasAllThatIsApplied, TestPodTemplateIsProposedWithItsAnnotations, TestInvalidManifestIsRejectedWithHint
// of internal/tools/kubernetes.
func TestWhatPeopleReadHidesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
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
			s := newScene(t, v1beta1.ClusterChangesWithApproval, all("", "configmaps"))
			q := s.asks("k8s_apply", manifestOf(c.manifest))
			check.Contains(t, q.Proposal, c.shown)
			s.decide(q, true, "")
			s.applies(manifestOf(c.manifest), "created")
		})
	}
}

func TestPodTemplateIsProposedWithItsAnnotations(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("apps", "deployments"))
	s.create(s.deployment("web", 1))
	q := s.asks("k8s_apply", `{"manifest":`+jsonString("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"+
		"spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: hidden}}}}\n")+`}`)
	check.Contains(t, q.Proposal, "+        kubectl.kubernetes.io/last-applied-configuration: hidden")
}

func TestAnObjectKeepsWhatOthersHaveSet(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithoutApproval, all("", "configmaps"))
	theirs := &corev1.ConfigMap{ObjectMeta: s.meta("a"), Data: map[string]string{"theirs": "1"}}
	theirs.Labels = map[string]string{"l": "1"}
	s.create(theirs)
	s.applies(setting("a", "mine"), "changed")
	o := &corev1.ConfigMap{ObjectMeta: s.meta("a")}
	if s.read(o); o.Data["theirs"] != "1" || o.Labels["l"] != "1" || o.Data["k"] != "mine" {
		t.Errorf("it is %+v", o)
	}
}
