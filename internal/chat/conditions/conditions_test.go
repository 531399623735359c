// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	parley "parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/machine"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/pods/capacity"
	"parley.dev/parley/test/kit/check"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// computed is what kstatus, and with it Flux and others, makes of an object.
func computed(t *testing.T, o runtime.Object) status.Status {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// checkInvariants holds what every set of conditions must obey.
func checkInvariants(t *testing.T, conditions []metav1.Condition, generation int64) {
	t.Helper()
	seen := map[string]metav1.Condition{}
	for _, c := range conditions {
		seen[c.Type] = c
		if c.ObservedGeneration != generation {
			t.Errorf("%s observed generation %d, not %d", c.Type, c.ObservedGeneration, generation)
		}
		if c.Reason == "" || c.LastTransitionTime.IsZero() {
			t.Errorf("%s has reason %q and transition time %v", c.Type, c.Reason, c.LastTransitionTime)
		}
	}
	if _, ok := seen[v1beta1.ConditionReady]; !ok {
		t.Error("Ready is absent")
	}
	_, reconciling := seen[v1beta1.ConditionReconciling]
	_, stalled := seen[v1beta1.ConditionStalled]
	if reconciling && stalled {
		t.Error("Reconciling and Stalled are both present")
	}
	if ready := seen[v1beta1.ConditionReady].Status; (ready == metav1.ConditionUnknown) != reconciling ||
		(ready == metav1.ConditionFalse) != stalled {
		t.Errorf("Ready is %s, Reconciling %v, Stalled %v", ready, reconciling, stalled)
	}
}

func TestKstatusUnderstandsEveryStateOfAChat(t *testing.T) {
	generating := &v1beta1.GenerationStatus{Attempt: 1, Action: v1beta1.ActionGenerateAssistant, Pod: "p"}
	executing := &v1beta1.GenerationStatus{Attempt: 1, Action: v1beta1.ActionExecuteTools, Pod: "p"}
	turn := &v1beta1.TurnStatus{Message: "m"}
	blocked := &v1beta1.GenerationError{Reason: v1beta1.ErrorModelConfigNotFound, Message: "create one"}
	failure := &v1beta1.LastError{GenerationError: v1beta1.GenerationError{Reason: v1beta1.ErrorRateLimited,
		Message: "wait"}}
	for name, c := range map[string]struct {
		status v1beta1.ChatStatus
		facts  parley.ChatFacts
		want   status.Status
		reason string
	}{
		"no message yet": {v1beta1.ChatStatus{Phase: v1beta1.ChatWaiting}, parley.ChatFacts{}, status.CurrentStatus,
			"AwaitingFirstMessage"},
		"beginning": {v1beta1.ChatStatus{Phase: v1beta1.ChatWaiting}, parley.ChatFacts{Beginning: true},
			status.InProgressStatus, "Starting"},
		"answered": {v1beta1.ChatStatus{Phase: v1beta1.ChatWaiting, Turn: turn}, parley.ChatFacts{},
			status.CurrentStatus, "Answered"},
		"ended by the limit": {v1beta1.ChatStatus{Phase: v1beta1.ChatWaiting,
			Turn: &v1beta1.TurnStatus{Result: v1beta1.TurnMaxStepsReached}}, parley.ChatFacts{}, status.CurrentStatus,
			"MaxStepsReached"},
		"ended by a tool": {v1beta1.ChatStatus{Phase: v1beta1.ChatWaiting,
			Turn: &v1beta1.TurnStatus{Result: v1beta1.TurnStoppedAfterTool, StoppedBy: "plan"}}, parley.ChatFacts{},
			status.CurrentStatus, "StoppedAfterTool"},
		"without a model": {v1beta1.ChatStatus{Phase: v1beta1.ChatWaiting}, parley.ChatFacts{Blocked: blocked},
			status.FailedStatus, "ModelConfigNotFound"},
		"generating": {v1beta1.ChatStatus{Phase: v1beta1.ChatRunning, Generation: generating, Turn: turn},
			parley.ChatFacts{}, status.InProgressStatus, "Generating"},
		"running tools": {v1beta1.ChatStatus{Phase: v1beta1.ChatRunning, Generation: executing, Turn: turn},
			parley.ChatFacts{}, status.InProgressStatus, "ExecutingTools"},
		"pod starting": {v1beta1.ChatStatus{Phase: v1beta1.ChatRunning, Generation: generating, Turn: turn},
			parley.ChatFacts{PodStarting: "pulling"}, status.InProgressStatus, "WaitingForPod"},
		"running without a pod": {v1beta1.ChatStatus{Phase: v1beta1.ChatRunning, Turn: turn}, parley.ChatFacts{},
			status.InProgressStatus, "Generating"},
		"interrupting": {v1beta1.ChatStatus{Phase: v1beta1.ChatInterrupting, Turn: turn}, parley.ChatFacts{},
			status.InProgressStatus, "Interrupting"},
		"suspended": {v1beta1.ChatStatus{Phase: v1beta1.ChatRunning, Turn: turn},
			parley.ChatFacts{Held: machine.Suspended}, status.InProgressStatus, "Suspended"},
		"class missing": {v1beta1.ChatStatus{Phase: v1beta1.ChatRunning, Turn: turn},
			parley.ChatFacts{Held: machine.ReferenceMissing, MissingReference: &v1beta1.GenerationError{
				Reason: v1beta1.ErrorChatClassNotFound, Message: "gone"}}, status.InProgressStatus, "ChatClassNotFound"},
		"held by a quota": {v1beta1.ChatStatus{Phase: v1beta1.ChatRunning, Turn: turn},
			parley.ChatFacts{Held: machine.NoCapacity, NoCapacity: "ChatQuota"}, status.InProgressStatus, "WaitingForCapacity"},
		"waiting for a person": {v1beta1.ChatStatus{Phase: v1beta1.ChatRequiresAction, Turn: turn}, parley.ChatFacts{},
			status.InProgressStatus, "RequiresAction"},
		"failed": {v1beta1.ChatStatus{Phase: v1beta1.ChatError, Turn: turn, LastError: failure},
			parley.ChatFacts{}, status.FailedStatus, "RateLimited"},
		"failed, without reason": {v1beta1.ChatStatus{Phase: v1beta1.ChatError, Turn: turn}, parley.ChatFacts{},
			status.FailedStatus, "InternalError"},
	} {
		for mark, marked := range marks {
			t.Run(name+mark, func(t *testing.T) {
				chat := &v1beta1.Chat{
					TypeMeta:   metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "Chat"},
					ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 3}, Status: *c.status.DeepCopy(),
				}
				c.facts.Generation, c.facts.Now = 3, now
				marked(&chat.Status)
				parley.Chat(&chat.Status, c.facts)
				checkInvariants(t, chat.Status.Conditions, 3)
				if got := computed(t, chat); got != c.want {
					t.Errorf("kstatus says %s, want %s", got, c.want)
				}
				for _, condition := range chat.Status.Conditions {
					if condition.Type == v1beta1.ConditionReady && condition.Reason != c.reason {
						t.Errorf("Ready's reason is %s, want %s", condition.Reason, c.reason)
					}
				}
				chat.Generation = 4
				if got := computed(t, chat); got != status.InProgressStatus {
					t.Errorf("after an edit that is not yet observed kstatus says %s", got)
				}
			})
		}
	}
}

