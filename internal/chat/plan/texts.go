// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/printable"
)

// cleanTexts leaves out of the status what terminals would act on. Generation pods and people wrote these texts, and
// "kubectl get" and dashboards print them. What is data stays as it is: the inputs of tool calls, tokens of requests.
func cleanTexts(st *v1beta1.ChatStatus) {
	st.LastReply, st.Title = printable.Line(st.LastReply), printable.Line(st.Title)
	if st.Turn != nil {
		st.Turn.Summary = printable.Line(st.Turn.Summary)
	}
	if e := st.LastError; e != nil {
		e.Message, e.Advice, e.Provider = printable.Line(e.Message), printable.Line(e.Advice), printable.Line(e.Provider)
	}
	if st.Retry != nil {
		st.Retry.Message, st.Retry.Provider = printable.Line(st.Retry.Message), printable.Line(st.Retry.Provider)
	}
	for i := range st.Requests {
		st.Requests[i].Message = printable.Line(st.Requests[i].Message)
	}
}
