// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/controllers/generationpod"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// What the tables are about: who has a right to any of it that is not in them must not have it.
var (
	reads  = []string{"get", "list", "watch"}
	writes = []string{"create", "update", "patch", "delete", "deletecollection", "redact", "share"}
	// resources as <group>/<resource>[/<subresource>].
	resources = []string{
		"parley.dev/chats", "parley.dev/chats/status", "parley.dev/chats/stream", "parley.dev/chatmessages",
		"parley.dev/chatmessages/status",
		"parley.dev/chatclasses", "parley.dev/chatclasses/status",
		"parley.dev/chatmodelconfigs", "parley.dev/chatmodelconfigs/status", "parley.dev/toolapprovals",
		"parley.dev/toolapprovals/status",
		"parley.dev/chatquotas", "parley.dev/chatquotas/status", "parley.dev/clusterchatquotas",
		"parley.dev/clusterchatquotas/status",
		"parley.dev/chatdebugsteps", "parley.dev/workspaces", "parley.dev/workspaces/status",
		"parley.dev/workspaces/changes",
		"agents.x-k8s.io/sandboxes", "extensions.agents.x-k8s.io/sandboxclaims",
		"/services", "mcp.x-k8s.io/mcpservers", "toolhive.stacklok.dev/mcpservers", "toolhive.stacklok.dev/mcpremoteproxies",
		"toolhive.stacklok.dev/virtualmcpservers", "kagent.dev/mcpservers", "kagent.dev/remotemcpservers",
		"/secrets", "/configmaps", "/persistentvolumeclaims", "/podtemplates", "/pods", "/pods/exec", "/serviceaccounts",
		"/serviceaccounts/token",
		"rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/rolebindings", "networking.k8s.io/networkpolicies",
	}
)

// rights asks the API server what the actor may do with the resources in the namespace, as "<resource>: <verb> ...".
func rights(t *testing.T, a actor, namespace string, verbs, resources []string) []string {
	t.Helper()
	isNamed := namedByRules(t, a, namespace)
	var all []string
	for _, name := range resources {
		group, path, _ := strings.Cut(name, "/")
		resource, sub, _ := strings.Cut(path, "/")
		var may []string
		for _, verb := range verbs {
			if !isNamed(verb, path) {
				continue
			}
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: a.username(), Groups: []string{"system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group,
					Resource: resource, Subresource: sub},
			}}
			check.OK(t, cluster.Client.Create(t.Context(), review))
			if review.Status.Allowed {
				may = append(may, verb)
			}
		}
		if len(may) > 0 {
			all = append(all, strings.TrimPrefix(strings.TrimPrefix(name, "parley.dev/"), "/")+": "+strings.Join(may, " "))
		}
	}
	slices.Sort(all)
	return all
}

// namedByRules reads all rules of the actor in the namespace, in one request. The result reports whether a rule names
// both the verb and the resource, or has a wildcard there. Without such a rule the actor has no right to it. With one,
// it may still have none, because groups and names of objects are not compared.
func namedByRules(t *testing.T, a actor, namespace string) func(verb, resource string) bool {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	check.OK(t, as(t, a).Create(t.Context(), review))
	if review.Status.Incomplete {
		t.Fatalf("the API server does not know all rules of %s: %s", a.name, review.Status.EvaluationError)
	}
	names := func(list []string, name string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == name || strings.Contains(s, "*") })
	}
	return func(verb, resource string) bool {
		return slices.ContainsFunc(review.Status.ResourceRules, func(r authorizationv1.ResourceRule) bool {
			return names(r.Verbs, verb) && names(r.Resources, resource)
		})
	}
}

