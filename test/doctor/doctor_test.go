// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor runs kubectl chat doctor on an installation of config/default and the stamp, with a real
// kube-apiserver and a real gateway. Tests break the installation one after another, and repair it.
package doctor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/doctor"
	"parley.dev/parley/internal/cli/verbs"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realgateway"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/waiting"
)

const (
	system = "parley-system"
	// patience is how long the API server may take to learn of a change.
	patience = time.Minute
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(realgateway.Main(func() int {
		return testcluster.Run(m, &cluster, func(ctx context.Context) (func(), error) { return nil, install(ctx) })
	}))
}

func install(ctx context.Context) error {
	return cluster.Install(ctx, testcluster.Path("config", "default"), testcluster.Path("config", "admission", "stamp"))
}

// installation is one with pods that are ready, a gateway, and a namespace in which a person may chat.
type installation struct {
	t          *testing.T
	namespace  string
	kubeconfig string
	gateway    string
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	i := &installation{t: t, namespace: cluster.Namespace(t, "team"), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	check.OK(t, cluster.WriteKubeconfig(i.kubeconfig))
	i.gateway = realgateway.Start(t, cluster.Config, system).URL
	cluster.Account(t, i.namespace, "person")
	cluster.Bind(t, i.namespace, "person", "ClusterRole", "parley-chat-user")
	for _, component := range []string{doctor.Manager, doctor.Gateway} {
		i.start(component)
	}
	i.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: shard.Scope{}.Lease()},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("parley-manager-0_incarnation"),
			RenewTime: new(metav1.NewMicroTime(time.Now().Add(time.Hour)))}})
	config := chattest.In(i.namespace, chattest.Config("small", chattest.Default))
	cluster.Create(t, config)
	meta.SetStatusCondition(&config.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionReady,
		Status: metav1.ConditionTrue, Reason: string(v1beta1.ReasonAccepted)})
	i.report(config)
	return i
}

// report writes the status of an object as the manager does.
func (i *installation) report(o client.Object) {
	i.t.Helper()
	asManager := rest.CopyConfig(cluster.Config)
	asManager.Impersonate.UserName = "system:serviceaccount:" + system + ":parley-manager"
	manager, err := client.New(asManager, client.Options{Scheme: cluster.Client.Scheme()})
	check.OK(i.t, err)
	check.OK(i.t, manager.Status().Update(i.t.Context(), o))
}

// start makes the replicas of a component ready, as its controller would, and creates one of them.
func (i *installation) start(component string) {
	i.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "parley-" + component}}
	i.get(d)
	d.Status = appsv1.DeploymentStatus{Replicas: *d.Spec.Replicas, ReadyReplicas: *d.Spec.Replicas}
	check.OK(i.t, cluster.Client.Status().Update(i.t.Context(), d))
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	pod.Namespace, pod.Name = system, d.Name+"-0"
	i.create(pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: component}}
	check.OK(i.t, cluster.Client.Status().Update(i.t.Context(), pod))
}

// create creates an object for the time of the test.
func (i *installation) create(o client.Object) {
	i.t.Helper()
	cluster.Create(i.t, o)
	i.t.Cleanup(func() {
		check.OK(i.t, cluster.Client.Delete(context.Background(), o, client.GracePeriodSeconds(0)))
	})
}

func (i *installation) get(o client.Object) {
	i.t.Helper()
	check.OK(i.t, cluster.Client.Get(i.t.Context(), client.ObjectKeyFromObject(o), o))
}

// run runs the plug-in as an administrator. The gateway knows the administrator as the person.
func (i *installation) run(args ...string) (code int, out string) {
	i.t.Helper()
	return run(i.t, append([]string{"doctor", "--kubeconfig", i.kubeconfig, "-n", i.namespace, "--gateway", i.gateway,
		"--service-account", "person"}, args...)...)
}

func run(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var printed, errors strings.Builder
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &errors}
	code = verbs.Run(t.Context(), streams, args)
	return code, printed.String() + errors.String()
}

// reports waits until doctor prints the words and ends with that code: the API server learns of a change by a watch.
func (i *installation) reports(code int, words string) {
	i.t.Helper()
	var last string
	waiting.Until(i.t, patience, "doctor reports "+words, func() bool {
		got, out := i.run()
		if last != out {
			i.t.Logf("%d:\n%s", got, out)
		}
		last = out
		return got == code && strings.Contains(out, words)
	})
}

func TestHealthyInstallationPasses(t *testing.T) {
	i := newInstallation(t)
	i.reports(0, "19 checks: 18 ok, 0 failed, 0 warnings, 1 not checked")
	code, out := i.run("-o", "json")
	var report doctor.Report
	check.OK(t, json.Unmarshal([]byte(out), &report))
	check.Equal(t, "exit code", 0, code)
	check.Equal(t, "checks that are OK", 18, report.Count(doctor.OK))
}

