// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/template"
)

// workspacePod is the pod of a workspace as the manager makes it, changed.
func workspacePod(change ...func(*corev1.Pod)) *corev1.Pod {
	w := workspace()
	w.UID = uuid.NewUUID()
	o, err := template.Render(w, toolTemplate(), template.Settings{Image: "parley:test", Placement: template.InitContainer,
		Subject: podA.username()})
	if err != nil {
		panic(err)
	}
	o.Pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(w, v1beta1.GroupVersion.WithKind("Workspace"))}
	for _, c := range change {
		c(o.Pod)
	}
	return o.Pod
}

// allowed gives the first container of the list that security context and no other.
func allowed(c []corev1.Container, s corev1.SecurityContext) { c[0].SecurityContext = &s }

func adds(c corev1.Capability) corev1.SecurityContext {
	return corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{c}}}
}

var privileged = corev1.SecurityContext{Privileged: new(true)}

func mounts(p *corev1.Pod, s corev1.VolumeSource) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "more", VolumeSource: s})
}

func owned(change func(*metav1.OwnerReference)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { change(&p.OwnerReferences[0]) }
}

// Security (a hostile workspace): cannot access its node, even if its template requests it. Also
// TestManagerWorkspacesMustMeetPodSecurityBaseline of test/admission.
func TestTheManagersWorkspacesHaveNothingOfTheirNode(t *testing.T) {
	t.Parallel()
	const nothing = "a pod that the manager creates has nothing of its node"
	var writes []write
	for does, change := range map[string]func(*corev1.Pod){
		"is in its node's network":   func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"is among its processes":     func(p *corev1.Pod) { p.Spec.HostPID = true },
		"shares its memory":          func(p *corev1.Pod) { p.Spec.HostIPC = true },
		"listens at a port of it":    func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostPort = 7080 },
		"is privileged":              func(p *corev1.Pod) { allowed(p.Spec.Containers, privileged) },
		"is privileged at its start": func(p *corev1.Pod) { allowed(p.Spec.InitContainers, privileged) },
		"administers it":             func(p *corev1.Pod) { allowed(p.Spec.Containers, adds("SYS_ADMIN")) },
		"administers it, by its other name": func(p *corev1.Pod) {
			allowed(p.Spec.Containers, adds("CAP_SYS_ADMIN"))
		},
		"may do everything at its start": func(p *corev1.Pod) { allowed(p.Spec.InitContainers, adds("ALL")) },
		"traces its processes":           func(p *corev1.Pod) { allowed(p.Spec.Containers, adds("SYS_PTRACE")) },
		"mounts its files": func(p *corev1.Pod) {
			mounts(p, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}})
		},
		"has its files in a second container that starts first": func(p *corev1.Pod) {
			mounts(p, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/run"}})
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "first", Image: "a",
				VolumeMounts: []corev1.VolumeMount{{Name: "more", MountPath: "/node"}}})
		},
	} {
		writes = append(writes, write{manager, "creates one that " + does, creates(workspacePod(change)), nothing})
	}
	try(t, append(writes,
		write{manager, "creates one", creates(workspacePod()), ""},
		write{manager, "creates one that changes owners of files", creates(workspacePod(func(p *corev1.Pod) {
			allowed(p.Spec.Containers, adds("CHOWN"))
		})), ""},
		// It gets past the scheduler, and has nothing by that.
		write{manager, "creates one that names its node",
			creates(workspacePod(func(p *corev1.Pod) { p.Spec.NodeName = "a" })), ""},
		write{manager, "creates one that is being debugged", creates(workspacePod(func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.
				EphemeralContainerCommon{Name: "debug", Image: "busybox",
				SecurityContext: &privileged}}}
		})), "cannot be set on create"},
	))
}

func TestManagerWorkspacesMustMeetPodSecurityBaseline(t *testing.T) {
	t.Parallel()
	const confined = "a pod that the manager creates is confined as Pod Security baseline has it"
	inPod := func(s corev1.PodSecurityContext) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.SecurityContext = &s }
	}
	inContainer := func(s corev1.SecurityContext) func(*corev1.Pod) {
		return func(p *corev1.Pod) { allowed(p.Spec.InitContainers, s) }
	}
	noSeccomp := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	noAppArmor := &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	user, role := &corev1.SELinuxOptions{User: "a"}, &corev1.SELinuxOptions{Role: "a"}
	super := &corev1.SELinuxOptions{Type: "spc_t"}
	var writes []write
	for name, change := range map[string]func(*corev1.Pod){
		"without seccomp":                 inPod(corev1.PodSecurityContext{SeccompProfile: noSeccomp}),
		"without seccomp in a container":  inContainer(corev1.SecurityContext{SeccompProfile: noSeccomp}),
		"without AppArmor":                inPod(corev1.PodSecurityContext{AppArmorProfile: noAppArmor}),
		"without AppArmor in a container": inContainer(corev1.SecurityContext{AppArmorProfile: noAppArmor}),
		"of a super privileged type":      inPod(corev1.PodSecurityContext{SELinuxOptions: super}),
		"of such a type in a container":   inContainer(corev1.SecurityContext{SELinuxOptions: super}),
		"of another SELinux user":         inPod(corev1.PodSecurityContext{SELinuxOptions: user}),
		"of another SELinux role":         inContainer(corev1.SecurityContext{SELinuxOptions: role}),
		"with a sysctl of its node": inPod(corev1.PodSecurityContext{
			Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}),
		"with all of /proc": func(p *corev1.Pod) {
			p.Spec.HostUsers = new(false)
			allowed(p.Spec.Containers, corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)})
		},
	} {
		writes = append(writes, write{manager, "creates one " + name, creates(workspacePod(change)), confined})
	}
	inNamespace := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = name } }
	const clusters = ", which is the cluster's or its own"
	try(t, append(writes,
		write{manager, "creates one as confined as can be", creates(workspacePod(inPod(corev1.PodSecurityContext{
			SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault},
			SELinuxOptions:  &corev1.SELinuxOptions{Type: "container_t", Level: "s0:c1,c2"},
			Sysctls:         []corev1.Sysctl{{Name: "net.ipv4.tcp_syncookies", Value: "1"}}}))), ""},
		write{manager, "creates one before all others", creates(workspacePod(func(p *corev1.Pod) {
			p.Spec.PriorityClassName = "system-cluster-critical"
		})), "none of the cluster's own priority classes"},
		write{manager, "creates one among the cluster's own", creates(workspacePod(inNamespace("kube-system"))), clusters},
		write{manager, "creates one beside itself", creates(workspacePod(inNamespace("parley-system"))), clusters},
	))
}