// marks are what a chat says besides how it stands.
var marks = map[string]func(*v1beta1.ChatStatus){
	"":                      func(*v1beta1.ChatStatus) {},
	", truncated":           func(st *v1beta1.ChatStatus) { parley.MarkTruncated(st, "m", true, now) },
	", without its advisor": func(st *v1beta1.ChatStatus) { parley.MarkAdvisor(st, noAdvice, now) },
}

var noAdvice = &v1beta1.GenerationError{Reason: v1beta1.ErrorModelConfigNotFound, Message: "create it"}

func TestAMissingAdvisorIsACondition(t *testing.T) {
	var st v1beta1.ChatStatus
	said := func() *metav1.Condition { return meta.FindStatusCondition(st.Conditions, "AdvisorUnavailable") }
	parley.MarkAdvisor(&st, nil, now)
	if said() != nil {
		t.Errorf("without a reason it is %+v", said())
	}
	parley.MarkAdvisor(&st, noAdvice, now)
	want := metav1.Condition{
		Type: "AdvisorUnavailable", Status: metav1.ConditionTrue, Reason: "ModelConfigNotFound", Message: "create it",
		LastTransitionTime: metav1.NewTime(now),
	}
	if got := said(); got == nil || *got != want {
		t.Errorf("got %+v", got)
	}
	parley.MarkAdvisor(&st, &v1beta1.GenerationError{Reason: v1beta1.ErrorModelConfigInvalid, Message: "correct it"},
		now.Add(time.Hour))
	if got := said(); got == nil || got.Reason != "ModelConfigInvalid" || !got.LastTransitionTime.Time.Equal(now) {
		t.Errorf("with another reason it is %+v", got)
	}
	parley.MarkAdvisor(&st, nil, now)
	if said() != nil {
		t.Errorf("it stayed: %+v", said())
	}
}

