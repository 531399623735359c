// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testmanager"
)

// greets declares a parameter.
const greets = "- {name: greeting, default: hi, places: [env/GREETING]}"

// toolTemplate is a template named "go", changed.
func toolTemplate(ns string, change ...func(*corev1.PodTemplate)) *corev1.PodTemplate {
	t := &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "go",
			Labels:      map[string]string{v1beta1.LabelWorkspaceTemplate: "true"},
			Annotations: map[string]string{v1beta1.AnnotationParameters: greets}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"queue": "workspaces"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "main", Image: "golang:1", Command: []string{"serve"}}}},
		},
	}
	for _, c := range change {
		c(t)
	}
	return t
}

// working is a chat whose workspace is made from the template "go" and has storage, changed.
func working(ns, name string, change ...func(*v1beta1.WorkspaceSource)) *v1beta1.Chat {
	chat := newChat(ns, name, "first")
	chat.Spec.Workspace = &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{
		Name: "go", Storage: &v1beta1.WorkspaceStorage{}}}
	for _, c := range change {
		c(chat.Spec.Workspace)
	}
	return chat
}

// worksIn begins the chat, whose model calls a tool that needs the workspace.
func worksIn(t *testing.T, chat *v1beta1.Chat) {
	t.Helper()
	create(t, chat)
	answers(t, assigned(t, chat.Namespace, chat.Name, 1, 1), chattest.Works("call_1"))
}

// workspaceIn waits for the workspace of the name.
func workspaceIn(t *testing.T, ns, name string) *v1beta1.Workspace {
	t.Helper()
	w := &v1beta1.Workspace{}
	eventually(t, "there is a workspace "+name, func() bool {
		return cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, w) == nil
	})
	return w
}

// waitForWorkspace waits until the workspace says so of itself, and returns it.
func waitForWorkspace(t *testing.T, w *v1beta1.Workspace, ready metav1.ConditionStatus,
	reason v1beta1.ConditionReason, words string) *v1beta1.Workspace {
	t.Helper()
	now := &v1beta1.Workspace{}
	eventually(t, fmt.Sprintf("workspace %s is %s because of %s and says %q", w.Name, ready, reason, words), func() bool {
		check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(w), now))
		c := meta.FindStatusCondition(now.Status.Conditions, v1beta1.ConditionReady)
		return c != nil && c.Status == ready && v1beta1.ReasonOf(c) == reason && strings.Contains(c.Message, words) &&
			now.Status.ObservedGeneration == now.Generation
	})
	return now
}

// of reads the object that has the name of the workspace's own; false if there is none.
func of[T client.Object](t *testing.T, w *v1beta1.Workspace, into T) (T, bool) {
	t.Helper()
	err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: template.Name(w)}, into)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return into, err == nil
}

// podOf waits for the pod of the workspace.
func podOf(t *testing.T, w *v1beta1.Workspace) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	eventually(t, "workspace "+w.Name+" has a pod", func() bool {
		_, there := of(t, w, pod)
		return there && metav1.IsControlledBy(pod, w)
	})
	return pod
}

// runs makes the kubelet say that the workspace's pod is ready.
func runs(t *testing.T, w *v1beta1.Workspace) {
	t.Helper()
	pod := podOf(t, w)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7",
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	check.OK(t, cluster.Client.Status().Update(t.Context(), pod))
}

// waitForHeld waits until the chat's calls wait for the workspace in these words, and hold neither a pod nor a place.
func waitForHeld(t *testing.T, ns, chat, words string) {
	t.Helper()
	eventually(t, fmt.Sprintf("chat %s waits for its workspace: %s", chat, words), func() bool {
		c := meta.FindStatusCondition(chatIn(t, ns, chat).Status.Conditions, v1beta1.ConditionReady)
		return c != nil && c.Status == metav1.ConditionUnknown &&
			v1beta1.ReasonOf(c) == v1beta1.ReasonWaitingForWorkspace &&
			strings.HasPrefix(c.Message, "The tool calls wait for the workspace: "+words)
	})
	if st := chatIn(t, ns, chat).Status; st.Phase != v1beta1.ChatRunning || st.Generation != nil ||
		st.WaitingSince != nil {
		t.Errorf("phase %s, generation %+v, waiting since %v", st.Phase, st.Generation, st.WaitingSince)
	}
}

// workspaces are the names of those of the namespace.
func workspaces(t *testing.T, ns string) (names []string) {
	t.Helper()
	var all v1beta1.WorkspaceList
	check.OK(t, cluster.Client.List(t.Context(), &all, client.InNamespace(ns)))
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names
}

// starting is what a workspace says for whose pod no kubelet has said anything yet.
const starting = "its containers are being created"

// longName is as long as the name of a chat may be, and can be no label.
var longName = strings.Repeat("build.and-test.", 13) + "ci-42"

// unfriendly is a value for a parameter that a shell, YAML or the kubelet could take for something else.
const unfriendly = `$(HOME) ${HOME} "double" 'single' \n; $$ {{.}} ` + "`id` \n- é #$"

