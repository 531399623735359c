// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/config"
	"parley.dev/parley/test/kit/check"
)

const image = "parley.dev/parley:v0.2.1@sha256:0123"

var (
	errNoRight = errors.New(`User "u" cannot list resource "pods"`) //nolint:staticcheck // That of the API server.
	now        = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	forbidden  = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errNoRight)
	notFound   = apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
)

// published are the schemas of config/crd as the API server publishes them.
var published = sync.OnceValues(func() (map[string]map[string]any, error) {
	files, err := filepath.Glob("../../../config/crd/bases/*.yaml")
	all := map[string]map[string]any{}
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		var crd apiextensionsv1.CustomResourceDefinition
		parsed := map[string]any{}
		err = errors.Join(err, readErr, yaml.Unmarshal(text, &crd))
		raw, encodeErr := yaml.Marshal(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		err = errors.Join(err, encodeErr, yaml.Unmarshal(raw, &parsed))
		all["dev.parley.v1beta1."+crd.Spec.Names.Kind] = parsed
	}
	return all, err
})

func readSchemas(t *testing.T) map[string]map[string]any {
	t.Helper()
	all, err := published()
	check.OK(t, err)
	own := map[string]map[string]any{}
	for kind, schema := range all {
		own[kind] = runtime.DeepCopyJSON(schema)
	}
	return own
}

func deployment(component string) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "parley-" + component},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 1}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: component,
		Env: []corev1.EnvVar{{Name: "PARLEY_IMAGE", Value: image}}}}
	return d
}

func pod(container string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "parley-" + container + "-0"},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: image}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: container}}}}
}

func named(names ...string) (list metav1.PartialObjectMetadataList) {
	for _, name := range names {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list
}

// healthy are the facts of an installation that works.
func healthy(t *testing.T) *Facts {
	t.Helper()
	f := &Facts{Now: now, Namespace: "team", System: "parley-system", Plugin: "v0.3.0", Reply: 1234 * time.Millisecond,
		Denied: map[string][]authorizationv1.ResourceAttributes{}}
	f.Kubernetes.GitVersion, f.OpenAPI.Components.Schemas = "v1.36.2-gke.100", readSchemas(t)
	f.Errors = map[string]error{"message": errors.New("ValidatingAdmissionPolicy 'parley-messages' denied request")}
	f.Policies.Items = config.Policies("admission", "ValidatingAdmissionPolicy")
	for _, m := range f.Policies.Items {
		f.Bindings.Items = append(f.Bindings.Items, admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: m.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}})
	}
	f.Stamps.Items = config.Policies("admission/stamp", "MutatingAdmissionPolicy")
	f.StampBindings = named("parley-created-by", "parley-edited-by")
	f.Deployments.Items = []appsv1.Deployment{deployment(Manager), deployment(Gateway)}
	f.Pods.Items = []corev1.Pod{pod(Manager), pod(Gateway)}
	f.Generation.Items = []corev1.Pod{pod("generator")}
	f.Models.Items = []v1beta1.ChatModelConfig{{ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: v1beta1.ChatModelConfigSpec{Default: true}}}
	setReady(f, metav1.ConditionTrue, "Accepted")
	return f
}

func setReady(f *Facts, status metav1.ConditionStatus, reason string) {
	f.Models.Items[0].Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: status,
		Reason: reason, Message: "m"}}
}

// managerOf is the manager's container in its Deployment.
func managerOf(f *Facts) *corev1.Container {
	return &f.Deployments.Items[0].Spec.Template.Spec.Containers[0]
}

// describeReport has a line for each check that is not OK.
func describeReport(r *Report) (lines []string) {
	for _, c := range r.Checks {
		if c.Result != OK {
			lines = append(lines, c.Group+"/"+c.Check+": "+string(c.Result)+": "+c.Message)
		}
	}
	return lines
}

func TestHealthyInstallationsPassAllChecks(t *testing.T) {
	r := Examine(healthy(t))
	check.Equal(t, "checks that are not OK", nil, describeReport(r))
	check.Equal(t, "checks that are made", len(checks)-1, len(r.Checks)) // There is no leader.
}

// failing makes the read of a fact fail.
func failing(name string, err error) func(*Facts) {
	return func(f *Facts) { f.Errors[name] = err }
}

func denied(who string) func(*Facts) { return func(f *Facts) { f.Denied[who] = f.Rights(who)[:1] } }

func elected(holder string, ago time.Duration) func(*Facts) {
	return func(f *Facts) {
		managerOf(f).Args = []string{"--leader-elect"}
		f.Lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder,
			RenewTime: new(metav1.NewMicroTime(now.Add(-ago)))}
	}
}