func TestTheRolesGiveTheseRightsAndNoOthers(t *testing.T) {
	t.Parallel()
	const (
		read, change = "get list watch", "create update patch delete"
		status       = "update patch"
	)
	all := slices.Concat(reads, writes)
	for _, c := range []struct {
		who       actor
		namespace string
		want      []string
	}{
		{podA, ns, []string{"chatclasses: " + read, "chatdebugsteps: get create update",
			"chatmessages: " + read + " create",
			"chatmodelconfigs: " + read, "chats: " + read, "configmaps: get", "podtemplates: list", "workspaces: get"}},
		{podA, otherNS, nil},
		{podA, "parley-system", nil},
		{chatter, ns, []string{"chatclasses: " + read, "chatmessages: " + read + " " + change, "chatmodelconfigs: " + read, "chatquotas: " + read,
			"chats/stream: get", "chats: " + read + " " + change, "workspaces/changes: get", "workspaces: " + read}},
		{chatter, otherNS, nil},
		{approver, ns, []string{"chats: " + read, "toolapprovals: " + read + " create"}},
		{approver, otherNS, nil},
		{viewer, ns, []string{"chatclasses: " + read, "chatmessages: " + read, "chatmodelconfigs: " + read, "chatquotas: " + read,
			"chats/stream: get", "chats: " + read, "workspaces: " + read}},
		{debugger, ns, []string{"chatdebugsteps: " + read + " delete", "chats: " + read}},
		{debugger, otherNS, nil},
		{redactor, ns, []string{"chatdebugsteps: get list delete", "chatmessages: get list patch delete",
			"chats/status: patch", "chats: get list patch redact", "toolapprovals: get list delete"}},
		{redactor, otherNS, nil},
		{templater, ns, []string{"podtemplates: " + read + " " + change}},
		{templater, otherNS, nil},
		{owner, ns, []string{
			"chatclasses: " + read, "chatmessages: " + read + " " + change, "chatmodelconfigs: " + read + " " + change,
			"chatquotas: " + read,
			"chats/stream: get",
			"chats: " + read + " " + change + " share", "toolapprovals: " + read + " " + change,
			"workspaces/changes: get", "workspaces: " + read + " update patch",
		}},
		{curator, ns, []string{"chatclasses: " + read + " " + change}},
		{curator, otherNS, nil},
		{restorer, ns, []string{"chatmessages/status: patch", "chatmessages: get create", "chats/status: patch",
			"chats: get create patch", "toolapprovals/status: patch", "toolapprovals: get create"}},
		{restorer, otherNS, nil},
		{governor, ns, []string{"chatquotas: " + read + " " + change, "clusterchatquotas: " + read + " " + change}},
	} {
		t.Run(c.who.name+" in "+c.namespace, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "rights", c.want, rights(t, c.who, c.namespace, all, resources))
		})
	}
	t.Run("the gateway writes nothing", func(t *testing.T) {
		t.Parallel()
		check.Equal(t, "result", nil, rights(t, gateway, ns, writes, resources))
	})
	t.Run("the manager writes status, but no conversation", func(t *testing.T) {
		t.Parallel()
		got := rights(t, manager, ns, writes, resources)
		for _, want := range []string{"chats/status: " + status, "chatmessages/status: " + status,
			"chatmodelconfigs/status: " + status, "toolapprovals/status: " + status, "chatquotas/status: " + status,
			"clusterchatquotas/status: " + status, "workspaces/status: " + status, "workspaces: create update",
			"persistentvolumeclaims: create patch", "pods: create delete", "chats: create patch delete",
			"agents.x-k8s.io/sandboxes: patch",
			"extensions.agents.x-k8s.io/sandboxclaims: create"} {
			if !slices.Contains(got, want) {
				t.Errorf("it may not %q, but %q", want, got)
			}
		}
		for _, right := range got {
			kind, verbs, _ := strings.Cut(right, ": ")
			for verb := range strings.FieldsSeq(verbs) {
				if right == "chats: create patch delete" { // A policy holds it to less.
					continue
				}
				if verb == "update" || verb == "patch" {
					if slices.Contains([]string{"chats", "chatclasses", "chatmessages", "chatmodelconfigs", "toolapprovals", "chatquotas",
						"clusterchatquotas", "secrets"}, kind) {
						t.Errorf("it may %s %s", verb, kind)
					}
				}
			}
		}
	})
}

func TestOnlyThoseWhoGovernMayChangeQuotas(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	raise := patches(s.quota, `{"spec":{"generating":{"chats":9}}}`)
	var all []write
	for _, who := range []actor{chatter, owner, viewer, approver, gateway, podA, manager} {
		all = append(all, write{who, "raises a quota", raise, noRight},
			write{who, "removes a quota", deletes(s.quota), noRight})
	}
	try(t, append(all, write{governor, "raises a quota", raise, ""},
		write{governor, "removes a quota", deletes(s.quota), ""}))
}

