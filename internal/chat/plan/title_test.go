// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// titled is a reply that brings a title.
func titled(title string, source v1beta1.TitleSource) chattest.Reply {
	return func(m *v1beta1.ChatMessage) {
		chattest.Says("hi")(m)
		chattest.Titles(title, source)(m)
	}
}

func firstWords(title string) chattest.Reply { return titled(title, v1beta1.TitleFromFirstWords) }

func written(title string) chattest.Reply { return titled(title, v1beta1.TitleFromModel) }

func (w *world) wantTitle(title string, source v1beta1.TitleSource) *world {
	w.t.Helper()
	if st := w.chat.Status; st.Title != title || st.TitleSource != source {
		w.t.Errorf("the title is %q from %q, want %q from %q", st.Title, st.TitleSource, title, source)
	}
	return w
}

func TestModelsTitleReplacesFirstWords(t *testing.T) {
	w := newWorld(t).say("a").wantTitle("", "")
	w.answer(firstWords("why is…")).wantTitle("why is…", v1beta1.TitleFromFirstWords)
	w.say("b").answer(written("Stuck pods")).wantTitle("Stuck pods", v1beta1.TitleFromModel)
	w.say("c").answer(chattest.Says("hi")).wantTitle("Stuck pods", v1beta1.TitleFromModel)
	w.say("d").answer(firstWords("why is…")).wantTitle("Stuck pods", v1beta1.TitleFromModel)
}

func TestFirstWordsAreTitleUntilModelGeneratesOne(t *testing.T) {
	begins := func(w *world, name, words string) *world {
		return w.pass(func(f *Facts) { f.Open = []Message{{Name: name, ContentHash: "hash of " + name, FirstWords: words}} })
	}
	w := begins(newWorld(t), "a", "why is…").wantTitle("why is…", v1beta1.TitleFromFirstWords)
	w.answer(written("Stuck pods")).wantTitle("Stuck pods", v1beta1.TitleFromModel)
	begins(w, "b", "and then…").wantTitle("Stuck pods", v1beta1.TitleFromModel)
	w.pass(func(f *Facts) {
		f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "other", FirstWords: "how is…"}}
	}).wantTitle("how is…", v1beta1.TitleFromFirstWords)

	w = newWorld(t)
	w.chat.Spec.Title = "Mine"
	begins(w, "a", "why is…").wantTitle("Mine", v1beta1.TitleFromSpec)
}

func TestATitleComesWithAnyResultThatCounts(t *testing.T) {
	title := chattest.Titles("why", v1beta1.TitleFromFirstWords)
	for name, said := range map[string]chattest.Reply{
		"calls": chattest.Calls("1"), "a failure": chattest.Fails(v1beta1.ErrorAuthenticationFailed),
		"a reply": chattest.Says("hi"),
	} {
		t.Run(name, func(t *testing.T) {
			newWorld(t).say("a").answer(said, title).wantTitle("why", v1beta1.TitleFromFirstWords)
		})
	}
	late := func(m *v1beta1.ChatMessage) { m.Spec.Generation.Attempt = 9 }
	newWorld(t).say("a").answer(chattest.Says("hi"), title, late).wantTitle("", "")
}

func TestSpecTitleTakesPrecedenceUntilRemoved(t *testing.T) {
	w := newWorld(t)
	w.chat.Spec.Title = "Mine"
	w.pass(nil).wantTitle("Mine", v1beta1.TitleFromSpec)
	w.say("a").answer(written("Stuck pods")).wantTitle("Mine", v1beta1.TitleFromSpec)
	w.chat.Spec.Title = "Still mine"
	w.pass(nil).wantTitle("Still mine", v1beta1.TitleFromSpec)
	w.chat.Spec.Title = ""
	w.pass(nil).wantTitle("", "")
	w.say("b").answer(firstWords("why is…")).wantTitle("why is…", v1beta1.TitleFromFirstWords)
}

