// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

var settings = Settings{Image: "parley:test", Placement: ImageVolume,
	Subject: "system:serviceaccount:ns:parley-generation"}

// podTemplate has one container, and the parameters that the text declares.
func podTemplate(parameters string, change ...func(*corev1.PodTemplate)) *corev1.PodTemplate {
	t := &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "go", Annotations: map[string]string{v1beta1.AnnotationParameters: parameters}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "golang:1"}}}},
	}
	for _, c := range change {
		c(t)
	}
	return t
}

func workspace(values ...string) *v1beta1.Workspace {
	ref := &v1beta1.WorkspaceTemplateReference{Name: "go"}
	for i := 0; i < len(values); i += 2 {
		ref.Parameters = append(ref.Parameters, v1beta1.WorkspaceParameter{Name: values[i], Value: values[i+1]})
	}
	return &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "1234"},
		Spec: v1beta1.WorkspaceSpec{Source: v1beta1.WorkspaceSource{PodTemplateRef: ref}}}
}

func withStorage(w *v1beta1.Workspace, s v1beta1.WorkspaceStorage) *v1beta1.Workspace {
	w.Spec.Source.PodTemplateRef.Storage = &s
	return w
}

func render(t *testing.T, w *v1beta1.Workspace, from *corev1.PodTemplate) *Objects {
	t.Helper()
	o, err := Render(w, from, settings)
	check.OK(t, err)
	return o
}

func container(change func(*corev1.Container)) func(*corev1.PodTemplate) {
	return func(t *corev1.PodTemplate) { change(&t.Template.Spec.Containers[0]) }
}

const version = "- {name: version, default: '1.27', allowed: ['1.26', '1.27'], places: [env/GO_VERSION]}\n"

func TestInvalidTemplatesAndValuesAreRejectedWithAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		template  *corev1.PodTemplate
		workspace *v1beta1.Workspace
		says      string
	}{
		"no list":                     {podTemplate("name: x"), workspace(), "is no list of parameters"},
		"an unknown field":            {podTemplate("- {name: x, place: image}"), workspace(), `unknown field "place"`},
		"a parameter without a place": {podTemplate("- {name: x}"), workspace(), "it has no places"},
		"a place that there is not":   {podTemplate("- {name: x, places: [args]}"), workspace(), `place "args" is none of`},
		"a command as a place":        {podTemplate("- {name: x, places: [command/0]}"), workspace(), "is none of"},
		"an image that may be anything": {podTemplate("- {name: x, places: [image]}"), workspace(),
			"list the values in allowed"},
		"a node that may be any": {podTemplate("- {name: x, places: [nodeSelector/zone]}"), workspace(),
			"list the values in allowed"},
		"memory as a string":      {podTemplate("- {name: x, places: [limits/memory]}"), workspace(), "set type: quantity"},
		"a variable of no name":   {podTemplate("- {name: x, places: [env/]}"), workspace(), "have no name"},
		"a variable of the agent": {podTemplate("- {name: x, places: [env/PARLEY_POD_UID]}"), workspace(), "agent sets"},
		"a type that there is not": {podTemplate("- {name: x, type: float, places: [env/X]}"), workspace(),
			"none of string, integer"},
		"twice the same": {podTemplate(version + version), workspace(), "declared twice"},
		"a default that is not allowed": {podTemplate("- {name: x, default: c, allowed: [a, b], places: [env/X]}"),
			workspace(), "default: \"c\" is not among the allowed values: a, b"},
		"an allowed value of another type": {podTemplate("- {name: x, type: integer, allowed: [a], places: [env/X]}"),
			workspace(), `allowed: "a" is no integer`},
		"no value and no default": {podTemplate("- {name: x, places: [env/X]}"), workspace(), "give a value for it"},
		"a value that is not allowed": {podTemplate(version), workspace("version", "1.27; rm -rf /"),
			"is not among the allowed values: 1.26, 1.27"},
		"a value for no parameter": {podTemplate(version), workspace("os", "linux"),
			`there is no parameter "os"; the template has: version`},
		"no quantity": {podTemplate("- {name: m, type: quantity, places: [limits/memory]}"), workspace("m", "lots"),
			`"lots" is no quantity`},
		"a negative quantity": {podTemplate("- {name: m, type: quantity, places: [limits/memory]}"), workspace("m", "-1Gi"),
			`"-1Gi" is no amount of memory`},
		"a NUL": {podTemplate("- {name: x, places: [env/X]}"), workspace("x", "a\x00b"), "NUL"},
		"no container": {podTemplate("", func(t *corev1.PodTemplate) { t.Template.Spec.Containers = nil }), workspace(),
			"no container"},
		"no image": {podTemplate("", container(func(c *corev1.Container) { c.Image = "" })), workspace(), "has no image"},
		"args without a command": {podTemplate("", container(func(c *corev1.Container) { c.Args = []string{"x"} })),
			workspace(), "give the command, too"},
		"a name that no chat can give": {podTemplate("- {name: 1x, places: [env/X]}"),
			workspace(), "begins with a letter"},
		"a pod that ends": {podTemplate("", func(t *corev1.PodTemplate) {
			t.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		}), workspace(), "restartPolicy is Never"},
		"a directory that is the root": {podTemplate("", func(t *corev1.PodTemplate) {
			t.Annotations[v1beta1.AnnotationDirectory] = "/"
		}), workspace(), "absolute path below /"},
		"a directory that leads up": {podTemplate("", func(t *corev1.PodTemplate) {
			t.Annotations[v1beta1.AnnotationDirectory] = "/files/../etc"
		}), workspace(), "absolute path below /"},
		"a volume of Parley's name": {podTemplate("", func(t *corev1.PodTemplate) {
			t.Template.Spec.Volumes = []corev1.Volume{{Name: "parley-agent"}}
		}), workspace(), "are Parley's"},
		"something in the agent's place": {podTemplate("", container(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: "/run/parley/agent"}}
		})), workspace(), "which is Parley's"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(c.workspace, c.template, settings)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Security (a hostile model): cannot put anything but a value into the place that the template names for it: no field,
