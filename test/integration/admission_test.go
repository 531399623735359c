// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/testing/testcluster"
)

func TestBadInputIsRefusedWithTheFieldAndTheWayOut(t *testing.T) {
	ns := bareNamespace(t)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: ns} }
	message := func(change func(*v1alpha1.ChatMessageSpec)) client.Object {
		m := &v1alpha1.ChatMessage{ObjectMeta: meta("m"), Spec: v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: "c"}}}
		change(&m.Spec)
		return m
	}
	config := func(change func(*v1alpha1.ChatModelConfigSpec)) client.Object {
		c := &v1alpha1.ChatModelConfig{ObjectMeta: meta("m"), Spec: v1alpha1.ChatModelConfigSpec{
			Provider: v1alpha1.ProviderOpenAI, Model: "m",
			APIKey: &v1alpha1.APIKeySource{SecretKeyRef: v1alpha1.SecretKeyReference{Name: "s", Key: "k"}},
		}}
		change(&c.Spec)
		return c
	}
	for name, c := range map[string]struct {
		object client.Object
		want   string
	}{
		"a message without content": {message(func(*v1alpha1.ChatMessageSpec) {}), "exactly one of content and parts must be set"},
		"a message with both": {message(func(s *v1alpha1.ChatMessageSpec) {
			s.Content = "a"
			s.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: new("a")}}
		}), "exactly one of content and parts must be set"},
		"a forged reply":            {message(func(s *v1alpha1.ChatMessageSpec) { s.Content = "a"; s.Role = v1alpha1.RoleAssistant }), "role must be User"},
		"a forged place":            {message(func(s *v1alpha1.ChatMessageSpec) { s.Content = "a"; s.Parent = "b" }), "parent and index are set by the operator"},
		"a part of the wrong shape": {message(func(s *v1alpha1.ChatMessageSpec) { s.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartText}} }), "text must be set for the types Text and Reasoning"},
		"a part that users may not": {message(func(s *v1alpha1.ChatMessageSpec) {
			s.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartReasoning, Text: new("a")}}
		}), "must be of type Text"},
		"content over 1 MiB":        {message(func(s *v1alpha1.ChatMessageSpec) { s.Content = strings.Repeat("a", 1<<20+1) }), "1048576"},
		"content over 1 MiB, UTF-8": {message(func(s *v1alpha1.ChatMessageSpec) { s.Content = strings.Repeat("é", 1<<19+1) }), "content may have at most 1048576 bytes (1 MiB)"},
		"parts over 1 MiB together": {message(func(s *v1alpha1.ChatMessageSpec) {
			p := v1alpha1.MessagePart{Type: v1alpha1.PartText, Text: new(strings.Repeat("a", 1<<19+1))}
			s.Parts = []v1alpha1.MessagePart{p, p}
		}), "1048576 characters"},
		"a long name of a chat":     {&v1alpha1.Chat{ObjectMeta: meta(strings.Repeat("a", 201))}, "at most 200 characters"},
		"an unknown provider":       {config(func(s *v1alpha1.ChatModelConfigSpec) { s.Provider = "acme" }), `supported values: "openai", "anthropic"`},
		"no key":                    {config(func(s *v1alpha1.ChatModelConfigSpec) { s.APIKey = nil }), "apiKey must be set for this provider"},
		"a bad baseURL":             {config(func(s *v1alpha1.ChatModelConfigSpec) { s.BaseURL = "models.example.com" }), "baseURL must be a URL such as"},
		"a baseURL of another kind": {config(func(s *v1alpha1.ChatModelConfigSpec) { s.BaseURL = "ftp://models.example.com" }), "baseURL must be a URL such as"},
		"no baseURL where needed":   {config(func(s *v1alpha1.ChatModelConfigSpec) { s.Provider = v1alpha1.ProviderOpenAICompatible }), "baseURL must be set"},
		"a transport where none is": {config(func(s *v1alpha1.ChatModelConfigSpec) {
			s.Provider = v1alpha1.ProviderAnthropic
			s.Transport = v1alpha1.TransportResponses
		}), "transport can only be set"},
		"a temperature out of range": {config(func(s *v1alpha1.ChatModelConfigSpec) { s.Temperature = new(3.0) }), "spec.temperature"},
	} {
		t.Run(name, func(t *testing.T) {
			err := cluster.Client.Create(t.Context(), c.object)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error does not say %q: %.600v", c.want, err)
			}
		})
	}
}