func TestEachFaultIsFound(t *testing.T) {
	tests := map[string]struct {
		change func(*Facts)
		want   string
	}{
		"group not served": {func(f *Facts) { f.OpenAPI.Components.Schemas = nil },
			"fields: Failed: parley.dev/v1beta1 is not served"},
		"kind missing": {func(f *Facts) { delete(f.OpenAPI.Components.Schemas, "dev.parley.v1beta1.Workspace") },
			"fields: Failed: parley.dev/v1beta1 lacks Workspace"},
		"field missing": {func(f *Facts) {
			unstructured.RemoveNestedField(f.OpenAPI.Components.Schemas["dev.parley.v1beta1.ChatMessage"], "properties", "spec",
				"properties", "parts", "items", "properties", "toolCall", "properties", "input")
		}, "fields: Failed: parley.dev/v1beta1 lacks ChatMessage.spec.parts.toolCall.input"},
		"policy missing": {func(f *Facts) { f.Policies.Items = f.Policies.Items[1:] },
			"installed: Failed: policies are missing, so that statuses can be forged: parley-authors"},
		"binding audits": {func(f *Facts) {
			f.Bindings.Items[0].Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
		}, "installed: Failed: policies have no binding that denies: parley-authors"},
		"policy of another version": {func(f *Facts) {
			f.Plugin = "v0.2.1"
			delete(f.Policies.Items[0].Spec, "validations")
		}, "rules: Warning: policies have other rules than those of this plug-in's version: parley-authors"},
		"stamp of another version": {func(f *Facts) {
			f.Plugin = "(devel)"
			f.Stamps.Items[0].Spec["mutations"] = []any{}
		}, "rules: Warning: policies have other rules than those of this plug-in's version: parley-created-by"},
		"plug-in of another version": {func(f *Facts) { delete(f.Policies.Items[0].Spec, "validations") },
			"rules: NotChecked: this plug-in is v0.3.0 and the manager v0.2.1"},
		"policy not enforced":  {failing("message", nil), "enforced: Failed: the API server accepts a message"},
		"namespace missing":    {failing("message", notFound), "enforced: Failed: "},
		"messages not allowed": {failing("message", forbidden), "enforced: NotChecked: pods is forbidden: User"},
		"stamp missing": {func(f *Facts) { f.StampBindings.Items = nil }, "stamp: Warning: who creates and edits chats " +
			"and messages is not recorded: there is no MutatingAdmissionPolicy, or no binding, parley-created-by, " +
			"parley-edited-by"},
		"old Kubernetes": {func(f *Facts) { f.Kubernetes.GitVersion = "v1.32.9+k3s1" },
			"kubernetes: Failed: Kubernetes is v1.32.9+k3s1, and Parley needs 1.33.0 or later"},
		"different images": {func(f *Facts) { f.Pods.Items[1].Spec.Containers[0].Image = "parley:old" },
			"images: Warning: the manager runs " + image + ", the gateway parley:old"},
		"old generation pods": {func(f *Facts) { f.Generation.Items[0].Spec.Containers[0].Image = "parley:old" },
			"generation pods: Warning: pods run parley:old"},
		"old plug-in": {func(f *Facts) { f.Plugin = "v0.4.0" },
			"plug-in: Warning: this plug-in is v0.4.0 and the manager v0.2.1"},
		"new plug-in": {func(f *Facts) { f.Plugin = "v1.2.1" }, "plug-in: Warning: this plug-in is v1.2.1"},
		"development": {func(f *Facts) { f.Plugin = "(devel)" }, "plug-in: NotChecked: this plug-in is (devel)"},
		"manager missing": {func(f *Facts) { f.Deployments.Items = f.Deployments.Items[1:] },
			"Manager/ready: Failed: namespace parley-system has no Deployment"},
		"manager unready": {func(f *Facts) { f.Deployments.Items[0].Status.ReadyReplicas = 0 },
			"Manager/ready: Failed: 0 of 1 replicas"},
		"gateway without replicas": {func(f *Facts) { f.Deployments.Items[1].Spec.Replicas = new(int32(0)) },
			"Gateway/ready: Failed: 1 of 0 replicas of parley-gateway are ready"},
		"restart": {func(f *Facts) {
			f.Pods.Items[0].Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
				FinishedAt: metav1.NewTime(now.Add(-time.Minute)), Reason: "OOMKilled", ExitCode: 137}
		}, "Manager/restarts: Warning: pod parley-manager-0 restarted in the last 10 minutes: OOMKilled, exit code 137"},
		"other namespaces": {func(f *Facts) { managerOf(f).Args = []string{"--verbose", "--namespaces=a,b"} },
			"Manager/namespaces: Failed: it works for a, b, and not for team"},
		"no leader": {elected("pod", 2*time.Minute), "leader: Failed: no replica holds the Lease manager.parley.dev"},
		"manager without rights": {denied(Manager), "Manager/rights: Failed: service account parley-system/parley-manager " +
			"may not get chats.parley.dev in all namespaces"},
		"caller without rights": {denied(Caller), "your rights: Failed: you may not get chats.parley.dev in namespace team"},
		"gateway silent":        {failing("answer", errors.New("refused")), "answer: Failed: refused"},
		"gateway needs a token": {failing("answer", NotCheckedError{errors.New("no token")}), "answer: NotChecked: no token"},
		"no model": {func(f *Facts) { f.Models.Items = nil },
			"model: Failed: namespace team has no ChatModelConfig"},
		"no default model": {func(f *Facts) { f.Models.Items[0].Spec.Default = false },
			"model: Warning: none of the 1 ChatModelConfigs is the default"},
		"model not reconciled": {func(f *Facts) { f.Models.Items[0].Status.Conditions = nil },
			"model: Warning: ChatModelConfig small has no status"},
		"model not ready": {func(f *Facts) { setReady(f, metav1.ConditionFalse, "HostNotAllowed") },
			"model: Failed: ChatModelConfig small is not ready: HostNotAllowed: m"},
		"no reply": {failing("reply", errors.New("timed out")), "reply: Failed: timed out"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			c.change(f)
			check.Contains(t, strings.Join(describeReport(Examine(f)), "\n"), c.want)
		})
	}
}

