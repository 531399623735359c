// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Parley as it is installed: on a real cluster with real pods, through kubectl's own API and the
// kubectl plug-in. "make test-e2e" installs it; $KUBECONFIG names the cluster, $PARLEY_BIN the folder of the programs,
// and $IMAGE the image that Parley was installed from, with the scripted model in it.
//
// Tests are parallel unless they kill the manager, the gateway or the kubelet, measure time, or change objects of the
// whole cluster. Those run first, one by one.
package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/controllers"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

var (
	image = cmp.Or(os.Getenv("IMAGE"), "parley.dev/parley:dev")

	c    client.Client
	core kubernetes.Interface
	bin  string
)

func TestMain(m *testing.M) {
	bin = os.Getenv("PARLEY_BIN")
	if bin == "" || os.Getenv("KUBECONFIG") == "" {
		fmt.Fprintln(os.Stderr, "PARLEY_BIN and KUBECONFIG must be set: run make test-e2e")
		os.Exit(1)
	}
	ctrl.SetLogger(logr.Discard())
	cfg, err := ctrl.GetConfig()
	if err == nil {
		cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{} // Templates are filled in where Pod Security looks.
		if c, err = client.New(cfg, client.Options{Scheme: controllers.Scheme()}); err == nil {
			core, err = kubernetes.NewForConfig(cfg)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// world is a namespace with a model of its own and a person who may chat.
type world struct {
	t          *testing.T
	ns         string
	modelURL   string
	kubeconfig string
}

// newWorld creates a namespace in which Pod Security refuses all but restricted pods, a scripted model, a default
// ChatModelConfig that names it, and a person's kubeconfig.
func newWorld(t *testing.T, script modelserver.Script) *world {
	t.Helper()
	w := &world{t: t, ns: "e2e-" + rand.String(6)}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: w.ns, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	t.Cleanup(func() {
		_ = c.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}})
	})
	w.create(modelPod(w.ns))
	eventually(t, "the model answers", func() bool {
		var pod corev1.Pod
		if c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "model"}, &pod) != nil || pod.Status.PodIP == "" {
			return false
		}
		w.modelURL = "http://" + pod.Status.PodIP + ":8080/v1"
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
	})
	w.script(script)
	w.create(&corev1.Secret{ObjectMeta: w.meta("model"),
		StringData: map[string]string{"key": "sk-e2e-secret-key-0123456789"}})
	w.create(w.modelConfig("default"))
	w.person()
	return w
}

func (w *world) modelConfig(name string) *v1beta1.ChatModelConfig {
	return &v1beta1.ChatModelConfig{ObjectMeta: w.meta(name), Spec: v1beta1.ChatModelConfigSpec{
		Default: name == "default", Provider: v1beta1.ProviderOpenAICompatible, Model: "scripted", BaseURL: w.modelURL,
		APIKey: &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "model", Key: "key"}},
	}}
}

func modelPod(ns string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "model", Namespace: ns},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(1)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "model", Image: image, Command: []string{"/scripted-model"}, Args: []string{"--listen=:8080"},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)},
				}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// person writes a kubeconfig with the token of somebody who may chat in this namespace and reach the gateway.
func (w *world) person() {
	w.t.Helper()
	w.create(&corev1.ServiceAccount{ObjectMeta: w.meta("person")})
	subject := rbacv1.Subject{Kind: "ServiceAccount", Name: "person", Namespace: w.ns}
	w.create(&rbacv1.RoleBinding{ObjectMeta: w.meta("person"), Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "parley-chat-user"}})
	access := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.ns, Namespace: "parley-system"},
		Subjects: []rbacv1.Subject{subject},
		RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "parley-gateway-access"}}
	w.create(access)
	w.t.Cleanup(func() { _ = c.Delete(context.Background(), access) })
	request := &authenticationv1.TokenRequest{}
	check.OK(w.t, c.SubResource("token").Create(w.t.Context(), &corev1.ServiceAccount{ObjectMeta: w.meta("person")},
		request))
	cfg, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	check.OK(w.t, err)
	current := cfg.Contexts[cfg.CurrentContext]
	current.AuthInfo, current.Namespace = "person", w.ns
	cfg.AuthInfos["person"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	w.kubeconfig = filepath.Join(w.t.TempDir(), "kubeconfig")
	check.OK(w.t, clientcmd.WriteToFile(*cfg, w.kubeconfig))
}

// script tells the model what to say from now on, and forgets the requests so far.
func (w *world) script(s modelserver.Script) {
	w.t.Helper()
	body, err := json.Marshal(s)
	check.OK(w.t, err)
	if err := w.control("PUT", "script").Body(body).Do(w.t.Context()).Error(); err != nil {
		w.t.Fatalf("scripting the model: %v", err)
	}
}

// control reaches the model's own controls through the API server.
func (w *world) control(verb, what string) *rest.Request {
	return core.CoreV1().RESTClient().Verb(verb).Namespace(w.ns).Resource("pods").Name("model:8080").SubResource("proxy").
		Suffix("_control", what)
}

// requests are those that the model got since it was scripted.
func (w *world) requests() []modelserver.Record {
	w.t.Helper()
	raw, err := w.control("GET", "requests").DoRaw(w.t.Context())
	if err != nil {
		w.t.Fatalf("asking the model for its requests: %v", err)
	}
	var records []modelserver.Record
	check.OK(w.t, json.Unmarshal(raw, &records))
	return records
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: w.ns}
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := c.Create(w.t.Context(), o); err != nil {
		w.t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

// patience is how long a test waits for something that makes no progress, such as a program that compiles in a
// workspace of a busy machine.
const patience = 4 * time.Minute

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	whileMoving(t, what, func() (bool, int64) { return condition(), 0 })
}

// whileMoving waits until the condition holds. It fails if the progress does not change for the time of patience: a
// long conversation takes many times longer on a busy machine.
func whileMoving(t *testing.T, what string, condition func() (holds bool, progress int64)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for last := int64(0); ; {
		holds, progress := condition()
		switch {
		case holds:
			return
		case progress != last:
			last, deadline = progress, time.Now().Add(patience)
		case time.Now().After(deadline):
			t.Fatalf("the wait timed out: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}
