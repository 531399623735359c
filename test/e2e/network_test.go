// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// allowed are connections that the documentation allows, by the pod that opens them.
var allowed = map[string]string{
	"generation": "neighbor:8080 foreign:8080 api:443 node:80 metadata:443 dns:53 gateway:8080 workspace:7080",
	"workspace":  "dns:53 node:53 openshiftDNS:53",
	"gateway":    "api:443 generation:7070 workspace:7080",
	"manager":    "api:443",
	"neighbor":   "gateway:8080",
	"foreign":    "gateway:8080",
	"scraper":    "gateway:8082 generation:8082 generation:7071 manager:8080",
}

// denied are connections that NetworkPolicies prevent.
var denied = map[string]string{
	"generation": "metadata:80 metadataService:80 manager:8080 gateway:8082",
	"workspace": "neighbor:8080 foreign:8080 api:443 node:80 node:443 node:10250 metadata:80 gateway:8080 manager:8080 " +
		"generation:7070",
	"gateway":         "generation:8082 manager:8080",
	"neighbor":        "generation:7070 generation:8082 generation:7071 workspace:7080 manager:8080",
	"foreign":         "generation:7070 generation:8082 workspace:7080 manager:8080 manager:8081 gateway:8082",
	"otherGeneration": "generation:7070 workspace:7080 metadata:80",
	"scraper":         "generation:7070 workspace:7080 manager:8081",
}

// alibabaMetadata is an address of a metadata service that, unlike link-local ones, the endpoint of a Service can have.
const alibabaMetadata = "100.100.100.200"

// network is a cluster that enforces NetworkPolicies, with what is at the ends of the connections.
type network struct {
	t *testing.T
	// addresses by name.
	addresses map[string]string
	// processes are the numbers that processes of pods have on the node, by the name of the pod.
	processes map[string]string
}

// TestNetworkPoliciesAllowOnlyDocumentedTraffic also shows that an additional policy that allows everything allows each
// denied connection, so that nothing else prevents it.
//
// Security (a hostile workspace): cannot reach another pod, the API server or the metadata service of a cloud, where
// the cluster enforces NetworkPolicies, nor its node, where they hold for nodes: only port 53 and the DNS of OpenShift.
// Also TestNetworkPolicyAllowsOnlyNamedPeers of internal/workspace/template; TestWorkspacePodMatchesTemplate of
// test/integration.
func TestNetworkPoliciesAllowOnlyDocumentedTraffic(t *testing.T) {
	if os.Getenv("CLUSTER_EXEC") == "" {
		t.Skip("it needs a local cluster that enforces NetworkPolicies: run make test-network")
	}
	n := &network{t, map[string]string{"metadata": "169.254.169.254"}, map[string]string{}}
	for _, address := range []string{n.addresses["metadata"], alibabaMetadata} {
		n.onNode("ip address add " + address + "/32 dev lo")
		t.Cleanup(func() { n.onNode("ip address delete " + address + "/32 dev lo") })
	}
	chats, models := n.populate()

	var policies []client.Object
	for _, namespace := range []string{chats, models, "parley-system"} {
		policies = append(policies, allowEverything(t, namespace))
	}
	n.opens("all with a policy that allows everything", list(allowed, denied))
	for _, policy := range policies {
		check.OK(t, c.Delete(t.Context(), policy))
	}
	n.opens("only documented ones without that policy", list(allowed))
}

// populate creates three namespaces: one with a chat that works in a workspace, one with its model, which is named by a
// Service, and one whose pods may read metrics.
func (n *network) populate() (chats, models string) {
	n.t.Helper()
	var none modelserver.Script
	w, other, scrapers := newWorld(n.t, none), newWorld(n.t, none), newWorld(n.t, none)
	other.createServices()
	w.patch(w.modelConfig("default"), `{"spec": {"baseURL": "http://model.%s/v1"}}`, other.ns)
	script := works(callOf("execute", map[string]any{"command": "nslookup model." + other.ns + ".svc.cluster.local"}))
	script.Rules = append(script.Rules[:1:1], modelserver.Rule{Reply: say("Done.")})
	script.Rules[0].Match.LastUserText = "Work."
	other.script(script)

	w.template("shell")
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Work.",
		Workspace: &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}}})
	w.ready("c", 4)
	check.Contains(n.t, w.results("c")[0].Output, "Address: 10.96.")
	other.newChat("c", "hello")
	other.ready("c", 2)

	scrapers.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scrapers.ns}},
		`{"metadata": {"labels": {"parley.dev/metrics": "true", "pod-security.kubernetes.io/enforce": "privileged"}}}`)
	scrapers.createOnNode()
	n.createOpenShiftDNS()
	n.findAll(w.ns, other.ns, scrapers.ns)
	return w.ns, other.ns
}

// createServices creates a Service of the namespace's model, whose pod gets the label of gateways, and one that leads
// to a metadata service.
func (w *world) createServices() {
	w.t.Helper()
	labels := map[string]string{"app.kubernetes.io/component": "gateway"}
	w.patch(modelPod(w.ns), `{"metadata": {"labels": {"app.kubernetes.io/component": "gateway"}}}`)
	w.create(&corev1.Service{ObjectMeta: w.meta("model"), Spec: corev1.ServiceSpec{Selector: labels,
		Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}})
	w.create(&corev1.Service{ObjectMeta: w.meta("metadata"),
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	endpoints := &discoveryv1.EndpointSlice{
		ObjectMeta: w.meta("metadata"), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{alibabaMetadata}}},
		Ports:     []discoveryv1.EndpointPort{{Port: new(int32(80))}}}
	endpoints.Labels = map[string]string{discoveryv1.LabelServiceName: "metadata"}
	w.create(endpoints)
}

