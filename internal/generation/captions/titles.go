// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"context"
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/captions/wording"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/text/firstwords"
)

// SetHistory sets the history, and the author of the turn's message.
func (a *Attempt) SetHistory(messages []v1beta1.ChatMessage, author string) {
	a.author = author
	later := a.chat.Status.History.ContextStart > 0 // Then the first message of the chat is missing.
	title := caption{action: v1beta1.ActionWriteTitle, chat: a.chat.UID}
	switch first := slices.IndexFunc(messages, wording.Asks); {
	case a.chat.Status.TitleSource == v1beta1.TitleOutdated:
		title.token = titleToken(a.chat)
		a.title = title
	case later:
		a.title = a.writer.store.newestTitle(a.chat.UID)
	case first >= 0:
		title.message, title.edition = messages[first].UID, messages[first].Generation
		a.title = title
	}
	if !later && a.chat.Spec.Title == "" && a.chat.Status.Title == "" {
		a.firstWords = firstwords.OfText(wording.FirstQuestion(messages))
	}
}

// askTitle asks for a title, if the configuration enables titles.
func (a *Attempt) askTitle(ctx context.Context, t *models.Target, messages []v1beta1.ChatMessage) {
	settings := t.Config.Spec.Titles
	text := a.titleFrom(messages)
	if !settings.On() || !a.needsTitle() || text == "" {
		return
	}
	r := request{form: wording.Title, action: v1beta1.ActionWriteTitle, config: settings.ModelConfigRef, text: text,
		spent: a.chat.Status.Cost}
	a.writer.store.begin(ctx, a.title, func(ctx context.Context) (string, *v1beta1.CallAccount) {
		return a.write(ctx, t, r)
	})
}

// titleFrom is the text for a title: the first message of the chat, or the whole conversation if a person has requested
// another title. Empty if no title is due.
func (a *Attempt) titleFrom(messages []v1beta1.ChatMessage) string {
	if a.chat.Status.TitleSource == v1beta1.TitleOutdated {
		return wording.Conversation(messages)
	}
	text := wording.FirstQuestion(messages)
	if a.chat.Status.History.ContextStart > 0 || wording.Questions(messages) != 1 || text == "" {
		return ""
	}
	return wording.Beginning(text)
}

// titleToken is the token of the request for another title.
func titleToken(chat *v1beta1.Chat) string {
	for _, asked := range chat.Status.Requests {
		if asked.Kind == v1beta1.RequestTitle {
			return asked.Token
		}
	}
	return ""
}

// needsTitle reports whether the chat would use a title by a model.
func (a *Attempt) needsTitle() bool {
	return a.chat.Spec.Title == "" && a.chat.Status.TitleSource != v1beta1.TitleFromModel
}

// Account adds the title to the result if the chat needs one, and the account of the call for it if the result can be
// committed, which an interrupted one can if it has content.
func (a *Attempt) Account(g *v1beta1.MessageGeneration, hasContent bool) {
	title := a.writer.store.text(a.title)
	switch {
	case title != "" && a.needsTitle():
		g.Title, g.TitleSource = title, v1beta1.TitleFromModel
	case a.firstWords != "":
		g.Title, g.TitleSource = a.firstWords, v1beta1.TitleFromFirstWords
	}
	if g.Outcome == v1beta1.OutcomeCompleted || g.Outcome == v1beta1.OutcomeInterrupted && hasContent {
		g.TitleCall = a.writer.store.swapAccount(a.title, nil)
	}
}

// ReturnCall takes the account of a call back from a result that was not created.
func (a *Attempt) ReturnCall(g *v1beta1.MessageGeneration) {
	if g.TitleCall != nil {
		a.writer.store.swapAccount(a.title, g.TitleCall)
	}
}

// AbandonTitle cancels the title.
func (a *Attempt) AbandonTitle() { a.writer.store.abandon(a.title) }
