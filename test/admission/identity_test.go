// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/pods/podspec"
)

// generationPod is a pod as the manager creates it.
func generationPod(name string) *corev1.Pod {
	return podspec.Generation(podspec.Settings{Namespace: ns, Image: "parley:test"}, name)
}

// plainPod is a pod of no concern to Parley.
func plainPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: meta("plain"),
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
}

func changedPod(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(pod)
	return pod
}

// bindsTo gives the Role of generation pods to another account.
func bindsTo(account string) *rbacv1.RoleBinding {
	binding := podspec.RoleBinding(ns)
	binding.Subjects[0].Name = account
	return binding
}

// applies sends the object as the manager does what generation pods run with.
func applies(o client.Object) action {
	return func(ctx context.Context, c client.Client) error {
		o := o.DeepCopyObject().(client.Object)
		kind, err := c.GroupVersionKindFor(o)
		if err != nil {
			return err
		}
		o.GetObjectKind().SetGroupVersionKind(kind)
		raw, err := json.Marshal(o)
		if err != nil {
			return err
		}
		return c.Patch(ctx, o, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner("tester"), client.ForceOwnership)
	}
}

// connects opens a connection to a pod, such as exec; allowed, it fails for want of a node.
func connects(pod, how string) action {
	return func(ctx context.Context, c client.Client) error {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pod}}
		return c.SubResource(how).Create(ctx, p, p.DeepCopy())
	}
}

// takesToken requests a token that is bound to the actor's pod, if it has one.
func takesToken(of actor, audiences ...string) action {
	return func(ctx context.Context, c client.Client) error {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
		var err error
		if request.Spec.BoundObjectRef, err = of.bound(ctx); err != nil {
			return err
		}
		return c.SubResource("token").
			Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: of.namespace, Name: of.account}},
				request)
	}
}

func debugs(pod string) action {
	return func(ctx context.Context, c client.Client) error {
		var p corev1.Pod
		if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: pod}, &p); err != nil {
			return err
		}
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debug", Image: "busybox", ImagePullPolicy: corev1.PullAlways,
				TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			},
		})
		return c.SubResource("ephemeralcontainers").Update(ctx, &p)
	}
}

func TestNobodyBecomesTheModel(t *testing.T) {
	t.Parallel()
	plain := plainPod()
	mustCreate(t, administrator, plain)
	there := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: podA.pod}}
	patch := func(pod *corev1.Pod, body string) action {
		return func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, pod.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", []byte(body)))
		}
	}
	const (
		onlyManager = "only Parley's manager creates pods with the service account parley-generation or the label"
		noToken     = "tokens of the service account parley-generation go to the kubelets that run generation pods"
		noCommand   = "nobody runs commands in generation pods"
		labels      = "the labels parley.dev/component and parley.dev/template say which pods are generation pods"
		images      = "the images of a generation pod cannot change"
	)
	var writes []write
	for _, who := range []actor{boss, root, administrator, impostor} {
		writes = append(writes,
			write{who, "takes a token of a generation pod", takesToken(podA), noToken},
			write{who, "takes a token of the account", takesToken(podless), noToken},
			write{who, "has the token written into a Secret", creates(tokenSecret(podspec.ServiceAccount)),
				"no Secret holds a token of the service account parley-generation"},
			write{who, "creates a generation pod", creates(generationPod("parley-generation-" + rand.String(6))), onlyManager},
			write{who, "creates a pod of the account",
				creates(changedPod(plainPod(), func(p *corev1.Pod) { p.Spec.ServiceAccountName = podspec.ServiceAccount })),
				onlyManager},
			write{who, "creates a pod of the label", creates(changedPod(plainPod(), func(p *corev1.Pod) {
				p.Labels = map[string]string{podspec.LabelComponent: podspec.ComponentGeneration}
			})), onlyManager},
			write{who, "labels a pod as a generation pod",
				patch(plain, `{"metadata":{"labels":{"parley.dev/component":"generation"}}}`), labels},
			write{who, "takes the label off", patch(there, `{"metadata":{"labels":{"parley.dev/component":null}}}`), labels},
			write{who, "gives it the template of another",
				patch(there, `{"metadata":{"labels":{"parley.dev/template":"other"}}}`), labels},
			write{who, "runs another image", patch(there, `{"spec":{"containers":[{"name":"generator","image":"evil"}]}}`),
				images},
			write{who, "runs another image as the relay",
				patch(there, `{"spec":{"containers":[{"name":"relay","image":"evil"}]}}`), images},
			write{who, "adds a container for debugging", debugs(podA.pod), "a generation pod takes no further containers"},
			write{who, "runs a command", connects(podA.pod, "exec"), noCommand},
			write{who, "attaches itself", connects(podA.pod, "attach"), noCommand},
		)
	}
	try(t, append(writes,
		write{root, "annotates a generation pod", patch(there, `{"metadata":{"annotations":{"note":"seen"}}}`), ""},
		write{root, "creates a pod", creates(plainPod()), ""},
		write{root, "labels a pod", patch(plain, `{"metadata":{"labels":{"a":"b"}}}`), ""},
		write{root, "debugs another pod", debugs(plain.Name), ""},
		write{root, "runs a command in another pod", connects(plain.Name, "exec"), "does not have a host assigned"},
		write{root, "takes a token of another account", takesToken(impostor), ""},
		write{root, "has a token of another account written", creates(tokenSecret("parley-manager")), ""},
		write{chatter, "takes a token of a generation pod", takesToken(podA), noRight},
		write{owner, "takes a token of a generation pod", takesToken(podA), noRight},
		write{manager, "takes a token of a generation pod", takesToken(podA), noToken},
	))
}

