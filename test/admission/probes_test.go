// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// createdBy is the annotation with the name of who created an object.
const createdBy = "parley.dev/created-by"

// editedBy is the annotation with the name of who changed an object's spec last.
const editedBy = "parley.dev/edited-by"

// probe reports whether a policy is in force, by writes that leave nothing behind.
type probe struct {
	// name of the policy and of its binding.
	name    string
	inForce func(context.Context) bool
}

// probes are of every policy. The first ones make what the others need: a chat, and a generated message of it.
var probes = []probe{
	{"parley-created-by", func(ctx context.Context) bool {
		chat := newChat("dry")
		return cluster.Client.Create(ctx, chat, client.DryRunAll) == nil && chat.Annotations[createdBy] != ""
	}},
	{"parley-edited-by", func(ctx context.Context) bool {
		chat := newChat("probe")
		_ = cluster.Client.Create(ctx, chat) // It may be there.
		forged := `{"metadata":{"annotations":{"` + editedBy + `":"me"}},"spec":{"suspend":true}}`
		err := cluster.Client.Patch(ctx, chat, client.RawPatch(types.MergePatchType, []byte(forged)), client.DryRunAll)
		return err == nil && chat.Annotations[editedBy] != "me"
	}},
	{"parley-authors", func(ctx context.Context) bool {
		chat := newChat("probe")
		_ = cluster.Client.Create(ctx, chat)
		return says(patches(newChat("probe"), `{"metadata":{"annotations":{"`+createdBy+`":"me"}}}`)(ctx, dry()),
			"cannot change")
	}},
	{"parley-generated-messages", func(ctx context.Context) bool {
		return says(dry().Create(ctx, probeResult(ctx)), "only generation pods")
	}},
	{"parley-immutable-messages", func(ctx context.Context) bool {
		pod, err := podA.client(ctx)
		if err != nil {
			return false
		}
		_ = pod.Create(ctx, probeResult(ctx))
		return says(patches(probeResult(ctx), `{"spec":{"parts":[{"type":"Text","text":"other"}]}}`)(ctx, dry()),
			"cannot change")
	}},
	{"parley-redactions", func(ctx context.Context) bool {
		marked := newChat("marked")
		marked.Annotations = map[string]string{v1beta1.AnnotationRedacting: "true"}
		return says(dryAs(ctx, chatter, marked), "may not redact chats")
	}},
	{"parley-immutable-prompts", func(ctx context.Context) bool {
		prompted := newChat("prompted")
		prompted.Spec.Prompt = "a"
		_ = cluster.Client.Create(ctx, prompted) // It may be there.
		return says(patches(newChat("prompted"), `{"spec":{"prompt":"b"}}`)(ctx, dry()), "prompt starts the chat")
	}},
	{"parley-debug-steps", func(ctx context.Context) bool {
		chat := newChat("probe")
		_ = cluster.Client.Get(ctx, client.ObjectKeyFromObject(chat), chat)
		return says(dry().Create(ctx, recording(chat, nil)), "only generation pods record")
	}},
	{"parley-api-keys", func(ctx context.Context) bool {
		return says(dryAs(ctx, owner, modelWithKey("probed")), "may not get Secret probed")
	}},
	{"parley-chat-classes", func(ctx context.Context) bool {
		class := chattest.In(ns, chattest.Class("probe", func(s *v1beta1.ChatClassSpec) {
			s.Restrictions = &v1beta1.ChatRestrictions{Fields: []v1beta1.ChatField{"systemPrompt"}}
		}))
		_ = cluster.Client.Create(ctx, class) // It may be there.
		return refusesAPirate(class)(ctx)
	}},
	{"parley-configmaps-of-classes", func(ctx context.Context) bool {
		return says(dryAs(ctx, curator, instructing("probed")), "may not get the ConfigMaps")
	}},
	{"parley-configmaps-of-chats", func(ctx context.Context) bool {
		return says(dryAs(ctx, chatter, instructed("probed")), "may not get every ConfigMap")
	}},
	{"parley-forks", func(ctx context.Context) bool {
		return says(dryAs(ctx, statusWriter, forkOf("probed")), "may not read chat probed")
	}},
	{"parley-skills-of-chats", func(ctx context.Context) bool {
		return says(dryAs(ctx, chatter, skilled("probed")), "may not get every ConfigMap")
	}},
	{"parley-secrets-of-chats", func(ctx context.Context) bool {
		return says(dryAs(ctx, chatter, tokened("probed")), "may not get every Secret")
	}},
	{"parley-secrets-of-classes", func(ctx context.Context) bool {
		return says(dryAs(ctx, curator, sending("probed")), "may not get the Secrets")
	}},
	{"parley-accounts-of-chats", func(ctx context.Context) bool {
		return says(dryAs(ctx, chatter, worksAs("probed", "")), "may not impersonate service account probed")
	}},
	{"parley-accounts-of-classes", func(ctx context.Context) bool {
		return says(dryAs(ctx, curator, workingAs("probed", "")), "may not impersonate service account probed")
	}},
	{"parley-configmaps-of-messages", func(ctx context.Context) bool {
		return says(dryAs(ctx, chatter, withFiles("probed")), "may not get every ConfigMap")
	}},
	{"parley-messages", func(ctx context.Context) bool {
		prompt, history := say("any"), inParts("any", "x")
		prompt.Name = "any-prompt"
		history.Spec.Parts, history.Spec.History = nil, []v1beta1.PriorMessage{{Role: v1beta1.RoleTool, Content: "x"}}
		return says(dry().Create(ctx, prompt), "names that end in -prompt") &&
			says(dry().Create(ctx, inParts("any", " ")), "all parts are blank") &&
			says(dry().Create(ctx, history), "in history, files belong to User messages")
	}},
	{"parley-generation-pods", func(ctx context.Context) bool {
		return says(dry().Create(ctx, generationPod("parley-generation-probe")), "only Parley's manager creates pods")
	}},
	{"parley-generation-commands", func(ctx context.Context) bool {
		return says(connects(podA.pod, "exec")(ctx, cluster.Client), "nobody runs commands in generation pods")
	}},
	{"parley-generation-tokens", func(ctx context.Context) bool {
		return says(takesToken(podA)(ctx, cluster.Client), "go to the kubelets")
	}},
	{"parley-generation-secrets", func(ctx context.Context) bool {
		return says(dry().Create(ctx, tokenSecret(podspec.ServiceAccount)), "no Secret holds a token")
	}},
	{"parley-workspace-templates", func(ctx context.Context) bool {
		return says(dry().Create(ctx, workspaceTemplate(podspec.ServiceAccount)), "does not run with the service account")
	}},
	{"parley-manager-pods", func(ctx context.Context) bool {
		return says(dryAs(ctx, manager, plainPod()), "generation pods and workspaces alone")
	}},
	{"parley-workspaces", func(ctx context.Context) bool {
		w := workspace()
		w.Name = "probe"
		_ = cluster.Client.Create(ctx, w) // It may be there.
		c, err := owner.client(ctx)
		return err == nil && says(needs(w)(ctx, client.NewDryRunClient(c)), "people change spec.suspend alone")
	}},
	{"parley-manager-claims", func(ctx context.Context) bool {
		return says(dryAs(ctx, manager, workspaceClaim(func(c *corev1.PersistentVolumeClaim) { c.Name = "any" })),
			"claims of workspaces alone")
	}},
	{"parley-manager-sandboxes", func(ctx context.Context) bool {
		return says(dryAs(ctx, manager, sandboxClaim(func(c *pools.SandboxClaim) { c.OwnerReferences = nil })),
			"the SandboxClaim of a workspace is controlled by that Workspace")
	}},
	{"parley-manager-chats", func(ctx context.Context) bool {
		return says(dryAs(ctx, manager, newChat("any")), "creates the sub-chats alone that models start")
	}},
	{"parley-manager-bindings", func(ctx context.Context) bool {
		c, err := manager.client(ctx)
		return err == nil && says(applies(bindsTo("probe"))(ctx, client.NewDryRunClient(c)),
			"binds the Role parley-generation to the account of that name")
	}},
	{"parley-sharing", func(ctx context.Context) bool {
		chat := newChat("any")
		chat.Spec.Sharing = []v1beta1.ChatShare{{Kind: v1beta1.ShareUser, Name: "jane"}}
		return says(dryAs(ctx, chatter, chat), "may not share chat")
	}},
	{"parley-status", func(ctx context.Context) bool {
		return says(patchesStatus(newChat("probe"), `{"status":{"phase":"Error"}}`)(ctx, dry()), "only Parley's manager")
	}},
}

