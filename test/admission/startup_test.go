// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/denial"
	"parley.dev/parley/internal/kube/startup"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// TestClientsRetryWhilePoliciesStart holds a policy in the state in which one with parameters is for a moment after its
// installation and after a start of the API server, until a client was refused. Meanwhile no manager is ready.
func TestClientsRetryWhilePoliciesStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind *apiextensionsv1.CustomResourceDefinition
		// hold keeps the API server from reading objects of the kind, release lets it.
		hold, release func(*testing.T, *apiextensionsv1.CustomResourceDefinition)
		says          string
	}{
		"the kind of the parameters is not served": {parameterKind("Gate", "gates"),
			func(*testing.T, *apiextensionsv1.CustomResourceDefinition) {}, serve,
			"failed to find resource referenced by paramKind"},
		"the parameters are not read": {parameterKind("Latch", "latches"), serveUnreadable, makeReadable,
			"not yet synced to use for admission"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // The API server looks for new kinds every 30 s.
			c.hold(t, c.kind)
			chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: cluster.Namespace(t, "startup")}}
			bind(t, c.kind, chat.Namespace)
			var refused error
			if err := until(t.Context(), "chats are refused: "+c.says, func(ctx context.Context) bool {
				refused = cluster.Client.Create(ctx, chat.DeepCopy(), client.DryRunAll)
				return says(refused, c.says)
			}); err != nil {
				t.Fatalf("%v; the last answer is: %v", err, refused)
			}
			if !startup.IsRefusal(refused) || denial.Of(refused, chat.Name) != "" {
				t.Fatalf("a refusal that passes counts as a denial: %#v", refused)
			}

			ready := readiness(t, chat.Namespace, prometheus.NewRegistry())
			if ready(t.Context()) {
				t.Error("a manager is ready while chats are refused")
			}
			cfg, refusals := rest.CopyConfig(cluster.Config), 0
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrips(func(r *http.Request) (*http.Response, error) {
					answer, err := next.RoundTrip(r)
					if err == nil && answer.StatusCode >= http.StatusBadRequest {
						if refusals++; refusals == 1 {
							c.release(t, c.kind)
						}
					}
					return answer, err
				})
			})
			parley, err := apiclient.New(cfg, "parley-test")
			check.OK(t, err)
			// A new kind can take longer than one call retries.
			if err := until(t.Context(), "the chat is created", func(ctx context.Context) bool {
				_, err = parley.Chats(chat.Namespace).Create(ctx, chat)
				return !apierrors.IsServiceUnavailable(err)
			}); err != nil {
				t.Fatal(err)
			}
			if err != nil || refusals == 0 {
				t.Errorf("after %d refusals the client got: %v", refusals, err)
			}
			t.Logf("%d refusals: %v", refusals, refused)
			if err := until(t.Context(), "the manager is ready", ready); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestManagerNoticesAnUnboundPolicy is not parallel, because other tests need the policy.
func TestManagerNoticesAnUnboundPolicy(t *testing.T) {
	const name = "parley-immutable-prompts"
	inForce := probes[slices.IndexFunc(probes, func(p probe) bool { return p.name == name })].inForce
	var binding admissionv1.ValidatingAdmissionPolicyBinding
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, &binding))
	check.OK(t, cluster.Client.Delete(t.Context(), &binding))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		// The API server applies a deletion later. Otherwise it would do so after this test.
		check.OK(t, until(ctx, name+" is not in force", func(ctx context.Context) bool { return !inForce(ctx) }))
		binding.ResourceVersion = ""
		check.OK(t, cluster.Client.Create(ctx, &binding))
		check.OK(t, until(ctx, name+" is in force", inForce))
	})
	registry := prometheus.NewRegistry()
	readiness(t, ns, registry)
	check.OK(t, until(t.Context(), "the manager counts the policy", func(context.Context) bool {
		metrics, err := registry.Gather()
		check.OK(t, err)
		return metrics[0].GetMetric()[0].GetGauge().GetValue() == 1
	}))
}

// readiness starts the check of a manager in the namespace, without controllers, and reports whether it is ready.
func readiness(t *testing.T, namespace string, registry *prometheus.Registry) func(context.Context) bool {
	t.Helper()
	cfg, err := manager.config(t.Context())
	check.OK(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	address := listener.Addr().String()
	_ = listener.Close() // The manager listens there.
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: controllers.Scheme(), HealthProbeBindAddress: address,
		Metrics: metricsserver.Options{BindAddress: "0"}})
	if err == nil {
		err = controllers.AddPoliciesCheck(mgr, namespace, registry)
	}
	check.OK(t, err)
	go func() {
		if err := mgr.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	readyz := func(ctx context.Context) int {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil) // The URL is valid.
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0
		}
		_ = answer.Body.Close() // The status is enough.
		return answer.StatusCode
	}
	if err := until(t.Context(), "the manager answers probes",
		func(ctx context.Context) bool { return readyz(ctx) != 0 }); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) bool { return readyz(ctx) == http.StatusOK }
}

