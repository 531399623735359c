// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/waiting"
)

const (
	onlyPodsRecord = "only generation pods record model calls"
	ownRecording   = "a generation pod records under its own name only"
	oneCall        = "a recording is about one call of one chat"
	ended          = "an attempt that has ended cannot change"
)

// recording is what pod-a records of the chat's attempt, changed.
func recording(chat *v1beta1.Chat, change func(*v1beta1.ChatDebugStep)) *v1beta1.ChatDebugStep {
	step := &v1beta1.ChatDebugStep{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: chat.Namespace, Name: fmt.Sprintf("%s-%d-generateassistant", chat.Name, chat.Status.History.Version),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1beta1.GroupVersion.String(), Kind: "Chat", Name: chat.Name, UID: chat.UID, Controller: new(true),
			}},
		},
		DebugRecording: v1beta1.DebugRecording{
			ChatRef: v1beta1.ChatReference{Name: chat.Name}, ChatUID: string(chat.UID),
			HistoryVersion: chat.Status.History.Version,
			Action:         v1beta1.ActionGenerateAssistant, Call: 1, Pod: podA.pod,
			Attempt: 1,
			State:   v1beta1.DebugInProgress, StartedAt: metav1.NowMicro(),
		},
	}
	if change != nil {
		change(step)
	}
	return step
}

// rewrites changes a recording by an update, as pods do.
func rewrites(step *v1beta1.ChatDebugStep, change func(*v1beta1.DebugRecording)) action {
	return updates(step, func(now *v1beta1.ChatDebugStep) { change(&now.DebugRecording) })
}

func TestOnlyGenerationPodsRecordCalls(t *testing.T) {
	t.Parallel()
	s, other := newScene(t), newScene(t)
	changed := func(change func(*v1beta1.ChatDebugStep)) client.Object { return recording(s.chat, change) }
	good := recording(s.chat, nil)
	second := recording(s.chat, func(d *v1beta1.ChatDebugStep) { d.Name += "-2"; d.Call = 2 })
	writes := []write{
		{podA, "records as another pod", creates(changed(func(d *v1beta1.ChatDebugStep) { d.Pod = podB.pod })),
			ownRecording},
		{podless, "records", creates(good), ownRecording},
		{podC, "records a call in another namespace", creates(good), noRight},
		{podA, "records under any name", creates(changed(func(d *v1beta1.ChatDebugStep) { d.Name = "other" })), oneCall},
		{podA, "records a second call under the name of the first",
			creates(changed(func(d *v1beta1.ChatDebugStep) { d.Call = 2 })), oneCall},
		{podA, "records for a chat that does not own it", creates(changed(func(d *v1beta1.ChatDebugStep) {
			d.OwnerReferences = recording(other.chat, nil).OwnerReferences
		})), oneCall},
		{podA, "records what nobody owns", creates(changed(func(d *v1beta1.ChatDebugStep) { d.OwnerReferences = nil })),
			oneCall},
		{podA, "records", creates(good), ""},
		{podA, "records a second call", creates(second), ""},
		{podA, "gives a recording to another chat",
			rewrites(good, func(d *v1beta1.DebugRecording) { d.ChatUID = string(other.chat.UID) }), oneCall},
		{podB, "writes on as the other pod",
			rewrites(good, func(d *v1beta1.DebugRecording) { d.State = v1beta1.DebugError }), ownRecording},
		{podA, "ends an attempt", rewrites(good, func(d *v1beta1.DebugRecording) { d.State = v1beta1.DebugError }), ""},
		{podA, "changes an attempt that has ended",
			rewrites(good, func(d *v1beta1.DebugRecording) { d.State = v1beta1.DebugCompleted }), ended},
		{podB, "adds a later attempt", rewrites(good, func(d *v1beta1.DebugRecording) {
			d.Pod, d.Attempt, d.State = podB.pod, 2, v1beta1.DebugInProgress
		}), ""},
		{podA, "deletes a recording", deletes(good), noRight},
		{podA, "lists recordings", lists, noRight},
	}
	for _, who := range []actor{boss, root, administrator, impostor, deployer, manager} {
		writes = append(writes,
			write{who, "forges a recording", creates(changed(func(d *v1beta1.ChatDebugStep) { d.Name += "-forged" })),
				onlyPodsRecord},
			write{who, "changes a recording",
				rewrites(good, func(d *v1beta1.DebugRecording) { d.State = v1beta1.DebugError }), onlyPodsRecord},
			write{who, "keeps a recording for longer", annotates(good), ""},
		)
	}
	for _, who := range []actor{owner, chatter, viewer, approver, gateway} {
		writes = append(writes,
			write{who, "forges a recording", creates(good), noRight},
			write{who, "reads prompts", lists, noRight},
		)
	}
	try(t, append(writes,
		write{debugger, "reads recordings", lists, ""},
		write{debugger, "changes a recording", patches(good, `{"spec":{"status":"Error"}}`), noRight},
		write{debugger, "deletes a recording", deletes(good), ""},
		write{manager, "says that a recording was interrupted",
			rewrites(second, func(d *v1beta1.DebugRecording) { d.State = v1beta1.DebugInterrupted }), ""},
		write{manager, "says so of one that has ended",
			rewrites(second, func(d *v1beta1.DebugRecording) { d.State, d.Attempt = v1beta1.DebugInterrupted, 9 }),
			onlyPodsRecord},
		write{root, "gives a recording to another chat", ownedBy(second, other.chat.UID), onlyPodsRecord},
		write{root, "removes its owner, as the garbage collector does", ownedBy(second, ""), ""},
		write{manager, "deletes a recording that has expired", deletes(second), ""},
	))
}