func TestWorkspaceIsCreatedOnFirstCall(t *testing.T) {
	ns := namespace(t)
	create(t, toolTemplate(ns))
	chat := working(ns, longName, func(s *v1beta1.WorkspaceSource) {
		s.PodTemplateRef.Parameters = []v1beta1.WorkspaceParameter{{Name: "greeting", Value: unfriendly}}
	})
	create(t, chat)
	first := assigned(t, ns, longName, 1, 1)
	if made := workspaces(t, ns); len(made) != 0 {
		t.Errorf("before anybody needs one there are %v", made)
	}
	answers(t, first, chattest.Works("call_1"))
	waitForHeld(t, ns, longName, starting)

	w := workspaceIn(t, ns, longName)
	if !metav1.IsControlledBy(w, chat) || w.Spec.ChatRef.Name != longName || w.Spec.NeededAt == nil ||
		!equality.Semantic.DeepEqual(w.Spec.Source, *chat.Spec.Workspace) {
		t.Errorf("the workspace is %+v", w)
	}
	stopManager(t)() // The next one continues where this one was.
	runs(t, w)
	wantTools(t, ns, longName, 2)
	st := waitForWorkspace(t, w, metav1.ConditionTrue, v1beta1.ReasonWorkspaceReady, "commands run in pod").Status
	pod := podOf(t, w)
	if st.Phase != v1beta1.WorkspacePhaseReady || *st.Pod != (v1beta1.WorkspacePod{Name: pod.Name, UID: string(pod.UID),
		Address: "10.0.0.7"}) || st.Directory != "/workspace" || st.Claim != pod.Name ||
		st.Template != pod.Annotations["parley.dev/template"] || len(st.Template) != 10 {
		t.Errorf("the status is %+v", st)
	}
}

// Security (a hostile workspace): can use the CPU, memory, disk and processes that its template, the namespace's quotas
// and its node allow: Parley adds no limits.
func TestWorkspacePodMatchesTemplate(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c", func(s *v1beta1.WorkspaceSource) {
		s.DeletionPolicy = v1beta1.WorkspaceRetain
		s.PodTemplateRef.Parameters = []v1beta1.WorkspaceParameter{{Name: "greeting", Value: unfriendly}}
	}))
	w := workspaceIn(t, ns, "c")
	pod := podOf(t, w)
	c := pod.Spec.Containers[0]
	if c.Image != "golang:1" || c.Command[0] != "/run/parley/agent/workspace-agent" ||
		!slices.Equal(c.Args[len(c.Args)-2:], []string{"--", "serve"}) || pod.Labels["queue"] != "workspaces" ||
		pod.Labels[podspec.LabelComponent] != podspec.ComponentWorkspace || *pod.Spec.AutomountServiceAccountToken ||
		!*pod.Spec.SecurityContext.RunAsNonRoot {
		t.Errorf("the pod is %+v", pod)
	}
	// The kubelet takes $$ for $, and so leaves the value as it was given.
	greeting := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GREETING" })
	check.Equal(t, "the parameter's value is", strings.ReplaceAll(unfriendly, "$", "$$"), c.Env[greeting].Value)
	claim, there := of(t, w, &corev1.PersistentVolumeClaim{})
	if !there || len(claim.OwnerReferences) != 0 || claim.Spec.Resources.Requests.Storage().String() != "10Gi" {
		t.Errorf("the claim, which is to be kept, is %+v", claim)
	}
	owner := metav1.GetControllerOf(pod)
	check.Equal(t, "the pod's owner is", []any{"Workspace", true}, []any{owner.Kind, *owner.BlockOwnerDeletion})

	var policy networkingv1.NetworkPolicy
	var keys corev1.ConfigMap
	for name, o := range map[string]client.Object{template.PolicyName: &policy, template.IssuerKeys: &keys} {
		if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, o); err != nil {
			t.Error(err)
		}
	}
	if keys.Data[protocol.IssuerKeysFile] != `{"keys":[]}` ||
		!equality.Semantic.DeepEqual(policy.Spec, template.NetworkPolicy(ns, "").Spec) {
		t.Errorf("it runs with the keys %v and %+v", keys.Data, policy.Spec)
	}
}

func TestRestrictedPodSecurityAdmitsWorkspaceForEachAgent(t *testing.T) {
	defer func() { stopManager(t)() }()
	for _, placement := range []template.Placement{template.ImageVolume, template.InitContainer} {
		t.Run(string(placement), func(t *testing.T) {
			if placement == template.ImageVolume {
				cluster.NeedsVersion(t, 1, 36)
			}
			stopManager(t)(func(o *testmanager.Options) { o.Controllers.Workspaces.Placement = placement })
			ns := namespace(t)
			patch(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}},
				`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
			create(t, toolTemplate(ns))
			worksIn(t, working(ns, "c"))
			waitForWorkspace(t, workspaceIn(t, ns, "c"), metav1.ConditionUnknown, v1beta1.ReasonPodStarting, starting)
		})
	}
}
