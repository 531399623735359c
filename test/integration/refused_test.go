// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// noneOf is a quota of zero of the resource, in force at once: the controller that fills its status does not run here.
func noneOf(t *testing.T, ns string, what corev1.ResourceName) *corev1.ResourceQuota {
	t.Helper()
	none := corev1.ResourceList{what: resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "nothing"},
		Spec: corev1.ResourceQuotaSpec{Hard: none}}
	create(t, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	check.OK(t, cluster.Client.Status().Update(t.Context(), quota))
	return quota
}

// tooSmall is a LimitRange that no generation pod fits.
func tooSmall(t *testing.T, ns string) *corev1.LimitRange {
	t.Helper()
	limits := &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")},
		}}},
	}
	create(t, limits)
	return limits
}

// waitForRefusal waits until the chat says why it gets no pod.
func waitForRefusal(t *testing.T, ns, chat string, reason v1beta1.ConditionReason, words string) {
	t.Helper()
	waitForReady(t, ns, chat, metav1.ConditionUnknown, reason)
	ready := meta.FindStatusCondition(chatIn(t, ns, chat).Status.Conditions, v1beta1.ConditionReady)
	if !strings.Contains(ready.Message, words) || strings.Contains(ready.Message, "parley-generation-") {
		t.Errorf("it says %q", ready.Message)
	}
}

// eventsOf are the notes of the Events of that reason about the object.
func eventsOf(t *testing.T, ns, name string, reason v1beta1.EventReason) (notes []string) {
	t.Helper()
	var events eventsv1.EventList
	check.OK(t, cluster.Client.List(t.Context(), &events, client.InNamespace(ns)))
	for _, e := range events.Items {
		if e.Regarding.Name == name && e.Reason == string(reason) {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

func TestRefusedPodIsSaidUntilItIsAllowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse func(*testing.T, string) client.Object
		words  string
	}{
		"a quota of zero": {func(t *testing.T, ns string) client.Object {
			t.Helper()
			return noneOf(t, ns,
				corev1.ResourcePods)
		}, "exceeded quota: nothing, requested: pods=1"},
		"a LimitRange": {func(t *testing.T, ns string) client.Object { t.Helper(); return tooSmall(t, ns) },
			"maximum memory usage per Container is 16Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := parallel(t)
			why := c.refuse(t, ns)
			create(t, newChat(ns, "c", "hello"))
			waitForRefusal(t, ns, "c", v1beta1.ReasonGenerationPodRejected, c.words)
			waitForMessage(t, ns, "c-prompt", metav1.ConditionUnknown, v1beta1.ReasonGenerationPodRejected)
			create(t, newChat(ns, "d", "me too"))
			waitForRefusal(t, ns, "d", v1beta1.ReasonGenerationPodRejected, c.words)
			if st := chatIn(t, ns, "c").Status; st.Phase != v1beta1.ChatRunning || st.Generation != nil {
				t.Errorf("the status is %+v", st)
			}
			remove(t, why)
			answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
			assigned(t, ns, "d", 1, 1)
			waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered)
			if notes := eventsOf(t, ns, "c", v1beta1.EventGenerationPodRejected); len(notes) != 1 {
				t.Errorf("its Events are %q", notes)
			}
		})
	}
}

func TestRejectedPodMakesAnsweredChatNotReady(t *testing.T) {
	ns := parallel(t)
	chat := started(t, ns, "c", "hello")
	answers(t, chat, chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	noneOf(t, ns, corev1.ResourcePods)
	remove(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: chat.Status.Generation.Pod}})
	create(t, say(ns, "c", "more"))
	waitForRefusal(t, ns, "c", v1beta1.ReasonGenerationPodRejected, "exceeded quota")
	waitForMessage(t, ns, "more", metav1.ConditionUnknown, v1beta1.ReasonGenerationPodRejected)
	annotate(t, ns, "c", v1beta1.AnnotationInterrupt, "stop")
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
}

func TestRefusedPromptIsSaid(t *testing.T) {
	ns := parallel(t)
	quota := noneOf(t, ns, "count/chatmessages.parley.dev")
	create(t, newChat(ns, "c", "hello"))
	waitForRefusal(t, ns, "c", v1beta1.ReasonPromptRejected, "exceeded quota: nothing")
	remove(t, quota)
	assigned(t, ns, "c", 1, 1)
}

func TestTakenPromptNameIsReportedUntilFree(t *testing.T) {
	t.Parallel()
	for name, stranger := range map[string]func(*v1beta1.ChatMessage){
		"by a message of another chat": func(m *v1beta1.ChatMessage) { m.Spec.ChatRef.Name = "other" },
		"by another text":              func(*v1beta1.ChatMessage) {},
	} {
		t.Run(name, func(t *testing.T) {
			ns := parallel(t)
			taken := say(ns, "c", "c-prompt")
			stranger(taken)
			create(t, taken)
			create(t, newChat(ns, "c", "what was asked"))
			waitForReady(t, ns, "c", metav1.ConditionUnknown, v1beta1.ReasonPromptNameConflict)
			waitForReady(t, ns, "c", metav1.ConditionFalse, v1beta1.ReasonPromptNameConflict)
			ready := meta.FindStatusCondition(chatIn(t, ns, "c").Status.Conditions, v1beta1.ConditionReady)
			check.Contains(t, ready.Message, "Message c-prompt has the name")
			remove(t, taken)
			assigned(t, ns, "c", 1, 1)
			check.Equal(t, "the model is asked", "what was asked", messageIn(t, ns, "c-prompt").Spec.Content)
		})
	}
}

// denyMessage is a policy, in force, that keeps a message with the text out of the namespace, and lets all others in.
func denyMessage(t *testing.T, ns, text string) *admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{APIGroups: []string{v1beta1.GroupVersion.Group},
						APIVersions: []string{"*"}, Resources: []string{"chatmessages"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("object.spec.content != %q", text)}},
		},
	}
	create(t, policy)
	create(t, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        ns,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: ns}}},
		},
	})
	eventually(t, "the policy is in force", func() bool {
		probe := chattest.In(ns, chattest.User("c", "probe", chattest.Content(text)))
		return cluster.Client.Create(t.Context(), probe, client.DryRunAll) != nil
	})
	return policy
}

// A quota would not do: the API server continues to refuse for a moment after it is gone, and then Parley may be first.
func TestForgedPromptIsNotAsked(t *testing.T) {
	ns := parallel(t)
	policy := denyMessage(t, ns, "what was asked")
	create(t, newChat(ns, "c", "what was asked"))
	waitForReady(t, ns, "c", metav1.ConditionUnknown, v1beta1.ReasonPromptRejected)
	forged := say(ns, "c", "c-prompt")
	forged.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(chatIn(t, ns, "c"),
		v1beta1.GroupVersion.WithKind("Chat"))}
	create(t, forged)
	remove(t, policy)
	waitForReady(t, ns, "c", metav1.ConditionFalse, v1beta1.ReasonPromptNameConflict)
}
