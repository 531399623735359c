// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"parley.dev/parley/api/v1alpha1"
)

// takeTitle makes the title that came with a result the chat's, unless the chat has a better one: what a model wrote is not
// taken back for first words. To take the same one twice changes nothing.
func (p *pass) takeTitle(result *v1alpha1.ChatMessage) {
	st, g := p.status(), result.Spec.Generation
	if g.Title == "" || g.TitleSource == v1alpha1.TitleFromFirstWords && st.TitleSource == v1alpha1.TitleFromModel {
		return
	}
	st.Title, st.TitleSource = g.Title, g.TitleSource
}

// settleTitle lets the title that a person gave win. When it is taken back, the next result brings another one.
func (p *pass) settleTitle() {
	st := p.status()
	if given := p.chat.Spec.Title; given != "" {
		st.Title, st.TitleSource = given, v1alpha1.TitleFromSpec
	} else if st.TitleSource == v1alpha1.TitleFromSpec {
		st.Title, st.TitleSource = "", ""
	}
}

// dropTitle forgets what was said about a beginning that is no more.
func (p *pass) dropTitle() {
	if p.status().History.Length == 0 {
		p.status().Title, p.status().TitleSource = "", ""
	}
}
