// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "parley.dev/parley/api/v1beta1"

// takeTitle makes the title that came with a result the chat's, unless the chat has a better one: what a model wrote is
// not taken back for first words. To take the same one twice changes nothing.
func takeTitle(p *pass, result *v1beta1.ChatMessage) {
	st, g := p.status(), result.Spec.Generation
	written := st.TitleSource == v1beta1.TitleFromModel || st.TitleSource == v1beta1.TitleOutdated
	switch {
	case g.Title == "":
	case g.TitleSource == v1beta1.TitleFromModel || !written:
		st.Title, st.TitleSource = g.Title, g.TitleSource
	case st.Title == "": // They stand in for the one that a model is to write.
		st.Title = g.Title
	}
}

// titleFromMessage gives a chat that begins the first words of its first message, until a model writes a better title.
func titleFromMessage(p *pass, first Message) {
	if st := p.status(); st.History.Length == 0 && st.Title == "" && first.FirstWords != "" {
		st.Title, st.TitleSource = first.FirstWords, v1beta1.TitleFromFirstWords
	}
}

// settleTitle lets the title that a person gave win. When it is taken back, the next result brings another one.
func settleTitle(p *pass) {
	st := p.status()
	if given := p.chat.Spec.Title; given != "" {
		st.Title, st.TitleSource = given, v1beta1.TitleFromSpec
	} else if st.TitleSource == v1beta1.TitleFromSpec {
		st.Title, st.TitleSource = "", ""
	}
}

// dropTitle forgets what was said about a beginning that is no more.
func dropTitle(p *pass) {
	if p.status().History.Length == 0 {
		p.status().Title, p.status().TitleSource = "", ""
	}
}

// askTitle lets a model write another title, beside the next reply. It is no transition: nothing waits for it.
func askTitle(p *pass) (refusal string) {
	st := p.status()
	model, _ := modelNamed(p, Message{})
	switch {
	case p.chat.Spec.Title != "":
		return "spec.title says the title: change it there, or take it back first"
	case model == nil || !model.Titles:
		return "no model writes titles for this chat: set spec.titles of its ChatModelConfig, or spec.title of the chat"
	}
	if st.History.Length > 0 { // Before that it will get one anyway.
		st.TitleSource = v1beta1.TitleOutdated
	}
	return ""
}

// NeedsTitle reports whether the chat has neither a message nor a title.
func NeedsTitle(chat *v1beta1.Chat) bool {
	return chat.Status.History.Length == 0 && chat.Status.Title == "" && chat.Spec.Title == ""
}
