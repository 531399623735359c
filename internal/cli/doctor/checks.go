// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/config"
	"parley.dev/parley/internal/chat/modelconfig"
)

// checks are all checks, in the order of the report, with the facts that each needs. The finding of a check that does
// not apply is empty.
var checks = []struct {
	group, name, needs string
	judge              func(*Facts) Finding
}{
	{"Resource definitions", "fields", "openapi", checkFields},
	{"Admission policies", "installed", "policies bindings", checkPolicies},
	{"Admission policies", "rules", "policies stamps", checkRules},
	{"Admission policies", "enforced", "", checkEnforcement},
	{"Admission policies", "stamp", "stamps stamp-bindings", checkStamp},
	{"Versions", "kubernetes", "version", checkKubernetes},
	{"Versions", "images", "pods", checkImages},
	{"Versions", "generation pods", "deployments statefulsets generation-pods", checkGenerationPods},
	{"Versions", "plug-in", "pods", checkPlugin},
	{"Manager", "ready", "deployments statefulsets", func(f *Facts) Finding { return checkWorkload(f, Manager) }},
	{"Manager", "restarts", "pods", func(f *Facts) Finding { return checkRestarts(f, Manager) }},
	{"Manager", "namespaces", "deployments statefulsets", checkNamespaces},
	{"Manager", "leader", "lease", checkLeader},
	{"Manager", "rights", "rights-manager", func(f *Facts) Finding { return checkRights(f, Manager) }},
	{"Gateway", "ready", "deployments statefulsets", func(f *Facts) Finding { return checkWorkload(f, Gateway) }},
	{"Gateway", "restarts", "pods", func(f *Facts) Finding { return checkRestarts(f, Gateway) }},
	{"Gateway", "rights", "rights-gateway", func(f *Facts) Finding { return checkRights(f, Gateway) }},
	{"Gateway", "answer", "answer", func(f *Facts) Finding { return ok("it answers for namespace %s", f.Namespace) }},
	{"Namespace", "your rights", "rights-caller", func(f *Facts) Finding { return checkRights(f, Caller) }},
	{"Namespace", "model", "models", checkModel},
	{"Namespace", "reply", "reply", checkReply},
}

const (
	upgrade = "install the manifests of the version that you use, from its install.yaml or chart"
	// recent is how long ago a restart is reported.
	recent = 10 * time.Minute
)

// oldestKubernetes is that of the chart.
var oldestKubernetes = version.MustParseGeneric("1.33.0")