// no argument, no kubelet variable. Also TestInvalidTemplatesAndValuesAreRejectedWithAdvice of
// internal/workspace/template.
func TestParameterValueIsSetOnlyAtItsTarget(t *testing.T) {
	from := podTemplate(`
- {name: image, default: golang:1, allowed: [golang:1, golang:2], places: [image]}
- {name: memory, type: quantity, default: 1Gi, places: [limits/memory, requests/memory]}
- {name: greeting, default: hi, places: [env/GREETING]}
- {name: zone, default: a, allowed: [a, b], places: [nodeSelector/zone, label/zone]}
- {name: disk, type: quantity, default: 5Gi, places: [storage]}
`, container(func(c *corev1.Container) {
		c.Command = []string{"serve", "$(GREETING)", "${greeting}", "greeting"}
		c.Env = []corev1.EnvVar{{Name: "GREETING", Value: "old"}, {Name: "OTHER", Value: "greeting"}}
	}))
	o := render(t, withStorage(workspace("image", "golang:2", "memory", "2Gi", "greeting", "a; b && $(c)", "zone", "b"),
		v1beta1.WorkspaceStorage{}), from)
	c := o.Pod.Spec.Containers[0]
	want := resource.MustParse("2Gi")
	if c.Image != "golang:2" || !c.Resources.Limits.Memory().Equal(want) || !c.Resources.Requests.Memory().Equal(want) {
		t.Errorf("the container is %+v", c)
	}
	env := map[string]string{}
	for _, e := range c.Env {
		if _, twice := env[e.Name]; twice {
			t.Errorf("%s is set twice", e.Name)
		}
		env[e.Name] = e.Value
	}
	if env["GREETING"] != "a; b && $$(c)" || env["OTHER"] != "greeting" || env["HOME"] != "/workspace" {
		t.Errorf("the environment is %v", env)
	}
	if o.Pod.Spec.NodeSelector["zone"] != "b" || o.Pod.Labels["zone"] != "b" {
		t.Errorf("it goes to %v with labels %v", o.Pod.Spec.NodeSelector, o.Pod.Labels)
	}
	check.Equal(t, "its storage is", "5Gi", o.Claim.Spec.Resources.Requests.Storage().String())
	o = render(t, withStorage(workspace("disk", "7Gi"), v1beta1.WorkspaceStorage{Size: "9Gi"}), from)
	if got := o.Claim.Spec.Resources.Requests.Storage().String(); got != "9Gi" {
		t.Errorf("its storage is %s, though the chat says otherwise", got)
	}
	if i := slices.Index(c.Args, "--"); !slices.Equal(c.Args[i+1:], []string{"serve", "$(GREETING)", "${greeting}", "greeting"}) {
		t.Errorf("it runs %q", c.Args)
	}
	check.Equal(t, "image of the template", "golang:1", from.Template.Spec.Containers[0].Image)
}