// roundTrips is a transport.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// parameterKind is a kind of Parley's group with two versions, of which the first is stored.
func parameterKind(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: name == "v1",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + v1beta1.GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: v1beta1.GroupVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural, Singular: strings.ToLower(kind),
				ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1"), version("v2")},
		},
	}
}

// serve installs the kind.
func serve(t *testing.T, kind *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{kind}}
	if _, err := envtest.InstallCRDs(cluster.Config, options); err != nil {
		t.Error(err) // It may be called by a client's transport.
	}
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(cluster.Config, options); err != nil {
			t.Error(err)
		}
	})
}

// serveUnreadable installs the kind with an object that nothing converts to the second version. Kubernetes 1.34 gets a
// list of parameters without the object and does not wait for it: its API server does not stream such lists yet.
func serveUnreadable(t *testing.T, kind *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	cluster.NeedsVersion(t, 1, 35)
	kind.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")}}}
	serve(t, kind)
	stored := &unstructured.Unstructured{}
	stored.SetAPIVersion(kind.Spec.Group + "/v1")
	stored.SetKind(kind.Spec.Names.Kind)
	stored.SetNamespace(metav1.NamespaceDefault)
	stored.SetName("stored")
	cluster.Create(t, stored)
}

// makeReadable has the API server convert objects of the kind itself.
func makeReadable(t *testing.T, kind *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName(kind.Name)
	const none = `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`
	patch := client.RawPatch(types.MergePatchType, []byte(none))
	if err := cluster.Client.Patch(t.Context(), definition, patch); err != nil {
		t.Error(err) // A client's transport calls it.
	}
}

// bind creates a policy on the chats of a namespace whose parameters are of the kind's second version.
func bind(t *testing.T, kind *apiextensionsv1.CustomResourceDefinition, namespace string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: unique("startup")}
	chats := admissionv1.NamedRuleWithOperations{}
	chats.Operations = []admissionv1.OperationType{admissionv1.Create}
	chats.Rule = admissionv1.Rule{APIGroups: []string{v1beta1.GroupVersion.Group},
		APIVersions: []string{v1beta1.GroupVersion.Version}, Resources: []string{"chats"}}
	allow := admissionv1.AllowAction
	for _, o := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			ParamKind: &admissionv1.ParamKind{APIVersion: kind.Spec.Group + "/v2", Kind: kind.Spec.Names.Kind},
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules:     []admissionv1.NamedRuleWithOperations{chats},
			},
			Validations: []admissionv1.Validation{{Expression: "true"}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta,
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
				ParamRef: &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: &allow},
			}},
	} {
		cluster.Create(t, o)
		t.Cleanup(func() { _ = cluster.Client.Delete(context.WithoutCancel(t.Context()), o) })
	}
}

// TestRequestsForChatsQueueByNamespace installs the component, and asks the API server in which queues requests wait.
// It is not parallel: the component limits how many requests of other tests run at once.
func TestRequestsForChatsQueueByNamespace(t *testing.T) {
	strict := client.WithFieldValidation(cluster.Client, "Strict")
	for _, o := range testcluster.Kustomized(t, "components: [CONFIG/fairness]") {
		check.OK(t, strict.Create(t.Context(), o))
		t.Cleanup(func() {
			if err := cluster.Client.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
	var schema flowcontrolv1.FlowSchema
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Name: "parley"}, &schema))
	const chats, others = "/apis/parley.dev/v1beta1/namespaces/" + ns + "/chats", "/api/v1/namespaces/" + ns + "/pods"
	in := func(user, path string, want bool) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true,
			func(ctx context.Context) (bool, error) {
				return (schemaOf(ctx, t, user, path) == string(schema.UID)) == want, nil
			}); err != nil {
			t.Errorf("%s for %s is in the queues of Parley: %v wanted, %v", path, user, want, err)
		}
	}
	for _, user := range []string{"ada", "system:serviceaccount:parley-system:parley-manager",
		"system:serviceaccount:" + ns + ":parley-generation"} {
		in(user, chats, true)
		in(user, chats+"/any/status", true)
		in(user, "/apis/parley.dev/v1beta1/chatmessages", true)
		in(user, others, false)
	}
}

// schemaOf is the UID of the FlowSchema that a request of the user matches, as the API server says.
func schemaOf(ctx context.Context, t *testing.T, user, path string) string {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	asking, err := rest.HTTPClientFor(config)
	check.OK(t, err)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	check.OK(t, err)
	response, err := asking.Do(request)
	check.OK(t, err)
	_ = response.Body.Close() // What it says does not matter.
	return response.Header.Get("X-Kubernetes-Pf-Flowschema-Uid")
}