func TestANewBeginningGetsANewTitle(t *testing.T) {
	edit := func(name string, parent string, index int64) func(*Facts) {
		return func(f *Facts) {
			f.Edited = &Edited{Message: Message{Name: name, ContentHash: "other"},
				Commit: v1beta1.CommittedMessage{Parent: parent, Position: index}}
		}
	}
	w := newWorld(t).say("a").answer(written("Stuck pods")).say("b").answer(chattest.Says("hi"))
	w.pass(edit("b", "c-1-1", 2)).wantTitle("Stuck pods", v1beta1.TitleFromModel)
	w.answer(chattest.Says("hi")).pass(edit("a", "", 0)).wantTitle("", "")
	w.answer(firstWords("how is…")).wantTitle("how is…", v1beta1.TitleFromFirstWords)
}

func TestTitleGenerationUsageIsCountedOnce(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi"), func(m *v1beta1.ChatMessage) {
		m.Spec.Generation.TitleCall = &v1beta1.CallAccount{Usage: v1beta1.TokenUsage{InputTokens: 20, TotalTokens: 20},
			Cost: &v1beta1.Cost{Currency: "USD", MicroUnits: 3}}
	})
	if got := w.chat.Status; got.Usage.TotalTokens != 35 || got.Usage.InputTokens != 30 || len(got.Cost) != 1 ||
		got.Cost[0].MicroUnits != 3 {
		t.Errorf("the usage is %+v, the cost %+v", got.Usage, got.Cost)
	}
	if w.pass(nil); w.chat.Status.Usage.TotalTokens != 35 {
		t.Errorf("the usage became %+v", w.chat.Status.Usage)
	}
}

func TestAnotherTitleIsWrittenBesideTheNextReply(t *testing.T) {
	w := newWorld(t)
	w.facts = func(f *Facts) { f.Model.Titles = true }
	w.say("a").answer(written("Stuck pods"))
	w.ask(v1beta1.RequestTitle).wantTitle("Stuck pods", v1beta1.TitleOutdated).requested(v1beta1.RequestDone)
	if w.chat.Status.Phase != v1beta1.ChatWaiting {
		t.Errorf("the chat is %s", w.chat.Status.Phase)
	}
	w.say("b").answer(firstWords("why is…")).wantTitle("Stuck pods", v1beta1.TitleOutdated)
	w.say("c").answer(written("Full disks")).wantTitle("Full disks", v1beta1.TitleFromModel)
}

func TestRemovedTitleIsWrittenAnew(t *testing.T) {
	w := newWorld(t)
	w.facts = func(f *Facts) { f.Model.Titles = true }
	w.chat.Spec.Title = "Mine"
	w.say("a").answer(chattest.Says("hi")).say("b").answer(chattest.Says("hi"))
	w.chat.Spec.Title = ""
	w.pass(nil).wantTitle("", "")
	w.ask(v1beta1.RequestTitle).wantTitle("", v1beta1.TitleOutdated).requested(v1beta1.RequestDone)
	w.say("c").answer(firstWords("why is…")).wantTitle("why is…", v1beta1.TitleOutdated)
	w.say("d").answer(written("Full disks")).wantTitle("Full disks", v1beta1.TitleFromModel)
	w = newWorld(t)
	w.facts = func(f *Facts) { f.Model.Titles = true }
	w.ask(v1beta1.RequestTitle).wantTitle("", "").requested(v1beta1.RequestDone)
	w.say("a").answer(firstWords("why is…")).wantTitle("why is…", v1beta1.TitleFromFirstWords)
}

func TestTitleRequestIsRefusedWithoutModelTitles(t *testing.T) {
	w := newWorld(t).say("a").answer(firstWords("why is…"))
	w.ask(v1beta1.RequestTitle).wantTitle("why is…", v1beta1.TitleFromFirstWords).requested(v1beta1.RequestRefused)
	w = newWorld(t)
	w.facts = func(f *Facts) { f.Model.Titles = true }
	w.chat.Spec.Title = "Mine"
	w.say("a").ask(v1beta1.RequestTitle).wantTitle("Mine", v1beta1.TitleFromSpec).requested(v1beta1.RequestRefused)
}
