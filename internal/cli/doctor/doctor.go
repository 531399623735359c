// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor decides from what was read of a cluster whether Parley is installed correctly, and which fields of
// objects a support archive has. It is pure.
package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/config"
	"parley.dev/parley/internal/kube/shard"
)

// Manager and Gateway are components, which are the names of their containers, too. Caller is who runs the checks.
const (
	Manager = "manager"
	Gateway = "gateway"
	Caller  = "caller"
)

// Facts are what was read of an installation. What could not be read is empty.
type Facts struct {
	Now time.Time
	// Namespace is that of the chats, and System that of the manager and the gateway.
	Namespace, System string
	// Plugin is the version of this program.
	Plugin     string
	Kubernetes version.Info

	// OpenAPI has the schemas that the API server publishes, to every user, of established resource definitions.
	OpenAPI struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	Bindings         admissionv1.ValidatingAdmissionPolicyBindingList
	Policies, Stamps Policies
	StampBindings    metav1.PartialObjectMetadataList

	// StatefulSets have the fields of Deployments that are of interest here.
	Deployments, StatefulSets appsv1.DeploymentList
	// Pods are those in System, and Generation the generation pods in Namespace.
	Pods, Generation corev1.PodList
	Lease            coordinationv1.Lease
	Models           v1beta1.ChatModelConfigList
	// Denied are the rights that the components and the caller lack.
	Denied map[string][]authorizationv1.ResourceAttributes
	// Reply is how long the reply to the chat of a probe took.
	Reply time.Duration

	// Errors are why facts could not be read, by the names that checks have for them.
	Errors map[string]error
}

// Policies are admission policies.
type Policies struct {
	Items []config.Policy `json:"items"`
}

func (p Policies) metadata() (all []metav1.PartialObjectMetadata) {
	for i := range p.Items {
		all = append(all, p.Items[i].PartialObjectMetadata)
	}
	return all
}

// NotCheckedError is why a check was not made. It is no fault of the installation.
type NotCheckedError struct{ Err error }

func (e NotCheckedError) Error() string { return e.Err.Error() }

// Result is the outcome of a check.
type Result string

// Results of checks.
const (
	OK         Result = "OK"
	Warning    Result = "Warning"
	Failed     Result = "Failed"
	NotChecked Result = "NotChecked"
)

// Finding is what a check found, and what to do.
type Finding struct {
	Group   string `json:"group"`
	Check   string `json:"check"`
	Result  Result `json:"result"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// Report is what all checks found.
type Report struct {
	Checks []Finding `json:"checks"`
}

// Count is the number of checks with a result.
func (r *Report) Count(result Result) (n int) {
	for i := range r.Checks {
		if r.Checks[i].Result == result {
			n++
		}
	}
	return n
}

// Examine makes all checks that apply.
func Examine(f *Facts) *Report {
	r := &Report{}
	for _, c := range checks {
		finding := f.unread(strings.Fields(c.needs))
		if finding.Result == "" {
			finding = c.judge(f)
		}
		if finding.Group, finding.Check = c.group, c.name; finding.Result != "" {
			r.Checks = append(r.Checks, finding)
		}
	}
	return r
}

// unread is the finding of a check whose facts could not be read. The API server's error names the missing right.
func (f *Facts) unread(needs []string) Finding {
	for _, need := range needs {
		err := f.Errors[need]
		_, isExcused := errors.AsType[NotCheckedError](err)
		switch {
		case err == nil:
		case isExcused || strings.Contains(err.Error(), " is forbidden: User "): // A port-forward has no more than the text.
			return finding(NotChecked, "", "%v", err)
		default:
			return finding(Failed, "", "%v", err)
		}
	}
	return Finding{}
}

func finding(result Result, advice, format string, args ...any) Finding {
	return Finding{Result: result, Message: fmt.Sprintf(format, args...), Advice: advice}
}

func ok(format string, args ...any) Finding { return finding(OK, "", format, args...) }

// workload is the Deployment or StatefulSet of a component; nil if there is none.
func (f *Facts) workload(component string) *appsv1.Deployment {
	for _, list := range [][]appsv1.Deployment{f.Deployments.Items, f.StatefulSets.Items} {
		for i := range list {
			if list[i].Name == "parley-"+component {
				return &list[i]
			}
		}
	}
	return nil
}

// setting is a flag of a component, or the environment variable that is its default; empty: neither is set.
func (f *Facts) setting(component, flag, variable string) (value string) {
	w := f.workload(component)
	if w == nil {
		return ""
	}
	for _, c := range w.Spec.Template.Spec.Containers {
		for _, e := range c.Env {
			if c.Name == component && e.Name == variable {
				value = e.Value
			}
		}
		args := append(strings.Fields(strings.ReplaceAll(strings.Join(c.Args, " "), "=", " ")), "true")
		if at := slices.Index(args, "--"+flag); c.Name == component && at >= 0 {
			value = args[at+1]
		}
	}
	return value
}

// namespaces are those that the component is limited to; none: all.
func (f *Facts) namespaces(component string) []string {
	names, _ := shard.ParseNamespaces(f.setting(component, "namespaces", "PARLEY_NAMESPACES"))
	return names // None of an invalid list, with which the component does not start.
}

// LeaseName is the name of the Lease by which the replicas of the manager, or of its first shard, elect a leader; empty
// if they do not.
func (f *Facts) LeaseName() string {
	if elects := f.setting(Manager, "leader-elect", ""); elects == "" || elects == "false" {
		return ""
	}
	return shard.Scope{Namespaces: f.namespaces(Manager)}.Lease()
}

// Rights are the rights that a component or the caller needs.
func (f *Facts) Rights(who string) (all []authorizationv1.ResourceAttributes) {
	if who == Caller {
		return roleRights("ClusterRole", "parley-chat-user", f.Namespace)
	}
	namespaces := f.namespaces(who)
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		all = append(all, roleRights("ClusterRole", "parley-"+who, namespace)...)
	}
	return append(append(all, roleRights("ClusterRole", "parley-"+who+"-cluster", metav1.NamespaceAll)...),
		roleRights("Role", "parley-"+who, f.System)...)
}
