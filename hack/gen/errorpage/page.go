// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package errorpage renders the page of errors from the rules that classify them and the table of finish reasons.
package errorpage

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/template"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/hack/gen/markdown"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/finish"
)

//go:embed errors.md.tmpl
var page string

// Render returns the page.
func Render() ([]byte, error) {
	t, err := template.New("errors").Funcs(template.FuncMap{
		"retried": retried,
		"example": func(reason string, status ...int) string {
			return "`" + fault.Example(v1beta1.ErrorReason(reason), append(status, 0)[0]) + "`"
		},
		"reasons": reasons,
	}).Parse(page)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, nil)
	openAI(&out)
	return out.Bytes(), err
}

// openAI writes the errors of OpenAI's protocols.
func openAI(w io.Writer) {
	fmt.Fprint(w, "\n## At the OpenAI endpoints\n\nAny other reason is a `server_error` (500) with the reason as code, "+
		"in lower case.\n")
	var rows [][]string
	for _, reason := range wire.Reasons() {
		e := wire.Failure(&stream.Error{Reason: reason})
		rows = append(rows, []string{markdown.Code(string(reason)), strconv.Itoa(e.Status), markdown.Code(e.Type),
			markdown.Code(*e.Code)})
	}
	markdown.Table(w, []string{"the turn failed with", "status", "type", "code"}, rows)
}

// retried says whether a call that failed for the reason is tried again, and by whom.
func retried(reason string) (string, error) {
	again := fault.Retried(v1beta1.ErrorReason(reason))
	if again == "" {
		return "", fmt.Errorf("no rule gives the reason %s", reason)
	}
	if plan.AsksFallbacks(v1beta1.ErrorReason(reason)) {
		again += "; fallbacks are asked"
	}
	return again, nil
}

// reasons are the finish reasons of each protocol that lead to the outcome.
func reasons(outcome string) string {
	var protocols []string
	for _, row := range finish.Table {
		if row.Outcome != v1beta1.ReplyOutcome(outcome) {
			continue
		}
		var all []string
		for _, reason := range row.Reasons {
			if reason == "" {
				all = append(all, "none before `[DONE]`")
			} else {
				all = append(all, "`"+reason+"`")
			}
		}
		protocols = append(protocols, string(row.Protocol)+": "+strings.Join(all, ", "))
	}
	return strings.Join(protocols, "; ")
}