func TestKstatusUnderstandsEveryStateOfAUserMessage(t *testing.T) {
	failure := &v1beta1.TurnOutcome{Result: v1beta1.TurnFailed, Reason: v1beta1.ErrorRateLimited, Error: "wait"}
	for name, c := range map[string]struct {
		summary parley.Summary
		want    status.Status
		settled bool
	}{
		"being answered": {parley.OfTurn(&v1beta1.TurnOutcome{}), status.InProgressStatus, false},
		"answered": {parley.OfTurn(&v1beta1.TurnOutcome{Result: v1beta1.TurnAnswered}), status.CurrentStatus,
			true},
		"ended by the limit": {parley.OfTurn(&v1beta1.TurnOutcome{Result: v1beta1.TurnMaxStepsReached}),
			status.CurrentStatus, true},
		"ended by a tool": {parley.OfTurn(&v1beta1.TurnOutcome{Result: v1beta1.TurnStoppedAfterTool,
			StoppedBy: "plan"}), status.CurrentStatus, true},
		"failed": {parley.OfTurn(failure), status.FailedStatus,
			true},
		"failed, unknown": {parley.OfTurn(&v1beta1.TurnOutcome{Result: v1beta1.TurnFailed}), status.FailedStatus, true},
		"interrupted": {parley.OfTurn(&v1beta1.TurnOutcome{Result: v1beta1.TurnInterrupted}), status.FailedStatus,
			true},
		"queued":   {parley.Working(v1beta1.ReasonQueued, "waits"), status.InProgressStatus, false},
		"rejected": {parley.Failed(v1beta1.ReasonQueueFull, "full"), status.FailedStatus, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1beta1.ChatMessage{
				TypeMeta:   metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "ChatMessage"},
				ObjectMeta: metav1.ObjectMeta{Name: "m", Generation: 1},
			}
			parley.Message(&m.Status, c.summary, 1, now)
			checkInvariants(t, m.Status.Conditions, 1)
			if got := computed(t, m); got != c.want {
				t.Errorf("kstatus says %s, want %s", got, c.want)
			}
			if got := parley.MessageSettled(m); got != c.settled {
				t.Errorf("settled is %v", got)
			}
		})
	}
}

func TestKstatusUnderstandsEveryStateOfAModelConfig(t *testing.T) {
	for name, c := range map[string]struct {
		facts parley.ModelConfigFacts
		want  status.Status
	}{
		"the default":      {parley.ModelConfigFacts{FirstDefault: "a"}, status.CurrentStatus},
		"a second default": {parley.ModelConfigFacts{FirstDefault: "0"}, status.CurrentStatus},
		"one that names what does not exist": {parley.ModelConfigFacts{FirstDefault: "a", Missing: []string{"gone"}},
			status.CurrentStatus},
		"one that leads where it may not": {parley.ModelConfigFacts{FirstDefault: "a", ForbiddenHost: "example.com"},
			status.FailedStatus},
		"one whose authorities are missing": {parley.ModelConfigFacts{FirstDefault: "a",
			CABundle: &modelconfig.CABundleProblem{}}, status.InProgressStatus},
		"one whose authorities are no certificates": {parley.ModelConfigFacts{FirstDefault: "a",
			CABundle: &modelconfig.CABundleProblem{Found: true}}, status.FailedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			config := &v1beta1.ChatModelConfig{
				TypeMeta:   metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "ChatModelConfig"},
				ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1}, Spec: v1beta1.ChatModelConfigSpec{Default: true},
			}
			parley.ModelConfig(config, c.facts, now)
			checkInvariants(t, config.Status.Conditions, 1)
			if got := computed(t, config); got != c.want {
				t.Errorf("kstatus says %s", got)
			}
		})
	}
}

func TestAModelConfigSaysWhichReferencesLeadNowhere(t *testing.T) {
	config := &v1beta1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 3}}
	said := func(missing ...string) (ready, unresolved *metav1.Condition) {
		parley.ModelConfig(config, parley.ModelConfigFacts{Missing: missing}, now)
		return meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionReady),
			meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionReferencesUnresolved)
	}
	ready, unresolved := said("gone", "off")
	if ready.Status != metav1.ConditionTrue || v1beta1.ReasonOf(ready) != v1beta1.ReasonAccepted {
		t.Errorf("Ready is %+v", ready)
	}
	want := metav1.Condition{
		Type: "ReferencesUnresolved", Status: metav1.ConditionTrue, Reason: "ReferenceNotFound", ObservedGeneration: 3,
		LastTransitionTime: metav1.NewTime(now),
		Message: "Can be used without them, but names ChatModelConfigs that do not " +
			"exist or are disabled: gone, off. Create or enable them, or take them out of fallbacks and the modelConfigRef of " +
			"compaction, titles and turnSummaries",
	}
	if unresolved == nil || *unresolved != want {
		t.Errorf("it says %+v", unresolved)
	}
	if _, unresolved = said(); unresolved != nil {
		t.Errorf("once they are there it says %+v", unresolved)
	}
	config.Spec.Disabled = true
	if _, unresolved = said("gone"); unresolved != nil {
		t.Errorf("out of use it says %+v", unresolved)
	}
}