func TestTheManagersWorkspacesAreWhatTheySay(t *testing.T) {
	t.Parallel()
	const (
		onlyPods = "the manager creates and deletes generation pods and workspaces alone"
		itsOwner = "the pod of a workspace is controlled by that Workspace, whose UID is in its name"
	)
	runsAs := func(account string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.ServiceAccountName = account }
	}
	component := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels[podspec.LabelComponent] = name }
	}
	renamed := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Name = unique(name) } }
	token := func(p *corev1.Pod) {
		mounts(p, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", Path: "token"}}}}})
	}
	try(t, []write{
		// What a template may ask for, the namespace's own accounts among it.
		{manager, "creates one of another account", creates(workspacePod(runsAs("builder"))), ""},
		{manager, "creates one with a token of its own for another server",
			creates(workspacePod(token, runsAs("builder"))), ""},

		{manager, "creates one that speaks as the model", creates(workspacePod(runsAs(podspec.ServiceAccount))), onlyPods},
		{manager, "creates one that speaks as the model, by the field's old name", creates(workspacePod(
			func(p *corev1.Pod) { p.Spec.DeprecatedServiceAccount = podspec.ServiceAccount })), onlyPods},
		{manager, "creates one that gets a token of the model's",
			creates(workspacePod(token, runsAs(podspec.ServiceAccount))), onlyPods},
		{manager, "creates one that is labelled as a generation pod", creates(workspacePod(component("generation"))),
			onlyPods},
		{manager, "creates one that is labelled and speaks as a generation pod",
			creates(workspacePod(component("generation"), runsAs(podspec.ServiceAccount))), onlyPods},
		{manager, "creates one under a generation pod's name", creates(workspacePod(renamed("parley-generation"))),
			onlyPods},
		{manager, "creates one under any name", creates(workspacePod(renamed("any"))), onlyPods},
		{manager, "creates one without a label", creates(workspacePod(func(p *corev1.Pod) { p.Labels = nil })), onlyPods},
		{manager, "creates one as another part of Parley", creates(workspacePod(component("gateway"))), onlyPods},

		{manager, "creates one of nobody", creates(workspacePod(func(p *corev1.Pod) { p.OwnerReferences = nil })), itsOwner},
		{manager, "creates one of a chat", creates(workspacePod(owned(func(o *metav1.OwnerReference) { o.Kind = "Chat" }))),
			itsOwner},
		{manager, "creates one of a Workspace of somebody else's", creates(workspacePod(owned(
			func(o *metav1.OwnerReference) { o.APIVersion = "example.com/v1" }))), itsOwner},
		{manager, "creates one of another Workspace", creates(workspacePod(owned(
			func(o *metav1.OwnerReference) { o.UID = uuid.NewUUID() }))), itsOwner},
		{manager, "creates one that its Workspace does not control", creates(workspacePod(owned(
			func(o *metav1.OwnerReference) { o.Controller = nil }))), itsOwner},
	})
}

func TestWhatBecomesOfTheManagersWorkspaces(t *testing.T) {
	t.Parallel()
	there, going, alike := workspacePod(), workspacePod(), plainPod()
	mustCreate(t, manager, there)
	mustCreate(t, manager, going)
	alike.Name = unique("parley-workspace")
	mustCreate(t, boss, alike)
	const (
		onlyPods = "the manager creates and deletes generation pods and workspaces alone"
		labels   = "the labels parley.dev/component and parley.dev/template say which pods are generation pods"
		becomes  = `{"metadata":{"labels":{"parley.dev/component":"generation"}}}`
	)
	binds := func(ctx context.Context, c client.Client) error {
		return c.SubResource("binding").Create(ctx, there.DeepCopy(),
			&corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: there.Name},
				Target: corev1.ObjectReference{Kind: "Node", Name: "a"}})
	}
	try(t, []write{
		{manager, "deletes one", deletes(going), ""},
		{manager, "deletes a pod that has such a name alone", deletes(alike), onlyPods},
		{manager, "runs a command in one", connects(there.Name, "exec"), noRight},
		{manager, "attaches itself to one", connects(there.Name, "attach"), noRight},
		{manager, "adds a container to one", debugs(there.Name), noRight},
		{manager, "labels one as a generation pod", patches(there, becomes), noRight},
		{manager, "gives one a node", binds, noRight},
		{root, "labels one as a generation pod", patches(there, becomes), labels},
		{root, "adds a container to one", debugs(there.Name), ""},
		{boss, "runs a command in one", connects(there.Name, "exec"), "does not have a host assigned"},
		{podA, "runs a command in one", connects(there.Name, "exec"), noRight},
		{owner, "runs a command in one", connects(there.Name, "exec"), noRight},
	})
}
