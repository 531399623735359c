// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission shows who may write what: what the roles and the admission policies that are installed with Parley
// let people, generation pods, the gateway and the manager do, on a real kube-apiserver and etcd. Everything is
// installed as a user installs it, with kubectl from config/. Each table names who does what, and of a refusal the
// words that say what to do instead.
//
// Tests run in parallel and share two namespaces, in which each uses names of its own. A test is not parallel if it
// changes what others rely on: policies, resource definitions, the manager's account, or a label or the default class
// of a namespace. Nor is one that runs the manager, which acts on the chats and pods of all namespaces. Go runs these
// first, one at a time.
package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/agentsandbox"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/realgateway"
	"parley.dev/parley/test/kit/testcluster"
)

const (
	// ns is the namespace that people chat in; its generation pods are those of podA and podB.
	ns = "team"
	// otherNS is another one, with the generation pod of podC.
	otherNS = "others"
	// patience is how long a policy may take to be in force.
	patience = 60 * time.Second
)

var (
	cluster *testcluster.Cluster
	// kubeconfig is a file that reaches the cluster as an administrator.
	kubeconfig string
	// canStamp is whether the policies of config/admission/stamp are installed. Kubernetes before 1.36 has no such kind.
	canStamp bool
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(realgateway.Main(func() int { return runAll(m) }))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "parley-admission-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	kubeconfig = filepath.Join(dir, "kubeconfig")
	return testcluster.Run(m, &cluster, func(ctx context.Context) (end func(), err error) {
		if err := cluster.WriteKubeconfig(kubeconfig); err != nil {
			return nil, err
		}
		for _, step := range []func(context.Context) error{installAll, populate, inForce} {
			if err := step(ctx); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

// installAll installs Parley and agent-sandbox at the same time, because both wait for the API server.
func installAll(ctx context.Context) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return install(ctx) })
	both.Go(func() error { return agentsandbox.Install(ctx, cluster.Config) })
	return both.Wait()
}

// kubectl runs the real kubectl as an administrator.
func kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	args = append([]string{"--kubeconfig", kubeconfig, "--cache-dir", filepath.Dir(kubeconfig)}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args[4:], " "), err, out)
	}
	return string(out), nil
}

// install installs Parley as it is installed anywhere, and the stamp if the API server serves its kind.
func install(ctx context.Context) error {
	kustomizations := []string{testcluster.Path("config", "default")}
	_, err := cluster.Client.RESTMapper().RESTMapping(
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}, "v1")
	canStamp = err == nil
	switch {
	case canStamp:
		kustomizations = append(kustomizations, testcluster.Path("config", "admission", "stamp"))
	case !apimeta.IsNoMatchError(err):
		return fmt.Errorf("finding out whether the API server serves MutatingAdmissionPolicy: %w", err)
	}
	return cluster.Install(ctx, kustomizations...)
}

// populate creates the namespaces, the people with their roles, and the generation pods as the operator creates them.
func populate(ctx context.Context) error {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: otherNS}},
		inNamespace("chatter", ns, "parley-chat-user"), inNamespace("approver", ns, "parley-tool-approver"),
		inNamespace("viewer", ns, "parley-chat-viewer"), inNamespace("debugger", ns, "parley-debug-viewer"),
		inNamespace("redactor", ns, "parley-redact"),
		inNamespace("owner", ns, "parley-chat-admin"), inNamespace("templater", ns, "parley-template-author"),
		inNamespace("curator", ns, "parley-class-admin"), inNamespace("boss", ns, "cluster-admin"),
		inNamespace("restorer", ns, "parley-restore"),
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "root"},
			Subjects: append(person("root"), rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: deployer.account,
				Namespace: deployer.namespace}),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "governor"}, Subjects: person("governor"),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "parley-quota-admin"},
		},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: deployer.account, Namespace: deployer.namespace}},
		// Of the manager's name, with every right in its own namespace.
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "parley-manager", Namespace: ns}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "impostor", Namespace: ns},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "parley-manager", Namespace: ns}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		},
	}
	objects = append(objects, writesStatuses()...)
	for _, n := range []string{ns, otherNS} {
		objects = append(objects, podspec.Account(n), podspec.Role(n), podspec.RoleBinding(n))
	}
	if err := createAll(ctx, cluster.Client, objects); err != nil {
		return err
	}
	return startPods(ctx)
}

// startPods creates those generation pods that are not there, as the manager does.
func startPods(ctx context.Context) error {
	asManager, err := manager.client(ctx)
	if err != nil {
		return err
	}
	for _, pod := range []actor{podA, podB, podC} {
		o := podspec.Generation(podspec.Settings{Namespace: pod.namespace, Image: "parley:test"}, pod.pod)
		switch err := asManager.Create(ctx, o); {
		case err == nil:
			clients.forget(pod)
		case !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("creating %s: %w", pod.name, err)
		}
	}
	return nil
}