func TestScrapersAndGatewayStreamsReachOperatorPods(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]string{"parley-manager": "", "parley-gateway": "http"} {
		var policy networkingv1.NetworkPolicy
		var deployment appsv1.Deployment
		key := client.ObjectKey{Namespace: "parley-system", Name: name}
		if err := errors.Join(cluster.Client.Get(t.Context(), key, &policy),
			cluster.Client.Get(t.Context(), key, &deployment)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(deployment.Spec.Selector.MatchLabels, policy.Spec.PodSelector.MatchLabels); diff != "" {
			t.Errorf("%s is for other pods (-deployment +policy):\n%s", name, diff)
		}
		got := ""
		for _, rule := range policy.Spec.Ingress {
			port := rule.Ports[0].Port.StrVal
			switch {
			case !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports,
				func(p corev1.ContainerPort) bool { return p.Name == port }):
				t.Errorf("%s lets callers in at %q, which is no port", name, port)
			case len(rule.From) == 0:
				got += port
			case port != "metrics" || rule.From[0].NamespaceSelector.MatchLabels[podspec.LabelMetrics] != "true":
				t.Errorf("%s lets in %+v", name, rule)
			}
		}
		if got != open {
			t.Errorf("%s lets everybody in at %q", name, got)
		}
	}
}

func TestManagersRightsSufficeForAccess(t *testing.T) {
	t.Parallel()
	namespace := "access-" + rand.String(6)
	cluster.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	c := as(t, manager)
	access := &generationpod.Access{Client: c, GatewayNamespace: "parley-system"}
	other := podspec.RoleBinding(namespace)
	other.RoleRef.Name = "another"
	cluster.Create(t, other)
	for range 2 {
		check.OK(t, access.Ensure(t.Context(), namespace))
		role := podspec.Role(namespace)
		role.Rules = role.Rules[:1]
		check.OK(t, cluster.Client.Update(t.Context(), role))
	}
	named := client.MatchingFields{"metadata.name": podspec.ServiceAccount}
	for _, list := range []client.ObjectList{&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&networkingv1.NetworkPolicyList{}} {
		if err := c.List(t.Context(), list, named); err != nil {
			t.Errorf("listing those of generation pods: %v", err)
		}
		if err := c.List(t.Context(), list); err == nil {
			t.Errorf("the manager lists every %T of the cluster", list)
		}
	}
}

// components are those of config/mcp, and what each lets the manager read.
var components = map[string][]string{
	"lifecycle-operator": {"mcp.x-k8s.io/mcpservers"},
	"toolhive": {"toolhive.stacklok.dev/mcpservers", "toolhive.stacklok.dev/mcpremoteproxies",
		"toolhive.stacklok.dev/virtualmcpservers"},
	"kagent":   {"kagent.dev/mcpservers", "kagent.dev/remotemcpservers"},
	"services": {"/services"},
}

// component applies a component of config/mcp for the test.
func component(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Rel(dir, testcluster.Path("config", "mcp", name))
	check.OK(t, err)
	kustomization := fmt.Sprintf("components: [%s]\n", path)
	check.OK(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600))
	if out, err := kubectl(t.Context(), "", "apply", "--server-side", "-k", dir); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := kubectl(context.WithoutCancel(t.Context()), "", "delete", "-k", dir); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func TestManagerReadsServerKindsOnlyWithTheirComponent(t *testing.T) {
	t.Parallel()
	all, kinds := slices.Concat(reads, writes), slices.Concat(slices.Collect(maps.Values(components))...)
	of := func() []string { return rights(t, manager, ns, all, kinds) }
	if got := of(); len(got) > 0 {
		t.Errorf("without any it may %q", got)
	}
	for name, kinds := range components {
		t.Run(name, func(t *testing.T) {
			component(t, name)
			var want []string
			for _, kind := range kinds {
				want = append(want, strings.TrimPrefix(kind, "/")+": get")
			}
			slices.Sort(want)
			if err := until(t.Context(), "the rights are there",
				func(context.Context) bool { return slices.Equal(of(), want) }); err != nil {
				t.Errorf("it may %q: %v", of(), err)
			}
		})
	}
}
