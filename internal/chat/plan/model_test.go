// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/test/kit/chattest"
)

// priced answers with a model whose prices are in dollars, until the next pass.
func priced(change func(*Facts)) func(*Facts) {
	return func(f *Facts) {
		f.Model.Currency = "USD"
		if change != nil {
			change(f)
		}
	}
}

// withBudget is a world whose chat may spend one cent.
func withBudget(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.chat.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "0.01"}}
	return w
}

func (w *world) sayPriced(name string) *world {
	w.t.Helper()
	return w.pass(priced(func(f *Facts) { f.Open = messages(false, name) }))
}

func (w *world) answerPriced(replies ...chattest.Reply) *world {
	w.t.Helper()
	return w.pass(priced(func(f *Facts) { f.Result = chattest.Answer(w.chat, replies...) }))
}

// wantFailure compares the chat's error.
func (w *world) wantFailure(reason v1beta1.ErrorReason, says string) {
	w.t.Helper()
	e := w.chat.Status.LastError
	if w.chat.Status.Phase != v1beta1.ChatError || e == nil || e.Reason != reason || !strings.Contains(e.Text(), says) {
		w.t.Errorf("phase %s, error %+v, want %s saying %q", w.chat.Status.Phase, e, reason, says)
	}
}

// wantHeld compares why the chat's turn waits for a person: nothing of it is lost, and it has no attempt.
func (w *world) wantHeld(reason v1beta1.ErrorReason, says string) {
	w.t.Helper()
	st := w.chat.Status
	ready := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionReady)
	if st.Phase != v1beta1.ChatRunning || st.Generation != nil || st.WaitingSince != nil || st.LastError != nil ||
		ready.Status != metav1.ConditionFalse || ready.Reason != string(reason) || !strings.Contains(ready.Message, says) {
		w.t.Errorf("phase %s, Ready %+v, want %s saying %q", st.Phase, ready, reason, says)
	}
}

func TestCostIsSummedAtEachCommit(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Calls("1"), chattest.Costs(5)).answer(chattest.Results("1")).
		answer(chattest.Says("hi"), chattest.Costs(7))
	if got := w.chat.Status.Cost; len(got) != 1 || got[0] != (v1beta1.Cost{Currency: "USD", MicroUnits: 12}) {
		t.Errorf("got %+v", got)
	}
	w.say("b").answer(chattest.Says("hi"), func(m *v1beta1.ChatMessage) {
		m.Spec.Generation.Cost = &v1beta1.Cost{Currency: "EUR", MicroUnits: 3}
	})
	if got := w.chat.Status.Cost; len(got) != 2 || got[0].MicroUnits != 12 ||
		got[1] != (v1beta1.Cost{Currency: "EUR", MicroUnits: 3}) {
		t.Errorf("got %+v", got)
	}
}

func TestWhatAFailureCostIsCountedOnce(t *testing.T) {
	for name, failure := range map[string]chattest.Reply{
		"for good": chattest.Fails(v1beta1.ErrorProviderError),
		"for now":  chattest.Fails(v1beta1.ErrorProviderError, chattest.ForNow),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a").answer(failure, chattest.Costs(4), func(m *v1beta1.ChatMessage) {
				m.Spec.Generation.Usage = &v1beta1.TokenUsage{InputTokens: 9, TotalTokens: 9}
			})
			result := w.f.Result
			w.pass(func(f *Facts) { f.Result = result })
			if st := w.chat.Status; st.Usage.TotalTokens != 9 || len(st.Cost) != 1 || st.Cost[0].MicroUnits != 4 {
				t.Errorf("the usage is %+v, the cost %+v", st.Usage, st.Cost)
			}
		})
	}
}