func TestFaultsOfAnInstallationAreReported(t *testing.T) {
	i := newInstallation(t)
	i.reports(0, " 0 failed")
	named := metav1.ObjectMeta{Name: "parley-messages"}
	stamp := metav1.ObjectMeta{Name: "parley-created-by"}
	deployed := metav1.ObjectMeta{Namespace: system, Name: "parley-manager"}
	for _, c := range []struct {
		what   string
		change func()
		code   int
		want   string
	}{
		{"a policy", i.deletes(&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: named}), 1,
			"failed       enforced: the API server accepts a message"},
		{"a binding", i.deletes(&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named}), 1,
			"failed       installed: policies have no binding that denies: parley-messages"},
		{"the rules of a policy", i.changesRules(&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: named}), 0,
			"warning      rules: policies have other rules than those of this plug-in's version: parley-messages"},
		{"the stamp", i.deletes(&admissionv1.MutatingAdmissionPolicy{ObjectMeta: stamp}), 0,
			"warning      stamp: who creates and edits chats and messages is not recorded"},
		{"a kind", i.deletes(definition("chatquotas")), 1, "failed       fields: parley.dev/v1beta1 lacks ChatQuota"},
		{"a field", i.dropsField, 1, "failed       fields: parley.dev/v1beta1 lacks Chat.status.idleSince"},
		{"the manager's rights", i.deletes(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "parley-manager"}}),
			1, "service account parley-system/parley-manager may not get chats.parley.dev in all namespaces"},
		{"the gateway's role", i.deletes(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "parley-gateway"}}),
			1, "parley-gateway may not create serviceaccounts/token parley-gateway in namespace parley-system"},
		{"the manager", i.deletes(&appsv1.Deployment{ObjectMeta: deployed}), 1,
			"failed       ready: namespace parley-system has no Deployment or StatefulSet parley-manager"},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.change()
			i.reports(c.code, c.want)
			check.OK(t, install(t.Context()))
		})
	}
}

func TestRightsOfGroupsAreNotMissing(t *testing.T) {
	i := newInstallation(t)
	t.Cleanup(func() { check.OK(t, install(context.Background())) })
	i.deletes(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "parley-manager"}})()
	i.reports(1, "service account parley-system/parley-manager may not get chats.parley.dev in all namespaces")
	i.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "group"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "parley-manager"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:" + system}}})
	i.reports(0, " 0 failed")
}

func (i *installation) deletes(o client.Object) func() {
	return func() { check.OK(i.t, cluster.Client.Delete(i.t.Context(), o)) }
}

// changesRules gives a policy another rule, as another version has.
func (i *installation) changesRules(o client.Object) func() {
	patch := client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op": "replace", "path": "/spec/validations/0/message", "value": "no"}]`))
	return func() { check.OK(i.t, cluster.Client.Patch(i.t.Context(), o, patch)) }
}

func definition(resource string) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	crd.SetName(resource + "." + v1beta1.GroupVersion.Group)
	return crd
}

func (i *installation) dropsField() {
	patch := `[{"op": "remove",
		"path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/idleSince"}]`
	check.OK(i.t, cluster.Client.Patch(i.t.Context(), definition("chats"),
		client.RawPatch(types.JSONPatchType, []byte(patch))))
}

func TestSilentGatewayFailsTheCheck(t *testing.T) {
	i := newInstallation(t)
	i.gateway = "http://127.0.0.1:1"
	i.reports(1, "failed       answer: asking the gateway: ")
}

func TestProbeWithoutReplyFailsAndLeavesNoChat(t *testing.T) {
	i := newInstallation(t)
	code, out := i.run("--probe", "--timeout", "1s")
	check.Equal(t, "exit code", 1, code)
	check.Contains(t, out, "failed       reply: timed out after 1s waiting for the reply")
	var chats v1beta1.ChatList
	check.OK(t, cluster.Client.List(t.Context(), &chats, client.InNamespace(i.namespace)))
	check.Equal(t, "chats", 0, len(chats.Items))
}

// person writes a kubeconfig of the person.
func (i *installation) person() (file string) {
	i.t.Helper()
	user := clientcmdapi.AuthInfo{Token: cluster.Token(i.t, i.namespace, "person")}
	config := clientcmdapi.Config{CurrentContext: "c",
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: cluster.Config.Host,
			CertificateAuthorityData: cluster.Config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": &user},
		Contexts:  map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c", Namespace: i.namespace}}}
	file = filepath.Join(i.t.TempDir(), "kubeconfig")
	check.OK(i.t, clientcmd.WriteToFile(config, file))
	return file
}

func TestMissingRightsFailNoCheck(t *testing.T) {
	i := newInstallation(t)
	i.reports(0, " 0 failed")
	file := i.person()
	code, out := run(t, "doctor", "--kubeconfig", file)
	check.Equal(t, "exit code of "+out, 0, code)
	check.Contains(t, out,
		"ok           enforced: the API server refuses a message that violates a policy",
		"not checked  ready: deployments.apps is forbidden: User",
		"not checked  rights: subjectaccessreviews.authorization.k8s.io is forbidden: User",
		"not checked  answer:", "ok           your rights: all are granted")
}