// ownedBy gives a recording to the chat of that UID; to none, if that is empty.
func ownedBy(step *v1beta1.ChatDebugStep, uid types.UID) action {
	return updates(step, func(now *v1beta1.ChatDebugStep) {
		if now.OwnerReferences[0].UID = uid; uid == "" {
			now.OwnerReferences = nil
		}
	})
}

// annotates moves the end of a recording by an update.
func annotates(step *v1beta1.ChatDebugStep) action {
	return updates(step, func(now *v1beta1.ChatDebugStep) {
		now.Annotations = map[string]string{v1beta1.AnnotationExpiresAt: "2030-01-01T00:00:00Z"}
	})
}

func lists(ctx context.Context, c client.Client) error {
	return c.List(ctx, &v1beta1.ChatDebugStepList{}, client.InNamespace(ns))
}

// TestANamespaceCanKeepRecordingsOut is not parallel: it labels the namespace that other tests record in.
func TestANamespaceCanKeepRecordingsOut(t *testing.T) {
	s := newScene(t)
	label := func(value string) action {
		return func(ctx context.Context, c client.Client) error {
			patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1beta1.LabelRecordings, value)
			return c.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.chat.Namespace}},
				client.RawPatch(types.MergePatchType, []byte(patch)))
		}
	}
	begun := recording(s.chat, nil)
	try(t, []write{
		{podA, "records", creates(begun), ""},
		{root, "disables recordings", label(v1beta1.RecordingsDisabled), ""},
	})
	defer func() { try(t, []write{{root, "allows recordings", label("enabled"), ""}}) }()
	const disabled = "recordings of model calls are disabled in this namespace"
	second := recording(s.chat, func(d *v1beta1.ChatDebugStep) { d.Name += "-2"; d.Call = 2 })
	heeded := func() bool { // Admission sees namespaces a moment late.
		err := as(t, podA).Create(t.Context(), second.DeepCopy(), client.DryRunAll)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), disabled)
	}
	waiting.Until(t, 20*time.Second, "recordings are refused", heeded)
	try(t, []write{
		{podA, "writes on", rewrites(begun, func(d *v1beta1.DebugRecording) { d.State = v1beta1.DebugCompleted }),
			disabled},
		{manager, "says that a recording was interrupted",
			rewrites(begun, func(d *v1beta1.DebugRecording) { d.State = v1beta1.DebugInterrupted }), ""},
	})
}