// listed joins names, the first few of many.
func listed(names []string) string {
	if most := 5; len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func checkFields(f *Facts) Finding {
	published := f.OpenAPI.Components.Schemas
	if len(published) == 0 {
		return finding(Failed, "install Parley: see docs/how-to/installing.md", "%s is not served", v1beta1.GroupVersion)
	}
	if lacks := missingFields(published); len(lacks) > 0 {
		return finding(Failed, upgrade, "%s lacks %s", v1beta1.GroupVersion, listed(lacks))
	}
	return ok("%s is served, with all kinds and fields of this plug-in", v1beta1.GroupVersion)
}

func checkPolicies(f *Facts) Finding {
	lacks, unbound := config.UnenforcedPolicies(f.Policies.metadata(), f.Bindings.Items)
	switch {
	case len(lacks) > 0:
		return finding(Failed, upgrade, "policies are missing, so that statuses can be forged: %s", listed(lacks))
	case len(unbound) > 0:
		return finding(Failed, upgrade, "policies have no binding that denies: %s", listed(unbound))
	}
	return ok("all policies and their bindings are installed")
}

func checkRules(f *Facts) Finding {
	changed := append(config.ChangedPolicies("admission", "ValidatingAdmissionPolicy", f.Policies.Items),
		config.ChangedPolicies("admission/stamp", "MutatingAdmissionPolicy", f.Stamps.Items)...)
	own, manager, err := f.versions()
	switch {
	case len(changed) == 0:
		return ok("all policies have the rules of this plug-in's version")
	case err == nil && !own.EqualTo(manager):
		return finding(NotChecked, "", "this plug-in is v%s and the manager v%s, whose policies may have other rules", own,
			manager)
	}
	return finding(Warning, upgrade+", and config/admission/stamp or stamp.yaml, too",
		"policies have other rules than those of this plug-in's version: %s", listed(changed))
}

func checkEnforcement(f *Facts) Finding {
	err := f.Errors["message"]
	switch {
	case err == nil:
		return finding(Failed, "see whether the policies are installed, and try again in a minute",
			"the API server accepts a message that the policy parley-messages must refuse")
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'parley-messages'"):
		return ok("the API server refuses a message that violates a policy")
	}
	return f.unread([]string{"message"})
}

func checkStamp(f *Facts) Finding {
	lacks := append(missing("admission/stamp", "MutatingAdmissionPolicy", f.Stamps.metadata()),
		missing("admission/stamp", "MutatingAdmissionPolicyBinding", f.StampBindings.Items)...)
	if slices.Sort(lacks); len(lacks) > 0 {
		return finding(Warning, "install config/admission/stamp, which needs Kubernetes 1.36 or later",
			"who creates and edits chats and messages is not recorded: there is no MutatingAdmissionPolicy, or no binding, %s",
			listed(slices.Compact(lacks)))
	}
	return ok("who creates and edits chats and messages is recorded")
}

func checkKubernetes(f *Facts) Finding {
	found, err := version.ParseGeneric(f.Kubernetes.GitVersion)
	if err != nil || found.LessThan(oldestKubernetes) {
		return finding(Failed, "upgrade the cluster", "Kubernetes is %s, and Parley needs %s or later",
			f.Kubernetes.GitVersion, oldestKubernetes)
	}
	return ok("Kubernetes is %s", f.Kubernetes.GitVersion)
}

// imagesOf are the different images of the containers of a name. Pods that are being deleted do not count: they outlive
// the rollout that replaced them by some seconds. Nor do those that have ended, such as evicted ones: nothing deletes
// them.
func imagesOf(pods *corev1.PodList, container string) (images []string) {
	for i := range pods.Items {
		phase := pods.Items[i].Status.Phase
		if pods.Items[i].DeletionTimestamp != nil || phase == corev1.PodFailed || phase == corev1.PodSucceeded {
			continue
		}
		for _, c := range pods.Items[i].Spec.Containers {
			if c.Name == container && !slices.Contains(images, c.Image) {
				images = append(images, c.Image)
			}
		}
	}
	return images
}

func checkImages(f *Facts) Finding {
	manager, gateway := imagesOf(&f.Pods, Manager), imagesOf(&f.Pods, Gateway)
	switch {
	case len(manager) == 0 || len(gateway) == 0:
		return Finding{} // Other checks find that there are no pods.
	case len(manager) == 1 && slices.Equal(manager, gateway):
		return ok("manager and gateway run %s", manager[0])
	}
	return finding(Warning, "wait until the rollouts are complete, or use the same image for both",
		"the manager runs %s, the gateway %s", listed(manager), listed(gateway))
}

func checkGenerationPods(f *Facts) Finding {
	want, images := f.setting(Manager, "image", "PARLEY_IMAGE"), imagesOf(&f.Generation, "generator")
	if want == "" || len(images) == 0 {
		return Finding{}
	}
	for _, image := range images {
		if image != want {
			return finding(Warning, "wait: the manager replaces them when their chats are idle",
				"pods run %s, and $PARLEY_IMAGE of the manager is %s", image, want)
		}
	}
	return ok("they run $PARLEY_IMAGE of the manager")
}

// versions are those of this plug-in and of the manager.
func (f *Facts) versions() (own, manager *version.Version, err error) {
	name, _, _ := strings.Cut(append(imagesOf(&f.Pods, Manager), "")[0], "@")
	own, ownErr := version.ParseSemantic(f.Plugin)
	manager, err = version.ParseSemantic(name[strings.LastIndex(name, ":")+1:])
	return own, manager, cmp.Or(ownErr, err)
}

func checkPlugin(f *Facts) Finding {
	images := imagesOf(&f.Pods, Manager)
	if len(images) == 0 {
		return Finding{}
	}
	own, manager, err := f.versions()
	switch {
	case err != nil:
		return finding(NotChecked, "", "this plug-in is %s, which cannot be compared with %s", f.Plugin, images[0])
	case own.Major() != manager.Major() || own.Minor() > manager.Minor()+1 || manager.Minor() > own.Minor()+1:
		return finding(Warning, "use the plug-in of the release that is installed",
			"this plug-in is v%s and the manager v%s: more than one minor version apart", own, manager)
	}
	return ok("this plug-in is v%s, and the manager v%s", own, manager)
}

func checkWorkload(f *Facts, component string) Finding {
	w := f.workload(component)
	if w == nil {
		return finding(Failed, "install Parley, or name its namespace with --gateway-namespace",
			"namespace %s has no Deployment or StatefulSet parley-%s", f.System, component)
	}
	ready, replicas := w.Status.ReadyReplicas, *cmp.Or(w.Spec.Replicas, new(int32(1)))
	if replicas == 0 || ready < replicas {
		advice := fmt.Sprintf("see kubectl -n %s describe pods -l app.kubernetes.io/component=%s", f.System, component)
		if replicas == 0 {
			advice = fmt.Sprintf("it is scaled to 0: raise the replicas of parley-%s in namespace %s", component, f.System)
		}
		return finding(Failed, advice, "%d of %d replicas of parley-%s are ready", ready, replicas, component)
	}
	return ok("%d of %d replicas of parley-%s are ready", ready, replicas, component)
}

func checkRestarts(f *Facts, component string) Finding {
	for _, pod := range f.Pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			last := c.LastTerminationState.Terminated
			if c.Name == component && last != nil && f.Now.Sub(last.FinishedAt.Time) < recent {
				return finding(Warning, fmt.Sprintf("see kubectl -n %s logs --previous %s", f.System, pod.Name),
					"pod %s restarted in the last 10 minutes: %s, exit code %d", pod.Name, last.Reason, last.ExitCode)
			}
		}
	}
	return ok("none in the last 10 minutes")
}