// stamps are the policies of config/admission/stamp.
var stamps = []string{"parley-created-by", "parley-edited-by"}

// installed returns the probes of the policies that are installed.
func installed() []probe {
	return slices.DeleteFunc(slices.Clone(probes),
		func(p probe) bool { return !canStamp && slices.Contains(stamps, p.name) })
}

// needsStamp skips a test on a cluster without the stamp.
func needsStamp(t *testing.T) {
	t.Helper()
	if !canStamp {
		t.Skip("the API server does not serve MutatingAdmissionPolicy in v1: Kubernetes does from 1.36 on")
	}
}

// dry is the administrator's client, whose writes leave nothing behind.
func dry() client.Client { return client.NewDryRunClient(cluster.Client) }

// dryAs creates the object as somebody else, and leaves nothing behind.
func dryAs(ctx context.Context, who actor, o client.Object) error {
	c, err := who.client(ctx)
	if err != nil {
		return err
	}
	return c.Create(ctx, o, client.DryRunAll)
}

func probeResult(ctx context.Context) *v1beta1.ChatMessage {
	chat := newChat("probe")
	_ = cluster.Client.Get(ctx, client.ObjectKeyFromObject(chat), chat)
	chat.Status.History.Version = 1
	chat.Status.Generation = &v1beta1.GenerationStatus{Attempt: 1, Action: v1beta1.ActionGenerateAssistant,
		Pod: podA.pod}
	return result(chat)
}

