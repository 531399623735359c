// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gen writes docs/reference/errors.md from the rules that classify errors and the table of finish reasons, so
// that the page cannot say anything else.
//
//	go run ./hack/gen/errors -o docs/reference/errors.md          writes the page
//	go run ./hack/gen/errors -o docs/reference/errors.md -check   fails when the page differs
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"strings"
	"text/template"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/finish"
)

//go:embed errors.md.tmpl
var page string

func main() {
	out := flag.String("o", "docs/reference/errors.md", "the file to write or to check")
	check := flag.Bool("check", false, "fail when the file differs, and write nothing")
	flag.Parse()
	if err := run(*out, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string, check bool) error {
	want, err := render()
	if err != nil {
		return fmt.Errorf("rendering the page: %w", err)
	}
	if !check {
		return os.WriteFile(path, want, 0o644)
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("%s is stale: run make generate", path)
	}
	return nil
}

func render() ([]byte, error) {
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
	return out.Bytes(), err
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