func TestResultOutsideTheHistoryIsCountedOnce(t *testing.T) {
	edited := func(f *Facts) { f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"}} }
	deleted := func(f *Facts) { f.Truncated = &Truncated{} }
	for name, c := range map[string]struct {
		interrupted bool
		result      chattest.Reply
		cut         func(*Facts)
	}{
		"a failure after an interrupt":      {true, chattest.Fails(v1beta1.ErrorProviderError), func(*Facts) {}},
		"an interrupted call without reply": {true, chattest.Interrupted(), func(*Facts) {}},
		"a reply before an edit":            {false, chattest.Says("hi"), edited},
		"a reply before a deletion":         {false, chattest.Says("hi"), deleted},
		"a failure before an edit":          {false, chattest.Fails(v1beta1.ErrorProviderError), edited},
		"an interrupted reply that is edited": {true, func(m *v1beta1.ChatMessage) {
			chattest.Says("h")(m)
			chattest.Interrupted()(m)
		}, edited},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a")
			if c.interrupted {
				w.ask(v1beta1.RequestInterrupt)
			}
			result := chattest.Answer(w.chat, c.result, chattest.Costs(4), func(m *v1beta1.ChatMessage) {
				m.Spec.Generation.Usage = &v1beta1.TokenUsage{InputTokens: 9, TotalTokens: 9}
			})
			w.pass(func(f *Facts) { f.Result = result; c.cut(f) }).pass(func(f *Facts) { f.Result = result })
			if st := w.chat.Status; st.Usage.TotalTokens != 9 || len(st.Cost) != 1 || st.Cost[0].MicroUnits != 4 {
				t.Errorf("the usage is %+v, the cost %+v", st.Usage, st.Cost)
			}
		})
	}
}

func TestReachedBudgetHoldsTurnUntilRaised(t *testing.T) {
	w := withBudget(t).sayPriced("a").answerPriced(chattest.Calls("1"), chattest.Costs(10_000))
	w.want("Running v2 c-1-1/2 1:ExecuteTools []") // Tools cost nothing.
	w.answerPriced(chattest.Results("1"))
	w.want("Running v3 c-2-1/3 - []")
	w.wantHeld(v1beta1.ErrorBudgetReached,
		"The chat has cost 0.01 USD, and its budget is 0.01 USD. Raise spec.limits.budget of the chat, and the turn "+
			"continues")

	w.sayPriced("b").want("Running v3 c-2-1/3 - [b]")

	w.chat.Spec.Limits.Budget.Amount = "0.02"
	w.pass(priced(nil)).want("Running v3 c-2-1/3 1:GenerateAssistant [b]")
	want := []v1beta1.EffectiveBudget{{Budget: *w.chat.Spec.Limits.Budget}}
	if diff := cmp.Diff(want, w.chat.Status.Internal.Budgets); diff != "" {
		t.Errorf("the attempt is not told its budgets (-want +got):\n%s", diff)
	}
}

func TestTurnOverBudgetCanBeInterrupted(t *testing.T) {
	w := withBudget(t).sayPriced("a").answerPriced(chattest.Calls("1"), chattest.Costs(10_000)).
		answerPriced(chattest.Results("1"))
	w.pass(priced(func(f *Facts) { f.Requests = []Request{{Kind: v1beta1.RequestInterrupt, Token: "1"}} }))
	w.want("Waiting v4 c-2-1/3 - []").wantReason(v1beta1.ReasonInterrupted)
}

func TestArchivingEndsATurnOverBudget(t *testing.T) {
	w := withBudget(t).sayPriced("a").answerPriced(chattest.Calls("1"), chattest.Costs(10_000)).
		answerPriced(chattest.Results("1"))
	w.pass(priced(func(f *Facts) { f.Archive = true }))
	if st := w.chat.Status; !st.Archived || st.LastError == nil || st.LastError.Reason != v1beta1.ErrorBudgetReached {
		t.Errorf("archived: %v, error %+v", st.Archived, st.LastError)
	}
}

func TestDeletedSubChatsCountTowardsTheBudget(t *testing.T) {
	w := withBudget(t).sayPriced("a").answerPriced(chattest.Calls("1"), chattest.Costs(1_000))
	w.chat.Status.DeletedCost = []v1beta1.Cost{{Currency: "USD", MicroUnits: 9_000}}
	w.answerPriced(chattest.Results("1")).wantHeld(v1beta1.ErrorBudgetReached, "The chat and its sub-chats have")
}