func TestAMessageOfOneMebibyteWorks(t *testing.T) {
	ns := namespace(t)
	create(t, newChat(ns, "c", ""))
	m := say(ns, "c", "big")
	m.Spec.Content = strings.Repeat("a", 1<<20)
	create(t, m)
	create(t, answer(assigned(t, ns, "c", 1, 1), nil))
	waitForMessage(t, ns, "big", metav1.ConditionTrue, v1alpha1.ReasonAnswered)
	if got := len(messageIn(t, ns, "big").Spec.Content); got != 1<<20 {
		t.Errorf("the message now has %d bytes", got)
	}
}

func TestThePromptOfAChatCannotChange(t *testing.T) {
	ns := namespace(t)
	create(t, newChat(ns, "c", "first"))
	chat := newChat(ns, "c", "")
	body := []byte(`{"spec":{"prompt":"other"}}`)
	if err := cluster.Client.Patch(t.Context(), chat, client.RawPatch("application/merge-patch+json", body)); err == nil || !strings.Contains(err.Error(), "go on with a ChatMessage") {
		t.Errorf("editing the prompt: %v", err)
	}
}

// TestOnlyAGenerationPodCreatesResultsUnderItsOwnName runs on a control plane of its own, because the policy would also
// bind the other tests, which play the generation pods' part as an administrator.
func TestOnlyAGenerationPodCreatesResultsUnderItsOwnName(t *testing.T) {
	own, err := testcluster.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Stop() })
	const ns = "default"
	applyFile(t, own.Client, testcluster.Path("config", "admission", "generated-messages.yaml"))
	for _, o := range []client.Object{
		podspec.Account(ns), podspec.Role(ns), podspec.RoleBinding(ns), generationPod(ns, "pod-a"), generationPod(ns, "pod-b"),
	} {
		if err := own.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	chat := newChat(ns, "c", "")
	if err := own.Client.Create(t.Context(), chat); err != nil {
		t.Fatal(err)
	}
	chat.Status = v1alpha1.ChatStatus{
		History:    v1alpha1.HistoryStatus{Version: 1, Head: "m", Length: 1},
		Generation: &v1alpha1.GenerationStatus{Attempt: 1, Action: v1alpha1.ActionGenerateAssistant, Pod: "pod-a", ModelConfig: "x"},
	}
	podA := asPod(t, own, ns, "pod-a")
	unbound := asPod(t, own, ns, "")

	refused(t, own.Client, answer(chat, nil), "only generation pods create generated messages")
	refused(t, unbound, answer(chat, nil), "answers under its own name only")
	refused(t, podA, answer(chat, func(m *v1alpha1.ChatMessage) { m.Spec.Generation.Pod = "pod-b" }), "answers under its own name only")
	refused(t, podA, say(ns, "c", "forged"), "create no messages but their results")
	good := answer(chat, nil)
	if err := podA.Create(t.Context(), good); err != nil {
		t.Fatalf("a pod's own result: %v", err)
	}
	good.Spec.Parts[0].Text = new("changed")
	if err := own.Client.Update(t.Context(), good); err == nil || !strings.Contains(err.Error(), "cannot change") {
		t.Errorf("changing a result: %v", err)
	}
	good.Status.ObservedGeneration = 1
	if err := podA.Status().Update(t.Context(), good); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("a pod writes a status: %v", err)
	}
}

// refused waits until creating the object is refused with the words: a policy takes effect a moment after it is created.
func refused(t *testing.T, c client.Client, o client.Object, words string) {
	t.Helper()
	eventually(t, "creating "+o.GetName()+" is refused with "+words, func() bool {
		attempt := o.DeepCopyObject().(client.Object)
		err := c.Create(t.Context(), attempt)
		if err == nil {
			_ = c.Delete(t.Context(), attempt)
		}
		return err != nil && strings.Contains(err.Error(), words)
	})
}

func generationPod(ns, name string) *corev1.Pod {
	return podspec.Generation(podspec.Settings{Namespace: ns, Image: "parley:test"}, name)
}

// asPod is a client with a service-account token bound to the pod, as the kubelet would mount it; without a pod, unbound.
func asPod(t *testing.T, own *testcluster.Cluster, ns, pod string) client.Client {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != "" {
		var p corev1.Pod
		if err := own.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: pod}, &p); err != nil {
			t.Fatal(err)
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod, UID: p.UID}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := own.Client.SubResource("token").Create(ctx, podspec.Account(ns), request); err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(own.Config)
	cfg.BearerToken = request.Status.Token
	c, err := client.New(cfg, client.Options{Scheme: controllers.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func applyFile(t *testing.T, c client.Client, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		var o unstructured.Unstructured
		if decoder.Decode(&o) != nil {
			return
		}
		if err := c.Create(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
	}
}