func TestWorkspaceIsRestrictedUnlessTemplateOverrides(t *testing.T) {
	spec := render(t, workspace(), podTemplate("")).Pod.Spec
	s, c := spec.SecurityContext, spec.Containers[0].SecurityContext
	if *spec.AutomountServiceAccountToken || *spec.EnableServiceLinks || !*s.RunAsNonRoot || *s.RunAsUser != user ||
		*s.FSGroup != user || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		*c.AllowPrivilegeEscalation || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("got %+v and %+v", s, c)
	}
	spec = render(t, workspace(), podTemplate("", func(t *corev1.PodTemplate) {
		t.Template.Spec.ServiceAccountName = "builder"
		t.Template.Spec.AutomountServiceAccountToken = new(true)
		t.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(1000))}
	})).Pod.Spec
	if !*spec.AutomountServiceAccountToken || *spec.Containers[0].SecurityContext.RunAsUser != 1000 {
		t.Errorf("what the template says is lost: %+v", spec)
	}
}

func TestTheAgentIsPlacedWithoutAShell(t *testing.T) {
	for placement, isPlaced := range map[Placement]func(corev1.PodSpec) bool{
		ImageVolume: func(s corev1.PodSpec) bool {
			return len(s.InitContainers) == 0 && slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool {
				return v.Name == "parley-agent" && v.Image != nil && v.Image.Reference == "parley:test"
			})
		},
		InitContainer: func(s corev1.PodSpec) bool {
			return slices.Equal(s.InitContainers[0].Command,
				[]string{"/workspace-agent", "copy-self", "/run/parley/agent/workspace-agent"}) &&
				*s.InitContainers[0].SecurityContext.AllowPrivilegeEscalation == false
		},
	} {
		t.Run(string(placement), func(t *testing.T) {
			s := settings
			s.Placement = placement
			o, err := Render(workspace(), podTemplate(""), s)
			check.OK(t, err)
			c := o.Pod.Spec.Containers[0]
			if !isPlaced(o.Pod.Spec) || !slices.Equal(c.Command, []string{"/run/parley/agent/workspace-agent"}) ||
				c.Args[0] != "init" || slices.Contains(c.Args, "--") {
				t.Errorf("got %+v", o.Pod.Spec)
			}
			check.Equal(t, "its files are in", "/workspace", DirectoryIn(o.Pod))
		})
	}
}

func TestContainerNamedWorkspaceIsChosenAmongSeveral(t *testing.T) {
	o := render(t, workspace(), podTemplate("", func(t *corev1.PodTemplate) {
		t.Template.Spec.Containers = append(t.Template.Spec.Containers,
			corev1.Container{Name: "workspace", Image: "tools", Command: []string{"sleep", "1"}})
	}))
	check.Equal(t, "command of the first container", nil, o.Pod.Spec.Containers[0].Command)
	check.Equal(t, "arguments of the workspace", "init", o.Pod.Spec.Containers[1].Args[0])
}

func TestRequestedStorageOutlivesPod(t *testing.T) {
	check.Equal(t, "claim", nil, render(t, workspace(), podTemplate("")).Claim)
	o := render(t, withStorage(workspace(), v1beta1.WorkspaceStorage{StorageClassName: "fast"}), podTemplate(""))
	if o.Claim.Name != o.Pod.Name || *o.Claim.Spec.StorageClassName != "fast" ||
		o.Claim.Spec.Resources.Requests.Storage().String() != DefaultStorage {
		t.Errorf("the claim is %+v", o.Claim)
	}
	if !slices.ContainsFunc(o.Pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == o.Claim.Name
	}) {
		t.Errorf("the pod does not use it: %+v", o.Pod.Spec.Volumes)
	}
}

func TestClaimDiffersFromWhatIsRequestedNow(t *testing.T) {
	requested := func(size, class string) *corev1.PersistentVolumeClaim {
		storage := v1beta1.WorkspaceStorage{StorageClassName: class, Size: size}
		return render(t, withStorage(workspace(), storage), podTemplate("")).Claim
	}
	claim := requested("2Gi", "fast")
	for name, c := range map[string]struct {
		now  *corev1.PersistentVolumeClaim
		want bool
	}{
		"the same":      {requested("2048Mi", "fast"), false},
		"less":          {requested("1Gi", "fast"), false},
		"more":          {requested("3Gi", "fast"), true},
		"another class": {requested("2Gi", "slow"), true},
		"any class":     {requested("2Gi", ""), false},
	} {
		check.Equal(t, name, c.want, Differs(claim, c.now))
	}
	check.Equal(t, "a claim without a class", true, Differs(requested("2Gi", ""), claim))
}

func TestCommandsAreKilledBeforeThePodIs(t *testing.T) {
	for termination, want := range map[*int64]time.Duration{
		nil: 20 * time.Second, new(int64(30)): 20 * time.Second, new(int64(5)): 3333 * time.Millisecond,
		new(int64(3600)): 3590 * time.Second, new(int64(0)): time.Second,
	} {
		check.Equal(t, "of seconds they have", want, grace(termination))
	}
}