func TestKstatusUnderstandsEveryStateOfAQuota(t *testing.T) {
	two, nine := new(int32(2)), new(int32(9))
	for name, c := range map[string]struct {
		own     capacity.Limits
		spec    v1beta1.GeneratingLimits
		reason  string
		message string
	}{
		"alone": {
			capacity.Limits{Chats: capacity.Limit{Max: 2, Quota: "a"}}, v1beta1.GeneratingLimits{Chats: two},
			"Enforced", "Limits in force: 2 chats and 1000 sub-chats generating at once",
		},
		"smaller in one number": {
			capacity.Limits{Chats: capacity.Limit{Max: 1, Quota: "b"}, SubChats: capacity.Limit{Max: 9, Quota: "a"}},
			v1beta1.GeneratingLimits{Chats: two, SubChats: nine},
			"Enforced", "Limits in force: 1 chat and 9 sub-chats generating at once",
		},
		"larger in chats": {
			capacity.Limits{Chats: capacity.Limit{Max: 1, Quota: "b"}}, v1beta1.GeneratingLimits{Chats: two},
			"Overridden",
			"Limits in force: 1 chat and 1000 sub-chats generating at once. ChatQuota b decides, since it allows as many " +
				"or fewer",
		},
		"larger in sub-chats": {
			capacity.Limits{Chats: capacity.Limit{Max: 1, Quota: "b"}, SubChats: capacity.Limit{Max: 3, Quota: "c"}},
			v1beta1.GeneratingLimits{SubChats: nine},
			"Overridden",
			"Limits in force: 1 chat and 3 sub-chats generating at once. ChatQuota c decides, since it allows as many or fewer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			quota := &v1beta1.ChatQuota{
				TypeMeta:   metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "ChatQuota"},
				ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 2}, Spec: v1beta1.ChatQuotaSpec{Generating: c.spec},
			}
			parley.ChatQuota(quota, nil, c.own, c.own.Or(capacity.OfCluster(nil).Namespace), now)
			checkInvariants(t, quota.Status.Conditions, 2)
			if got := computed(t, quota); got != status.CurrentStatus {
				t.Errorf("kstatus says %s", got)
			}
			if ready := quota.Status.Conditions[0]; ready.Reason != c.reason || ready.Message != c.message {
				t.Errorf("Ready says %s: %s", ready.Reason, ready.Message)
			}
		})
	}
}

func TestQuotaOfFilesReportsTheSmallest(t *testing.T) {
	all := make([]v1beta1.ChatQuota, 3)
	for i, limit := range []string{"10Gi", "5Gi", "5Gi"} {
		all[i].Name, all[i].Spec.StoredFiles = string(rune('a'+i)), limit
	}
	const counts = "Limits in force: 500 chats and 1000 sub-chats generating at once, and 5Gi of stored files"
	for i, want := range []string{
		"Overridden: " + counts + ". ChatQuota b decides, since it allows as many or fewer", "Enforced: " + counts,
		"Overridden: " + counts + ". ChatQuota b decides, since it allows as many or fewer",
	} {
		quota := all[i].DeepCopy()
		parley.ChatQuota(quota, all, capacity.Limits{}, capacity.OfCluster(nil).Namespace, now)
		ready := quota.Status.Conditions[0]
		check.Equal(t, quota.Name, want, ready.Reason+": "+ready.Message)
	}
}

func TestKstatusUnderstandsTheClusterQuota(t *testing.T) {
	quota := &v1beta1.ClusterChatQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "ClusterChatQuota"},
		ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 2},
		Status:     v1beta1.ChatQuotaStatus{ObservedGeneration: -1},
	}
	if got := computed(t, quota); got != status.InProgressStatus {
		t.Errorf("before it is in force kstatus says %s", got)
	}
	parley.ClusterChatQuota(quota, capacity.OfCluster(quota), now)
	checkInvariants(t, quota.Status.Conditions, 2)
	if got := computed(t, quota); got != status.CurrentStatus {
		t.Errorf("kstatus says %s", got)
	}
}

func TestUnobservedObjectIsInProgress(t *testing.T) {
	chat := &v1beta1.Chat{
		TypeMeta:   metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "Chat"},
		ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 1},
		Status:     v1beta1.ChatStatus{ObservedGeneration: -1}, // As the schema's default has it.
	}
	if got := computed(t, chat); got != status.InProgressStatus {
		t.Errorf("kstatus says %s", got)
	}
}