func TestSubChatAtWorkCausesNoWrite(t *testing.T) {
	usd := func(micros int64) []v1beta1.Cost { return []v1beta1.Cost{{Currency: "USD", MicroUnits: micros}} }
	record := func(micros int64) []v1beta1.SubChatCost {
		return []v1beta1.SubChatCost{{Name: "sub", UID: "sub", Cost: usd(micros)}}
	}
	atWork := func(f *Facts) { f.SubChatCosts = tree.Costs{AtRest: record(1), Now: record(2)} }
	deletion := func(f *Facts) { f.SubChatCosts = tree.Costs{Deleted: usd(3)} }
	w := withBudget(t).sayPriced("a").answerPriced(chattest.Says("hi"))
	w.chat.Status.Internal.SubChatCosts = record(1)
	before := w.chat.Status.DeepCopy()
	w.pass(priced(atWork))
	if diff := cmp.Diff(*before, w.chat.Status); diff != "" {
		t.Errorf("a pass without other news changes the status (-before +after):\n%s", diff)
	}
	w.pass(priced(func(f *Facts) { f.Suspended = true; f.Archive = true; atWork(f) }))
	if diff := cmp.Diff(record(2), w.chat.Status.Internal.SubChatCosts); diff != "" {
		t.Errorf("a pass with other news records (-want +got):\n%s", diff)
	}
	w.pass(priced(func(f *Facts) { f.SubChatCosts.AtRest = slices.Repeat(record(1), v1beta1.MaxSubChatCosts+1) }))
	if n := len(w.chat.Status.Internal.SubChatCosts); n != v1beta1.MaxSubChatCosts {
		t.Errorf("the record has %d entries", n)
	}
	w.pass(priced(deletion))
	if st := w.chat.Status; len(st.Internal.SubChatCosts) > 0 || !cmp.Equal(usd(3), st.DeletedCost) {
		t.Errorf("the record is %v, and deleted chats have cost %v", st.Internal.SubChatCosts, st.DeletedCost)
	}
}

func TestReplyThatExhaustsBudgetIsKept(t *testing.T) {
	w := withBudget(t).sayPriced("a").answerPriced(chattest.Says("hi"), chattest.Costs(99_000))
	if st := w.chat.Status; st.Phase != v1beta1.ChatWaiting || st.Turn.Result != v1beta1.TurnAnswered {
		t.Errorf("got %+v", st)
	}
}

func TestBudgetWithoutMatchingPricesHoldsTurn(t *testing.T) {
	w := withBudget(t).say("a")
	w.wantHeld(v1beta1.ErrorModelPriceMissing, "ChatModelConfig default has no prices in it")
	if wait := w.chat.Status.Wait; wait == nil || wait.For != v1beta1.WaitForModelConfig {
		t.Errorf("it waits for %+v", wait)
	}
	w.chat.Spec.Limits.Budget.Currency = "EUR"
	w.pass(priced(nil)).wantHeld(v1beta1.ErrorModelPriceMissing, "a budget in EUR")
	w.chat.Spec.Limits.Budget.Currency = "USD"
	w.pass(priced(nil)).want("Running v1 a/1 1:GenerateAssistant []")
}

// naming makes messages name a model and ask for an effort.
func naming(config string, effort v1beta1.ReasoningEffort, names ...string) []Message {
	all := messages(false, names...)
	for i := range all {
		all[i].ModelConfig, all[i].Effort = config, effort
	}
	return all
}

var fast = map[string]*Model{"fast": {Alternative: Alternative{Config: "fast", Name: "fast-1"}}}