func createAll(ctx context.Context, c client.Client, objects []client.Object) error {
	for _, o := range objects {
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

func inNamespace(who, namespace, role string) client.Object {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: who, Namespace: namespace}, Subjects: person(who),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

func person(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
}

// inForce waits until each policy refuses or stamps what it should: the policies that stamp, and roles, take effect a
// moment after they were created.
func inForce(ctx context.Context) error {
	for _, p := range installed() {
		if err := until(ctx, p.name, p.inForce); err != nil {
			return err
		}
	}
	return nil
}

func until(ctx context.Context, what string, condition func(context.Context) bool) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return condition(ctx), nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("waited in vain until %s", what)
	}
	return err
}

// scene is a chat in the middle of a turn, and one object of every other kind.
type scene struct {
	// chat is assigned to pod-a.
	chat *v1beta1.Chat
	// asked is a person's message; replied the result of an earlier step.
	asked, replied *v1beta1.ChatMessage
	config         *v1beta1.ChatModelConfig
	approval       *v1beta1.ToolApproval
	quota          *v1beta1.ChatQuota
}

// newScene is written by those who may write it, so that it is a test as well.
func newScene(t *testing.T) scene {
	t.Helper()
	name := "chat-" + rand.String(8)
	s := scene{
		chat: newChat(name), asked: say(name), approval: approve(name),
		config: chattest.In(ns, chattest.Config(unique("model"))),
		quota: &v1beta1.ChatQuota{ObjectMeta: meta("quota"), Spec: v1beta1.ChatQuotaSpec{
			Generating: v1beta1.GeneratingLimits{Chats: new(int32(1))},
		}},
	}
	mustCreate(t, governor, s.quota)
	mustCreate(t, chatter, s.chat)
	mustCreate(t, chatter, s.asked)
	mustCreate(t, approver, s.approval)
	mustCreate(t, owner, s.config)
	assign(t, s.chat, 1)
	s.replied = result(s.chat)
	mustCreate(t, podA, s.replied)
	assign(t, s.chat, 2)
	return s
}

// assign gives the chat to pod-a as the manager does.
func assign(t *testing.T, chat *v1beta1.Chat, version int64) {
	t.Helper()
	chat.Status = v1beta1.ChatStatus{
		ObservedGeneration: 1, Phase: v1beta1.ChatRunning,
		History: v1beta1.HistoryStatus{Version: version, Head: "m", Length: version},
		Generation: &v1beta1.GenerationStatus{
			Attempt: 1, Action: v1beta1.ActionGenerateAssistant, Pod: podA.pod, ModelConfig: "model",
			StartedAt: metav1.NowMicro(),
		},
	}
	if err := as(t, manager).Status().Update(t.Context(), chat); err != nil {
		t.Fatalf("the manager writes the status of a chat: %v", err)
	}
}

func mustCreate(t testing.TB, a actor, o client.Object) {
	t.Helper()
	if err := as(t, a).Create(t.Context(), o); err != nil {
		t.Fatalf("%s creates %T %s: %v", a.name, o, o.GetName(), err)
	}
}

// unique is a name that begins so and is unlike any other.
func unique(prefix string) string { return prefix + "-" + rand.String(8) }

func meta(prefix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: unique(prefix)}
}

func newChat(name string) *v1beta1.Chat { return chattest.In(ns, chattest.Chat(name)) }

// subChat is a chat below another one.
func subChat(name, parent string) *v1beta1.Chat {
	return chattest.In(ns, chattest.Chat(name, chattest.ChildOf(parent)))
}

// newClass is a class of the namespace.
func newClass(change func(*v1beta1.ChatClassSpec)) *v1beta1.ChatClass {
	return chattest.In(ns, chattest.Class(unique("class"), change))
}

// say is a message of a person.
func say(chat string) *v1beta1.ChatMessage {
	return chattest.In(ns, chattest.User(chat, unique("say")))
}

// toolOutput is a message with the result of a tool that a client runs.
func toolOutput(chat string) *v1beta1.ChatMessage {
	return chattest.In(ns, chattest.Brings(chat, unique("output"),
		v1beta1.ToolResult{ID: "call_1", Name: "screen", Output: `"dark"`}))
}

func approve(chat string) *v1beta1.ToolApproval {
	return chattest.In(ns, chattest.Decides(chat, unique("approve"), "call_1", v1beta1.DecisionApprove))
}

// result is what a generation pod answers the chat's attempt with, changed.
func result(chat *v1beta1.Chat, change ...chattest.Reply) *v1beta1.ChatMessage {
	return chattest.Answer(chat, append([]chattest.Reply{chattest.Says("Fine.")}, change...)...)
}