func says(err error, words string) bool { return err != nil && strings.Contains(err.Error(), words) }

// lift takes the policies out of force by deleting their bindings, as the benchmark does, and creates the bindings
// again after the test. The API server reads its policies once a second, so lifting two at once takes half the time. A
// test that calls it is not parallel.
func lift(t *testing.T, policies ...string) {
	t.Helper()
	lifted := slices.DeleteFunc(installed(), func(p probe) bool { return !slices.Contains(policies, p.name) })
	t.Cleanup(func() { // It runs after the bindings are created again.
		ctx := context.WithoutCancel(t.Context())
		for _, p := range lifted {
			check.OK(t, until(ctx, p.name+" is in force again", p.inForce))
		}
	})
	for _, p := range lifted {
		removeBinding(t, p.name)
	}
	for _, p := range lifted {
		if err := until(t.Context(), p.name+" is lifted",
			func(ctx context.Context) bool { return !p.inForce(ctx) }); err != nil {
			t.Fatal(err)
		}
	}
}

// removeBinding deletes the policy's binding until the test ends.
func removeBinding(t *testing.T, policy string) {
	t.Helper()
	kind := "ValidatingAdmissionPolicyBinding"
	if slices.Contains(stamps, policy) {
		kind = "MutatingAdmissionPolicyBinding"
	}
	binding := &unstructured.Unstructured{}
	binding.SetAPIVersion("admissionregistration.k8s.io/v1")
	binding.SetKind(kind)
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: policy}, binding); err != nil {
		t.Fatalf("reading the binding: %v", err)
	}
	if err := cluster.Client.Delete(t.Context(), binding.DeepCopy()); err != nil {
		t.Fatalf("deleting the binding: %v", err)
	}
	t.Cleanup(func() {
		binding.SetResourceVersion("")
		if err := cluster.Client.Create(context.WithoutCancel(t.Context()), binding); err != nil {
			t.Errorf("restoring the binding: %v", err)
		}
	})
}

// TestEveryPolicyIsProbed keeps the other tests from running before a policy is in force that somebody adds.
func TestEveryPolicyIsProbed(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, p := range probes {
		known[p.name] = true
	}
	for _, dir := range []string{"admission", "admission/stamp"} {
		manifests, err := kubectl(t.Context(), "", "kustomize", testcluster.Path("config", dir))
		check.OK(t, err)
		for line := range strings.SplitSeq(manifests, "\n") {
			if name, ok := strings.CutPrefix(line, "  name: "); ok && !known[name] {
				t.Errorf("no probe for the policy %s", name)
			}
			if strings.HasPrefix(line, "kind: Mutating") && dir != "admission/stamp" {
				t.Error("a kind that older clusters do not serve is among those that every cluster must take: ",
					fmt.Sprintf("%q", line))
			}
		}
	}
}

// workspaceTemplate is one whose workspaces run with the account.
func workspaceTemplate(account string) *corev1.PodTemplate {
	return &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "probe",
			Labels: map[string]string{v1beta1.LabelWorkspaceTemplate: "true"}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: account,
			Containers: []corev1.Container{{Name: "main", Image: "none"}}}},
	}
}
