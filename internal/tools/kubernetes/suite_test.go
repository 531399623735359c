// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/waiting"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testcluster.RunShared(m, &cluster))
}

// scene is a namespace in which a chat works as the service account "worker".
type scene struct {
	t    *testing.T
	ns   string
	chat *v1beta1.Chat
	all  map[string]tools.Tool
	// asked is what people were asked last; answer what they say.
	asked  *tools.Question
	answer *tools.Answer
	again  bool
}

// all are rights to do everything with the resources of a group.
func all(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"*"}}
}

// reads are rights to read the resources of a group.
func reads(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list"}}
}

// newScene is one in which the account has these rights, and generation pods may have tokens of it.
func newScene(t *testing.T, changes v1beta1.ClusterChanges, rights ...rbacv1.PolicyRule) *scene {
	t.Helper()
	s := ungranted(t, changes)
	s.grant("worker", rights...)
	s.grant("parley-generation", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
		ResourceNames: []string{"worker"}, Verbs: []string{"create"}})
	return s
}

// ungranted is one in which generation pods may not have tokens of the account, nor the account do anything.
func ungranted(t *testing.T, changes v1beta1.ClusterChanges) *scene {
	t.Helper()
	s := &scene{t: t, ns: cluster.Namespace(t, "k8s")}
	for _, account := range []string{"worker", "parley-generation"} {
		s.create(&corev1.ServiceAccount{ObjectMeta: s.meta(account)})
	}
	s.chat = chattest.In(s.ns, chattest.Chat("c"))
	s.chat.Spec.Kubernetes = &v1beta1.KubernetesAccess{ServiceAccountName: "worker", Changes: changes}
	s.all = map[string]tools.Tool{}
	for _, tool := range Tools(s.client()) {
		s.all[tool.Definition().Name] = tool
	}
	return s
}

// client asks for tokens as a generation pod does: with the rights of parley-generation.
func (s *scene) client() *kubeapi.Client {
	s.t.Helper()
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + s.ns + ":parley-generation"}
	pod, err := apiclient.New(cfg, "test")
	check.OK(s.t, err)
	mint := func(ctx context.Context, account string) (string, time.Time, error) {
		return pod.Token(ctx, apiclient.TokenFor{Namespace: s.ns, Account: account, Seconds: kubeapi.TokenSeconds}, "")
	}
	made, err := kubeapi.New(cluster.Config, mint, time.Now)
	check.OK(s.t, err)
	return made
}

func (s *scene) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.ns, Name: name}
}

func (s *scene) create(o client.Object) {
	s.t.Helper()
	cluster.Create(s.t, o)
}

// grant gives the account rights in the namespace.
func (s *scene) grant(account string, rights ...rbacv1.PolicyRule) {
	s.t.Helper()
	if len(rights) == 0 {
		return
	}
	s.create(&rbacv1.Role{ObjectMeta: s.meta(account), Rules: rights})
	s.create(&rbacv1.RoleBinding{ObjectMeta: s.meta(account),
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: s.ns}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}})
	waiting.Until(s.t, time.Minute, "the rights of "+account, func() bool { return s.may(account, rights[len(rights)-1]) })
}

// may reports whether the account has a right by now: the authorizer sees Roles a moment after they were created.
func (s *scene) may(account string, right rbacv1.PolicyRule) bool {
	s.t.Helper()
	resource, subresource, _ := strings.Cut(right.Resources[0], "/")
	about := &authorizationv1.ResourceAttributes{Namespace: s.ns, Verb: right.Verbs[0], Group: right.APIGroups[0],
		Resource: resource, Subresource: subresource}
	if len(right.ResourceNames) > 0 {
		about.Name = right.ResourceNames[0]
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + s.ns + ":" + account, ResourceAttributes: about}}
	s.create(review)
	return review.Status.Allowed
}

// run makes a call, and returns its result.
func (s *scene) run(tool, input string) (string, error) {
	s.t.Helper()
	s.asked = nil
	return s.all[tool].Run(s.t.Context(), tools.Call{
		ToolCall: v1beta1.ToolCall{ID: "call_1", Name: tool, Input: input}, Key: "k",
		Chat: s.chat, Again: s.again, Answer: s.answer,
		Alive: func() {},
		Ask: func(q tools.Question) bool {
			s.asked = &q
			return true
		},
	})
}

// must makes a call that must succeed, and decodes its result.
func (s *scene) must(tool, input string, into any) {
	s.t.Helper()
	said, err := s.run(tool, input)
	if err != nil {
		s.t.Fatalf("%s %s: %v", tool, input, err)
	}
	check.OK(s.t, json.Unmarshal([]byte(said), into))
}

// fails makes a call that must fail with these words.
func (s *scene) fails(tool, input string, words ...string) {
	s.t.Helper()
	said, err := s.run(tool, input)
	if err == nil {
		s.t.Fatalf("%s %s: %s", tool, input, said)
	}
	check.Contains(s.t, err.Error(), words...)
}

// asks makes a call that must ask people, and returns what.
func (s *scene) asks(tool, input string) tools.Question {
	s.t.Helper()
	s.answer = nil
	said, err := s.run(tool, input)
	if !errors.Is(err, tools.ErrAsks) || s.asked == nil {
		s.t.Fatalf("%s %s asks no one: %s, %v", tool, input, said, err)
	}
	return *s.asked
}

// decide is what people say to what they were asked.
func (s *scene) decide(q tools.Question, given bool, comment string) {
	s.answer = &tools.Answer{Question: q, Given: given, Comment: comment}
}

// jsonString encodes a text as a JSON string.
func jsonString(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func (s *scene) deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: s.meta(name), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/web:1"}}}},
	}}
}

// read reads an object as an administrator does.
func (s *scene) read(o client.Object) bool {
	s.t.Helper()
	return cluster.Client.Get(s.t.Context(), client.ObjectKeyFromObject(o), o) == nil
}