func TestLeaderPassesTheCheck(t *testing.T) {
	f := healthy(t)
	elected("parley-manager-7d4b_0c9f", time.Second)(f)
	f.Deployments.Items[0].Spec.Replicas, f.Deployments.Items[0].Status.ReadyReplicas = new(int32(2)), 2
	r := Examine(f)
	check.Equal(t, "checks that are OK", len(checks), r.Count(OK))
	at := slices.IndexFunc(r.Checks, func(c Finding) bool { return c.Check == "leader" })
	check.Equal(t, "leader", "it is parley-manager-7d4b; ready standbys: 1", r.Checks[at].Message)
}

func TestManagerWithoutReplicasHasOwnAdvice(t *testing.T) {
	f := healthy(t)
	f.Deployments.Items[0].Spec.Replicas, f.Deployments.Items[0].Status.ReadyReplicas = new(int32(0)), 0
	r := Examine(f)
	at := slices.IndexFunc(r.Checks, func(c Finding) bool { return c.Check == "ready" })
	check.Equal(t, "advice", "it is scaled to 0: raise the replicas of parley-manager in namespace parley-system",
		r.Checks[at].Advice)
}

func TestShardsPassAllChecks(t *testing.T) {
	f := healthy(t)
	f.StatefulSets.Items, f.Deployments.Items = f.Deployments.Items[:1], f.Deployments.Items[1:]
	check.Equal(t, "checks that are not OK", nil, describeReport(Examine(f)))
}

func TestImagesOfEndingPodsDoNotCount(t *testing.T) {
	for name, ends := range map[string]func(*corev1.Pod){
		"deleted": func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now)) },
		"evicted": func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" },
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			for _, pods := range []*corev1.PodList{&f.Pods, &f.Generation} {
				ending := *pods.Items[0].DeepCopy()
				ending.Spec.Containers[0].Image = "parley:old"
				ends(&ending)
				pods.Items = append([]corev1.Pod{ending}, pods.Items...)
			}
			check.Equal(t, "checks that are not OK", nil, describeReport(Examine(f)))
		})
	}
}

func TestForbiddenReadsFailNoCheck(t *testing.T) {
	f := &Facts{Errors: map[string]error{"message": forbidden}}
	for _, c := range checks {
		for need := range strings.FieldsSeq(c.needs) {
			f.Errors[need] = forbidden
		}
	}
	check.Equal(t, "checks that are not made", len(checks), Examine(f).Count(NotChecked))
}

func TestRightsFollowTheNamespaces(t *testing.T) {
	f := healthy(t)
	where := func() map[string]int {
		found := map[string]int{}
		for _, r := range f.Rights(Manager) {
			found[r.Namespace]++
		}
		return found
	}
	all, scoped := where(), len(roleRights("ClusterRole", "parley-manager", "team"))
	managerOf(f).Env = append(managerOf(f).Env, corev1.EnvVar{Name: "PARLEY_NAMESPACES", Value: "team,others"})
	check.Equal(t, "rights", map[string]int{"": all[""] - scoped, "others": scoped, "team": scoped,
		"parley-system": all["parley-system"]}, where())
}

func TestOldestKubernetesIsThatOfTheChart(t *testing.T) {
	chart, err := os.ReadFile("../../../charts/parley/Chart.yaml")
	check.OK(t, err)
	check.Contains(t, string(chart), `kubeVersion: ">=`+oldestKubernetes.String()+`-0"`)
}