func TestMessageChoosesModelAndEffortOfItsTurn(t *testing.T) {
	w := newWorld(t).pass(func(f *Facts) { f.Open, f.Named = naming("fast", v1beta1.EffortHigh, "a"), fast })
	check := func(config, model string, effort v1beta1.ReasoningEffort) {
		t.Helper()
		st := w.chat.Status
		if st.Generation.ModelConfig != config || st.Model != model || st.Turn.ReasoningEffort != effort {
			t.Errorf("got %s, %s, %q", st.Generation.ModelConfig, st.Model, st.Turn.ReasoningEffort)
		}
	}
	check("fast", "fast-1", v1beta1.EffortHigh)
	w.pass(func(f *Facts) { f.Result, f.Named = chattest.Answer(w.chat, chattest.Calls("1")), fast })
	check("fast", "fast-1", v1beta1.EffortHigh)
	w.pass(func(f *Facts) {
		f.Result, f.Named, f.Open = chattest.Answer(w.chat, chattest.Results("1")), fast, messages(false, "b")
	})
	check("fast", "fast-1", v1beta1.EffortHigh)
	w.pass(func(f *Facts) { f.Result, f.Named = chattest.Answer(w.chat, chattest.Says("hi")), fast }) // b is promoted
	check("default", "m", "")
}

func TestMessageWaitsForItsMissingModelConfig(t *testing.T) {
	w := newWorld(t).pass(func(f *Facts) { f.Open = naming("gone", "", "a") })
	w.want("Waiting v0 /0 - []")
	ready := meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionReady)
	if ready.Reason != "ModelConfigNotFound" ||
		!strings.Contains(ready.Message, "ChatModelConfig gone, which spec.modelConfigRef of ChatMessage a names") {
		t.Errorf("Ready is %+v", ready)
	}
	w.pass(func(f *Facts) {
		f.Open, f.Named = naming("gone", "", "a"),
			map[string]*Model{"gone": {Alternative: Alternative{Config: "gone", Name: "g"}}}
	})
	if g := w.chat.Status.Generation; g == nil || g.ModelConfig != "gone" {
		t.Errorf("got %+v", g)
	}
}

func TestMessageModelReplacesMissingChatModel(t *testing.T) {
	missing := &v1beta1.GenerationError{Reason: v1beta1.ErrorModelConfigNotFound, Message: "none"}
	w := newWorld(t).pass(func(f *Facts) {
		f.Model, f.Blocked = nil, missing
		f.Open, f.Named = naming("fast", "", "a"), fast
	})
	if g := w.chat.Status.Generation; g == nil || g.ModelConfig != "fast" {
		t.Errorf("got %+v", g)
	}
	orphan := &v1beta1.GenerationError{Reason: v1beta1.ErrorParentNotFound, Message: "no parent"}
	w = newWorld(t).pass(func(f *Facts) {
		f.Model, f.Blocked = nil, orphan
		f.Open, f.Named = naming("fast", "", "a"), fast
	})
	w.want("Waiting v0 /0 - []")
}

func TestMessageModelUsesItsOwnFallbacks(t *testing.T) {
	own := map[string]*Model{"fast": {
		Alternative: Alternative{Config: "fast", Name: "fast-1"},
		Fallbacks:   []Alternative{{Config: "spare", Name: "spare-1"}},
	}}
	w := newWorld(t).pass(func(f *Facts) { f.Open, f.Named = naming("fast", "", "a"), own })
	w.pass(func(f *Facts) {
		f.Result, f.Named = chattest.Answer(w.chat, chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)), own
	})
	if g := w.chat.Status.Generation; g == nil || g.ModelConfig != "spare" || g.Attempt != 2 {
		t.Errorf("got %+v, retry %+v", g, w.chat.Status.Retry)
	}
}

func TestASummaryIsPaidFromTheBudgetToo(t *testing.T) {
	w := withBudget(t).sayPriced("a").answerPriced(chattest.Says("hi"), chattest.Costs(10_000))
	w.pass(priced(func(f *Facts) { f.Requests = []Request{{Kind: v1beta1.RequestCompact, Token: "1"}} }))
	w.wantHeld(v1beta1.ErrorBudgetReached, "Raise spec.limits.budget")
	w.chat.Spec.Limits.Budget.Amount = "1"
	w.pass(priced(nil))
	if g := w.chat.Status.Generation; g == nil || g.Action != v1beta1.ActionCompact {
		t.Errorf("after a raise: %+v", g)
	}
	w.answerPriced(chattest.Compacts("They spoke."), chattest.Costs(5))
	if got := w.chat.Status.Cost; len(got) != 1 || got[0].MicroUnits != 10_005 {
		t.Errorf("the cost is %+v", got)
	}
}