// createOnNode creates a pod that listens on the addresses of its node.
func (w *world) createOnNode() {
	w.t.Helper()
	pod := modelPodOn(w.ns, 80)
	pod.Name, pod.Labels = "node", map[string]string{"app": "node"}
	pod.Spec.HostNetwork, pod.Spec.SecurityContext = true, nil
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(0))}
	w.create(pod)
}

// createOpenShiftDNS creates a DNS server as OpenShift has it: the port of its pods is not that of its Service.
func (n *network) createOpenShiftDNS() {
	n.t.Helper()
	w := &world{t: n.t, ns: "openshift-dns"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}
	eventually(n.t, "no namespace is left of an earlier test", func() bool {
		return c.Create(n.t.Context(), namespace) == nil
	})
	n.t.Cleanup(func() { _ = c.Delete(context.Background(), namespace) })
	pod := modelPodOn(w.ns, 5353)
	pod.Labels = map[string]string{"app": "dns"}
	w.create(pod)
	w.create(&corev1.Service{ObjectMeta: w.meta("dns-default"), Spec: corev1.ServiceSpec{Selector: pod.Labels,
		Ports: []corev1.ServicePort{{Port: 53, TargetPort: intstr.FromInt32(5353)}}}})
}

// modelPodOn is a pod of the scripted model that listens on the port.
func modelPodOn(namespace string, port int32) *corev1.Pod {
	pod := modelPod(namespace)
	pod.Spec.Containers[0].Args = []string{fmt.Sprint("--listen=:", port)}
	pod.Spec.Containers[0].ReadinessProbe.HTTPGet.Port = intstr.FromInt32(port)
	return pod
}

// findAll finds the addresses of pods and Services, and the processes of pods.
func (n *network) findAll(chats, models, scrapers string) {
	n.t.Helper()
	for name, at := range map[string]struct{ namespace, labels string }{
		"generation":      {chats, "parley.dev/component=generation"},
		"workspace":       {chats, "parley.dev/component=workspace"},
		"neighbor":        {chats, "!parley.dev/component"},
		"otherGeneration": {models, "parley.dev/component=generation"},
		"foreign":         {models, "app.kubernetes.io/component=gateway"},
		"scraper":         {scrapers, "!app"},
		"node":            {scrapers, "app=node"},
		"gateway":         {"parley-system", "app.kubernetes.io/component=gateway"},
		"manager":         {"parley-system", "app.kubernetes.io/component=manager"},
	} {
		eventually(n.t, name+" has an address and a process", func() bool {
			pods, err := core.CoreV1().Pods(at.namespace).List(n.t.Context(), metav1.ListOptions{LabelSelector: at.labels})
			check.OK(n.t, err)
			i := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil })
			if i < 0 {
				return false
			}
			files := strings.Split(n.onNode(fmt.Sprintf("grep -sl pod%s /proc/[0-9]*/cgroup || true", pods.Items[i].UID)), "/")
			if len(files) < 3 {
				return false
			}
			n.addresses[name], n.processes[name] = pods.Items[i].Status.PodIP, files[2]
			return n.addresses[name] != ""
		})
	}
	for name, key := range map[string]client.ObjectKey{
		"api": {Namespace: "default", Name: "kubernetes"}, "dns": {Namespace: "kube-system", Name: "kube-dns"},
		"openshiftDNS":    {Namespace: "openshift-dns", Name: "dns-default"},
		"metadataService": {Namespace: models, Name: "metadata"},
	} {
		var service corev1.Service
		check.OK(n.t, c.Get(n.t.Context(), key, &service))
		n.addresses[name] = service.Spec.ClusterIP
	}
}

// allowEverything creates a policy that allows all connections from and to the pods of a namespace.
func allowEverything(t *testing.T, namespace string) client.Object {
	t.Helper()
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "everything", Namespace: namespace},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{}}, Egress: []networkingv1.NetworkPolicyEgressRule{{}},
		},
	}
	check.OK(t, c.Create(t.Context(), policy))
	t.Cleanup(func() { _ = c.Delete(context.Background(), policy) })
	return policy
}

// list is a sorted list of connections, each as "from to:port".
func list(connections ...map[string]string) (all []string) {
	for _, some := range connections {
		for from, to := range some {
			for address := range strings.FieldsSeq(to) {
				all = append(all, from+" "+address)
			}
		}
	}
	slices.Sort(all)
	return all
}

// opens waits until these connections can be opened, and no others of the test.
func (n *network) opens(which string, want []string) {
	n.t.Helper()
	var got []string
	defer func() { check.Equal(n.t, "connections: "+which, want, got) }()
	eventually(n.t, "connections can be opened: "+which, func() bool {
		got = n.open()
		return slices.Equal(want, got)
	})
}

// open returns the connections that can be opened now.
func (n *network) open() []string {
	n.t.Helper()
	var script strings.Builder
	for _, connection := range list(allowed, denied) {
		from, to, _ := strings.Cut(connection, " ")
		name, port, _ := strings.Cut(to, ":")
		fmt.Fprintf(&script, "nsenter --net=/proc/%s/ns/net timeout 5 bash -c '</dev/tcp/%s/%s' 2>/dev/null && echo %s &\n",
			n.processes[from], n.addresses[name], port, connection)
	}
	opened := strings.Split(strings.TrimSpace(n.onNode(script.String()+"wait")), "\n")
	slices.Sort(opened)
	return opened
}

// onNode runs a script on the node.
func (n *network) onNode(script string) string {
	n.t.Helper()
	command := append(strings.Fields(os.Getenv("CLUSTER_EXEC")), "bash", "-c", script)
	out, err := exec.CommandContext(context.Background(), command[0], command[1:]...).Output()
	if err != nil {
		n.t.Fatalf("running %q on the node: %v", script, err)
	}
	return string(out)
}