func checkNamespaces(f *Facts) Finding {
	names := f.namespaces(Manager)
	switch {
	case f.workload(Manager) == nil:
		return Finding{}
	case len(names) == 0:
		return ok("it works for all namespaces")
	case !slices.Contains(names, f.Namespace):
		return finding(Failed, "add it to --namespaces, or name another one with --namespace",
			"it works for %s, and not for %s", listed(names), f.Namespace)
	}
	return ok("it works for %s", listed(names))
}

// longestRenewal is how old the last renewal of a lease may be: far more than a leader takes, since the clock here may
// be another one than the manager's.
const longestRenewal = time.Minute

func checkLeader(f *Facts) Finding {
	name, lease := f.LeaseName(), f.Lease.Spec
	switch {
	case name == "":
		return Finding{}
	case lease.HolderIdentity == nil || lease.RenewTime == nil || f.Now.Sub(lease.RenewTime.Time) > longestRenewal:
		return finding(Failed, "see the logs of the manager", "no replica holds the Lease %s", name)
	}
	pod, _, _ := strings.Cut(*lease.HolderIdentity, "_")
	return ok("it is %s; ready standbys: %d", pod, max(0, f.workload(Manager).Status.ReadyReplicas-1))
}

func checkRights(f *Facts, who string) Finding {
	subject, advice := fmt.Sprintf("service account %s/parley-%s", f.System, who), upgrade
	if who == Caller {
		subject, advice = "you", "ask for the ClusterRole parley-chat-user in namespace "+f.Namespace
	}
	var lacks []string
	for _, r := range f.Denied[who] {
		resource := schema.GroupResource{Group: r.Group, Resource: strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")}
		in := "in all namespaces"
		if r.Namespace != "" {
			in = "in namespace " + r.Namespace
		}
		lacks = append(lacks, strings.Join(strings.Fields(r.Verb+" "+resource.String()+" "+r.Name+" "+in), " "))
	}
	if len(lacks) > 0 {
		return finding(Failed, advice, "%s may not %s", subject, listed(lacks))
	}
	return ok("all are granted")
}

func checkModel(f *Facts) Finding {
	config := modelconfig.FirstDefault(f.Models.Items)
	switch {
	case len(f.Models.Items) == 0:
		return finding(Failed, "create one: see docs/how-to/models.md", "namespace %s has no ChatModelConfig", f.Namespace)
	case config == nil:
		return finding(Warning, "set default: true on one of them, or name one in each chat or ChatClass",
			"none of the %d ChatModelConfigs is the default", len(f.Models.Items))
	}
	ready := meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionReady)
	switch {
	case ready == nil:
		return finding(Warning, "see whether the manager is ready", "ChatModelConfig %s has no status", config.Name)
	case ready.Status != metav1.ConditionTrue:
		return finding(Failed, "", "ChatModelConfig %s is not ready: %s: %s", config.Name, ready.Reason, ready.Message)
	}
	return ok("ChatModelConfig %s is ready: %s: %s", config.Name, ready.Reason, ready.Message)
}

func checkReply(f *Facts) Finding {
	if f.Reply == 0 {
		return Finding{}
	}
	return ok("a chat was answered after %s", f.Reply.Round(10*time.Millisecond))
}