func TestModelsOfAllMessagesAreRequestedTogether(t *testing.T) {
	w := newWorld(t)
	w.chat.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Amount: "1", Currency: "EUR"}}
	var open []Message
	for i := range 30 {
		open = append(open, Message{Name: fmt.Sprint("m", i), ModelConfig: fmt.Sprint("config-", i)})
	}
	w.f = Facts{Chat: w.chat, Model: &Model{Alternative: Alternative{Config: "default", Name: "m"}}, Now: w.now,
		Open: open}
	first, err := Advance(w.f)
	if err != nil || len(first.Asks.Models) != len(open) {
		t.Fatalf("asked for %v, %v", first.Asks.Models, err)
	}
	w.f.Named = map[string]*Model{}
	for _, name := range first.Asks.Models {
		w.f.Named[name] = &Model{Alternative: Alternative{Config: name, Name: "m", Currency: "USD"}}
	}
	if second, err := Advance(w.f); err != nil || !second.Asks.Nothing() || second.Status.Phase != v1beta1.ChatRunning {
		t.Errorf("the plan asks for %+v and ends in %s, %v", second.Asks, second.Status.Phase, err)
	}
}

func TestABudgetCountsForTheFamily(t *testing.T) {
	usd := func(micros int64) []v1beta1.Cost { return []v1beta1.Cost{{Currency: "USD", MicroUnits: micros}} }
	above := func(currency v1beta1.Currency, others int64) func(*Facts) {
		return func(f *Facts) {
			f.BudgetsAbove = []tree.BudgetAbove{{Chat: "root", Others: usd(others),
				Budget: &v1beta1.Budget{Currency: currency, Amount: "0.005"}}}
		}
	}
	below := func(micros int64) func(*Facts) {
		return func(f *Facts) {
			f.SubChatCosts.Now = []v1beta1.SubChatCost{{Name: "sub", UID: "sub", Cost: usd(micros)}}
		}
	}
	for name, c := range map[string]struct {
		family func(*Facts)
		reason v1beta1.ErrorReason
		says   string
	}{
		"what chats below have cost": {below(9_000), v1beta1.ErrorBudgetReached,
			"The chat and its sub-chats have cost 0.01 USD, and its budget is 0.01 USD"},
		"the budget of a chat above": {above("USD", 4_000), v1beta1.ErrorBudgetReached,
			"Chat root and its sub-chats have cost 0.005 USD, and its budget is 0.005 USD. Raise spec.limits.budget of chat r"},
		"a budget above in another currency": {above("EUR", 0), v1beta1.ErrorModelPriceMissing,
			"Chat root has a budget in EUR, but ChatModelConfig"},
		"neither is used up": {func(f *Facts) {
			below(8_000)(f)
			above("USD", 3_000)(f)
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := withBudget(t).sayPriced("a").answerPriced(chattest.Calls("1"), chattest.Costs(1_000))
			w.pass(priced(func(f *Facts) {
				f.Result = chattest.Answer(w.chat, chattest.Results("1"))
				c.family(f)
			}))
			if c.reason != "" {
				w.wantHeld(c.reason, c.says)
				return
			}
			want := []v1beta1.EffectiveBudget{
				{Budget: v1beta1.Budget{Currency: "USD", Amount: "0.01"}, OthersMicroUnits: 8_000},
				{Budget: v1beta1.Budget{Currency: "USD", Amount: "0.005"}, Chat: "root", OthersMicroUnits: 3_000},
			}
			if diff := cmp.Diff(want, w.chat.Status.Internal.Budgets); diff != "" {
				t.Errorf("the attempt is told (-want +got):\n%s", diff)
			}
		})
	}
}
