// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func newClass(ns, name string, change ...func(*v1beta1.ChatClassSpec)) *v1beta1.ChatClass {
	return chattest.In(ns, chattest.Class(name, change...))
}

func classIn(t *testing.T, ns, name string) *v1beta1.ChatClass {
	t.Helper()
	var class v1beta1.ChatClass
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &class))
	return &class
}

// ofClass is a chat that names a class.
func ofClass(ns, name, class string) *v1beta1.Chat {
	chat := newChat(ns, name, "hello")
	chat.Spec.ChatClassName = class
	return chat
}

func refTo(name string) *v1beta1.ModelConfigReference {
	return &v1beta1.ModelConfigReference{Name: name}
}

// deleteSettings deletes a class or a configuration and waits until the manager knows. Its watches have no common
// order: a message that is created after the deletion may reach it before.
func deleteSettings(t *testing.T, o client.Object) {
	t.Helper()
	remove(t, o)
	eventually(t, "the manager knows that "+o.GetName()+" is gone", func() bool {
		return apierrors.IsNotFound(managerCache.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	})
}

// patchSettings patches a class or a configuration and waits until the manager knows, as deleteSettings does.
func patchSettings(t *testing.T, o client.Object, format string, args ...any) {
	t.Helper()
	patch(t, o, format, args...)
	generation := o.GetGeneration()
	eventually(t, "the manager knows of the change of "+o.GetName(), func() bool {
		return managerCache.Get(t.Context(), client.ObjectKeyFromObject(o), o) == nil && o.GetGeneration() >= generation
	})
}

func conditionOf(t *testing.T, ns, chat, condition string) *metav1.Condition {
	t.Helper()
	return meta.FindStatusCondition(chatIn(t, ns, chat).Status.Conditions, condition)
}

func TestChatHasWhatItsClassSays(t *testing.T) {
	ns := parallel(t)
	create(t, modelConfig(ns, "strong"))
	coder := newClass(ns, "coder", func(s *v1beta1.ChatClassSpec) { s.Defaults.ModelConfigRef = refTo("strong") })
	create(t, coder)
	create(t, newClass(ns, "everybody", func(s *v1beta1.ChatClassSpec) {
		s.Default, s.Defaults.Limits = true, &v1beta1.ChatLimits{MaxSteps: new(int32(1))}
	}))
	eventually(t, "the default says that it is one", func() bool {
		class := classIn(t, ns, "everybody")
		ready := meta.FindStatusCondition(class.Status.Conditions, v1beta1.ConditionReady)
		return ready != nil && ready.Message == "Chats have it that name no other" && class.Status.ObservedGeneration == 1
	})

	create(t, ofClass(ns, "named", "coder"))
	named := assigned(t, ns, "named", 1, 1)
	if has := named.Status.ChatClass; named.Status.Generation.ModelConfig != "strong" || has == nil ||
		*has != (v1beta1.AppliedChatClass{Name: "coder", UID: string(coder.UID), Generation: 1}) {
		t.Errorf("%s answers, of class %+v", named.Status.Generation.ModelConfig, has)
	}
	own := ofClass(ns, "own", "coder")
	own.Spec.ModelConfigRef = refTo("default")
	create(t, own)
	check.Equal(t, "the chat's own configuration is not asked, but", "default",
		assigned(t, ns, "own", 1, 1).Status.Generation.ModelConfig)

	create(t, ofClass(ns, "unnamed", ""))
	answers(t, assigned(t, ns, "unnamed", 1, 1), chattest.Calls("a"))
	results := assigned(t, ns, "unnamed", 2, 1)
	if has := results.Status.ChatClass; has == nil || has.Name != "everybody" {
		t.Errorf("the class is %+v", has)
	}
	answers(t, results, chattest.Results("a"))
	waitForReady(t, ns, "unnamed", metav1.ConditionTrue, v1beta1.ReasonMaxStepsReached)
}

func TestClassChangeAppliesFromNextStep(t *testing.T) {
	ns := parallel(t)
	create(t, modelConfig(ns, "strong"))
	class := newClass(ns, "coder")
	create(t, class)
	create(t, ofClass(ns, "c", "coder"))
	first := assigned(t, ns, "c", 1, 1)
	patchSettings(t, class, `{"spec":{"defaults":{"modelConfigRef":{"name":"strong"}}}}`)
	answers(t, first, chattest.Says("Fine."))
	waitForReady(t, ns, "c", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	check.Equal(t, "a class that changes writes to a chat that goes on", 1,
		chatIn(t, ns, "c").Status.ChatClass.Generation)
	create(t, say(ns, "c", "second"))
	second := assigned(t, ns, "c", 3, 1)
	check.Equal(t, "fields", []any{"strong", 2},
		[]any{second.Status.Generation.ModelConfig, second.Status.ChatClass.Generation})
}

func TestNamespacePreambleChangeAppliesFromNextStep(t *testing.T) {
	ns := parallel(t)
	everybody := newClass(ns, "everybody", func(s *v1beta1.ChatClassSpec) {
		s.Default, s.NamespacePreamble = true, "Be lawful."
	})
	create(t, ofClass(ns, "c", "coder"))
	create(t, everybody)
	create(t, newClass(ns, "coder")) // It is what the chat waits for.
	first := assigned(t, ns, "c", 1, 1)
	if has := first.Status.NamespaceClass; first.Status.ChatClass.Name != "coder" || has == nil ||
		*has != (v1beta1.AppliedChatClass{Name: "everybody", UID: string(everybody.UID), Generation: 1}) {
		t.Errorf("the chat has class %+v, and %+v speaks for the namespace", first.Status.ChatClass, has)
	}
	patchSettings(t, everybody, `{"spec":{"namespacePreamble":"Be kind."}}`)
	answers(t, first, chattest.Calls("a"))
	if has := assigned(t, ns, "c", 2, 1).Status.NamespaceClass; has == nil || has.Generation != 2 {
		t.Errorf("the next step goes by %+v", has)
	}
	patchSettings(t, everybody, `{"spec":{"namespacePreamble":null}}`)
	answers(t, chatIn(t, ns, "c"), chattest.Results("a"))
	check.Equal(t, "annotations of the default class", nil,
		assigned(t, ns, "c", 3, 1).Status.NamespaceClass)
}

func TestChatWaitsForTheClassThatItNames(t *testing.T) {
	ns := parallel(t)
	create(t, ofClass(ns, "c", "coder"))
	waitForReady(t, ns, "c", metav1.ConditionUnknown, "ChatClassNotFound") // Its manifest may bring it yet.
	create(t, newClass(ns, "coder"))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForReady(t, ns, "c", metav1.ConditionTrue, v1beta1.ReasonAnswered)

	deleteSettings(t, newClass(ns, "coder"))
	create(t, say(ns, "c", "second"))
	waitForReady(t, ns, "c", metav1.ConditionUnknown, "ChatClassNotFound")
	patch(t, chatIn(t, ns, "c"), `{"spec":{"chatClassName":null}}`)
	if c := assigned(t, ns, "c", 3, 1); c.Status.ChatClass != nil {
		t.Errorf("a chat that names no class any more has %+v", c.Status.ChatClass)
	}
}

func TestTurnResumesWhenDeletedClassReturns(t *testing.T) {
	ns := parallel(t)
	create(t, modelConfig(ns, "strong"))
	create(t, newClass(ns, "coder"))
	create(t, ofClass(ns, "c", "coder"))
	first := assigned(t, ns, "c", 1, 1)
	deleteSettings(t, newClass(ns, "coder"))
	answers(t, first, chattest.Calls("a"))
	waitForReady(t, ns, "c", metav1.ConditionUnknown, "ChatClassNotFound")
	if st := chatIn(t, ns, "c").Status; st.Phase != v1beta1.ChatRunning || st.Generation != nil ||
		st.History.Version != 2 {
		t.Errorf("the chat does not wait: %+v", st)
	}
	create(t, newClass(ns, "coder", func(s *v1beta1.ChatClassSpec) { s.Defaults.ModelConfigRef = refTo("strong") }))
	answers(t, assigned(t, ns, "c", 2, 1), chattest.Results("a"))
	check.Equal(t, "model", "strong", assigned(t, ns, "c", 3, 1).Status.Generation.ModelConfig)
}

func TestTurnWaitsForItsDeletedModel(t *testing.T) {
	ns := parallel(t)
	strong := modelConfig(ns, "strong")
	create(t, strong)
	create(t, naming(ns, "c", "strong", ""))
	first := assigned(t, ns, "c", 1, 1)
	queued(t, ns, "c", "queued")
	deleteSettings(t, strong.DeepCopy())
	answers(t, first, chattest.Calls("a"))
	waitForReady(t, ns, "c", metav1.ConditionUnknown, v1beta1.ConditionReason(v1beta1.ErrorModelConfigNotFound))
	st := chatIn(t, ns, "c").Status
	if st.Phase != v1beta1.ChatRunning || st.Generation != nil || len(st.Queue) != 1 || st.Wait == nil ||
		st.Wait.For != v1beta1.WaitForModelConfig || st.Wait.Until == nil {
		t.Errorf("the turn does not wait: %+v", st)
	}
	create(t, modelConfig(ns, "strong"))
	answers(t, assigned(t, ns, "c", 2, 1), chattest.Results("a"))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered)
}

func TestChatReportsMissingModelOfClass(t *testing.T) {
	ns := parallel(t)
	create(t, newClass(ns, "coder", func(s *v1beta1.ChatClassSpec) { s.Defaults.ModelConfigRef = refTo("gone") }))
	own := ofClass(ns, "own", "coder")
	own.Spec.ModelConfigRef = refTo("gone")
	create(t, own)
	create(t, ofClass(ns, "c", "coder"))
	for chat, by := range map[string]string{
		"c": "spec.defaults.modelConfigRef of ChatClass coder", "own": "spec.modelConfigRef",
	} {
		waitForReady(t, ns, chat, metav1.ConditionUnknown, "ModelConfigNotFound")
		want := "ChatModelConfig gone, which " + by + " names, does not exist. Create it, or change the reference"
		if c := conditionOf(t, ns, chat, v1beta1.ConditionReady); c.Message != want {
			t.Errorf("chat %s says %q", chat, c.Message)
		}
	}
}

func TestClassKeepsModelsFromItsChats(t *testing.T) {
	ns := parallel(t)
	create(t, modelConfig(ns, "dear"))
	class := newClass(ns, "thrifty", func(s *v1beta1.ChatClassSpec) {
		s.Restrictions = &v1beta1.ChatRestrictions{ModelConfigs: []v1beta1.ModelConfigReference{{Name: "default"}}}
	})
	create(t, class)
	chat := ofClass(ns, "c", "thrifty")
	chat.Spec.ModelConfigRef = refTo("dear")
	create(t, chat)
	waitForReady(t, ns, "c", metav1.ConditionFalse, "ModelConfigNotAllowed")
	if c := conditionOf(t, ns, "c", v1beta1.ConditionReady); !strings.Contains(c.Message,
		"ChatClass thrifty does not let ChatModelConfig dear answer: it allows default. Name one of those") {
		t.Errorf("it says %q", c.Message)
	}
	waitForMessage(t, ns, "c-prompt", metav1.ConditionUnknown, v1beta1.ReasonWaitingForChat)
	patch(t, chatIn(t, ns, "c"), `{"spec":{"modelConfigRef":null}}`)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForReady(t, ns, "c", metav1.ConditionTrue, v1beta1.ReasonAnswered)

	create(t, sayTo(ns, "c", "second", "dear", ""))
	waitForReady(t, ns, "c", metav1.ConditionFalse, "ModelConfigNotAllowed")
	patchSettings(t, class, `{"spec":{"restrictions":null}}`)
	check.Equal(t, "model", "dear", assigned(t, ns, "c", 3, 1).Status.Generation.ModelConfig)
}

func TestChatAtRestSaysWhatItsClassIgnores(t *testing.T) {
	ns := parallel(t)
	class := newClass(ns, "plain", func(s *v1beta1.ChatClassSpec) { s.Default = true })
	create(t, class)
	chat := newChat(ns, "c", "hello")
	chat.Spec.SystemPrompt, chat.Spec.Limits = "Be a pirate.", &v1beta1.ChatLimits{MaxSteps: new(int32(9))}
	create(t, chat)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForReady(t, ns, "c", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered) // An open one would wake the chat.
	patchSettings(t, class, `{"spec":{"restrictions":{"fields":["systemPrompt","limits"]}}}`)
	eventually(t, "the chat says what does not count", func() bool {
		c := conditionOf(t, ns, "c", v1beta1.ConditionSettingsIgnored)
		return c != nil && c.Status == metav1.ConditionTrue && v1beta1.ReasonOf(c) == v1beta1.ReasonRestrictedByClass &&
			strings.HasPrefix(c.Message, "ChatClass plain does not let its chats set spec.systemPrompt, spec.limits: ")
	})
	check.OK(t, cluster.Client.Delete(t.Context(), class))
	eventually(t, "the chat has no class any more", func() bool {
		return conditionOf(t, ns, "c", v1beta1.ConditionSettingsIgnored) == nil && chatIn(t, ns, "c").Status.ChatClass == nil
	})
}

func TestClassReportsMissingModelsAndDefault(t *testing.T) {
	ns := parallel(t)
	first := newClass(ns, "a", func(s *v1beta1.ChatClassSpec) { s.Default = true })
	create(t, first)
	create(t, newClass(ns, "b", func(s *v1beta1.ChatClassSpec) {
		s.Default, s.Defaults.ModelConfigRef = true, refTo("gone")
	}))
	says := func(condition string) string {
		if c := meta.FindStatusCondition(classIn(t, ns, "b").Status.Conditions, condition); c != nil {
			return c.Reason + ": " + c.Message
		}
		return ""
	}
	eventually(t, "it says that another one comes first, and what is missing", func() bool {
		return strings.HasPrefix(says(v1beta1.ConditionReady), "MultipleDefaults: Chats may name it, but it is not the "+
			"default: ChatClass a says") && strings.HasPrefix(says(v1beta1.ConditionReferencesUnresolved),
			"ReferenceNotFound: Names ChatModelConfigs that do not exist or are disabled: gone")
	})
	create(t, modelConfig(ns, "gone"))
	check.OK(t, cluster.Client.Delete(t.Context(), first, client.Preconditions{UID: &first.UID}))
	eventually(t, "it sees both", func() bool {
		return strings.HasPrefix(says(v1beta1.ConditionReady), "Accepted: Chats have it") &&
			says(v1beta1.ConditionReferencesUnresolved) == ""
	})
}

func TestChatUsesWorkspaceFromClassDefaults(t *testing.T) {
	ns := parallel(t)
	class := newClass(ns, "coder", func(s *v1beta1.ChatClassSpec) {
		s.Default, s.Defaults.Workspace = true, &v1beta1.WorkspaceSource{
			PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}}
	})
	create(t, class)
	begun := started(t, ns, "c", "hello")
	if !begun.Status.Internal.Attempt.HasWorkspace {
		t.Error("the chat has no workspace")
	}
	answers(t, begun, chattest.Works("a"))
	eventually(t, "the workspace is needed", func() bool {
		var w v1beta1.Workspace
		return cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "c"}, &w) == nil &&
			w.Spec.Source.PodTemplateRef.Name == "shell"
	})
}

func TestNamespaceKeepsSparePodForNextChat(t *testing.T) {
	ns := parallel(t)
	pods := func() []corev1.Pod {
		var list corev1.PodList
		check.OK(t, cluster.Client.List(t.Context(), &list, client.InNamespace(ns)))
		return list.Items
	}
	create(t, newClass(ns, "team", func(s *v1beta1.ChatClassSpec) { s.Default, s.SpareGenerationPods = true, 1 }))
	eventually(t, "a pod is created before there is a chat", func() bool { return len(pods()) == 1 })
	create(t, newChat(ns, "c", "hello"))
	if got, spare := assigned(t, ns, "c", 1, 1).Status.Generation.Pod, pods()[0].Name; got != spare {
		t.Errorf("the chat has pod %s, though %s was there", got, spare)
	}
}
