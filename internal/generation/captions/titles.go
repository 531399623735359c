// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"context"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/captions/wording"
	"parley.dev/parley/internal/generation/models"
)

// SetHistory notes what the chat's title is of, and who created the message of the turn.
func (a *Attempt) SetHistory(messages []v1alpha1.ChatMessage, author string) {
	a.author = author
	later := a.chat.Status.History.ContextStart > 0 // Then what the chat began with is not among the messages.
	title := caption{action: v1alpha1.ActionWriteTitle, chat: a.chat.UID}
	switch first := slices.IndexFunc(messages, wording.Asks); {
	case a.chat.Status.TitleSource == v1alpha1.TitleOutdated:
		title.token = titleToken(a.chat)
		a.title = title
	case later:
		a.title = a.writer.store.newestTitle(a.chat.UID)
	case first >= 0:
		title.message, title.edition = messages[first].UID, messages[first].Generation
		a.title = title
	}
	if !later && a.chat.Spec.Title == "" && a.chat.Status.Title == "" {
		a.firstWords = wording.FirstWords(wording.Of(messages))
	}
}

// askTitle asks for a title beside the reply, if the configuration wants one.
func (a *Attempt) askTitle(ctx context.Context, t *models.Target, messages []v1alpha1.ChatMessage) {
	settings := t.Config.Spec.Titles
	shown := a.titleFrom(messages)
	if !settings.On() || !a.lacksTitle() || shown == "" {
		return
	}
	w := wanted{form: wording.Title, action: v1alpha1.ActionWriteTitle, by: settings.ModelConfigRef, shown: shown,
		spent: a.chat.Status.Cost}
	a.writer.store.begin(ctx, a.title, func(ctx context.Context) (string, *v1alpha1.CallAccount) {
		return a.write(ctx, t, w)
	})
}

// titleFrom is what a model is shown for a title: how the conversation begins, and if it was asked for another title,
// what came of it. Empty if there is nothing to ask.
func (a *Attempt) titleFrom(messages []v1alpha1.ChatMessage) string {
	if a.chat.Status.TitleSource == v1alpha1.TitleOutdated {
		return wording.Conversation(messages)
	}
	text := wording.Of(messages)
	if a.chat.Status.History.ContextStart > 0 || wording.Questions(messages) != 1 || text == "" {
		return ""
	}
	return wording.Beginning(text)
}

// titleToken is the token that asked for another title last.
func titleToken(chat *v1alpha1.Chat) string {
	for _, asked := range chat.Status.Requests {
		if asked.Kind == v1alpha1.RequestTitle {
			return asked.Token
		}
	}
	return ""
}

// lacksTitle reports whether a title that a model writes would be the chat's.
func (a *Attempt) lacksTitle() bool {
	return a.chat.Spec.Title == "" && a.chat.Status.TitleSource != v1alpha1.TitleFromModel
}

// Account lets the result bring a title if the chat lacks one, and the account of the call for it, if the result can
// count. said reports whether the result says anything.
func (a *Attempt) Account(g *v1alpha1.MessageGeneration, said bool) {
	made := a.writer.store.text(a.title)
	switch {
	case made != "" && a.lacksTitle():
		g.Title, g.TitleSource = made, v1alpha1.TitleFromModel
	case a.firstWords != "":
		g.Title, g.TitleSource = a.firstWords, v1alpha1.TitleFromFirstWords
	}
	if g.Outcome == v1alpha1.OutcomeCompleted || g.Outcome == v1alpha1.OutcomeInterrupted && said {
		g.TitleCall = a.writer.store.swapAccount(a.title, nil)
	}
}

// ReturnCall takes back the account of a call from a result that does not come to be.
func (a *Attempt) ReturnCall(g *v1alpha1.MessageGeneration) {
	if g.TitleCall != nil {
		a.writer.store.swapAccount(a.title, g.TitleCall)
	}
}

// AbandonTitle gives up the title that the attempt asked for: nobody waits for the attempt any more.
func (a *Attempt) AbandonTitle() { a.writer.store.abandon(a.title) }