func TestManagerMayCreateOnlyItsOwnResources(t *testing.T) {
	t.Parallel()
	named := func() string { return "parley-generation-" + rand.String(6) }
	going := generationPod(named())
	mustCreate(t, manager, going)
	plain := plainPod()
	mustCreate(t, administrator, plain)
	const (
		onlyPods    = "the manager creates and deletes generation pods and workspaces alone"
		ofTheNode   = "a pod that the manager creates has nothing of its node"
		ownBindings = "the manager binds the Role parley-generation to the account of that name and namespace alone"
	)
	role, policy := podspec.Role(ns), podspec.NetworkPolicy(ns, "parley-system")
	role.Name, policy.Name = "other", "other"
	open := &networkingv1.NetworkPolicy{ObjectMeta: meta("open")}
	try(t, []write{
		{manager, "creates a generation pod", creates(generationPod(named())), ""},
		{manager, "deletes a generation pod", deletes(going), ""},
		{manager, "creates any pod", creates(plainPod()), onlyPods},
		{manager, "deletes any pod", deletes(plain), onlyPods},
		{manager, "creates a generation pod under any name", creates(generationPod("any")), onlyPods},
		{manager, "creates a generation pod of another account",
			creates(changedPod(generationPod(named()), func(p *corev1.Pod) { p.Spec.ServiceAccountName = "default" })),
			onlyPods},
		{manager, "creates a generation pod in its node's network",
			creates(changedPod(generationPod(named()), func(p *corev1.Pod) { p.Spec.HostNetwork = true })), ofTheNode},
		{manager, "creates a generation pod with its node's files",
			creates(changedPod(generationPod(named()), func(p *corev1.Pod) {
				p.Spec.Volumes = append(p.Spec.Volumes,
					corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
			})), ofTheNode},
		{manager, "creates a privileged generation pod", creates(changedPod(generationPod(named()), func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		})), ofTheNode},
		{manager, "creates any account", creates(&corev1.ServiceAccount{ObjectMeta: meta("any")}), noRight},
		{manager, "creates any Role", creates(role), "writes no Role or RoleBinding but"},
		{manager, "opens a namespace's network", creates(open), noRight},
		{manager, "creates another NetworkPolicy", creates(policy), noRight},
		{manager, "binds the Role to another account", applies(bindsTo("default")), ownBindings},
		{manager, "binds the Role to its account", applies(podspec.RoleBinding(ns)), ""},
		{root, "creates a Role", creates(role), ""},
	})
}

func TestGenerationPodRequestsOwnTokenPerWorkspace(t *testing.T) {
	t.Parallel()
	const noToken = "tokens of the service account parley-generation go to the kubelets"
	own := "parley-workspace/" + podA.namespace + "/"
	try(t, []write{
		{podA, "takes one for a workspace", takesToken(podA, own+"a-pod"), ""},
		{podA, "takes one for the API server", takesToken(podA), noToken},
		{podA, "takes one for no pod", takesToken(podA, own), noToken},
		{podA, "takes one for two workspaces", takesToken(podA, own+"a-pod", own+"another"), noToken},
		{podA, "takes one for a workspace elsewhere", takesToken(podA, "parley-workspace/elsewhere/a-pod"), noToken},
		{podA, "takes one for its relay", takesToken(podA, "parley-relay/"+podA.namespace+"/a-pod"), noToken},
		{podA, "takes one of another pod", takesToken(podB, own+"a-pod"), noToken},
		{podA, "takes one that is bound to none", takesToken(podless, own+"a-pod"), noToken},
	})
}
