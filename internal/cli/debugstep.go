// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"parley.dev/parley/api/v1alpha1"
)

// print tells of one recording what a person looks for first; headers and bodies are left to -o yaml.
func (p recordingPrinter) print(number int, step *v1alpha1.ChatDebugStep) {
	out := p.options.Out
	fmt.Fprintf(out, "%s for version %d of chat %s, by %s (%s)\n", step.Action, step.HistoryVersion, step.ChatRef.Name,
		flat(step.Model.Name),
		flat(step.Model.Provider+", ChatModelConfig "+step.Model.Config))
	fmt.Fprintf(out, "%s%s, attempt %d, begun %s, took %s\n", step.State, because(step.Error), step.Attempt,
		step.StartedAt.Local().Format(time.DateTime), took(step.StartedAt, step.FinishedAt))
	fmt.Fprintf(out, "ChatDebugStep %s, kept until %s\n", step.Name,
		flat(cmp.Or(step.Annotations[v1alpha1.AnnotationExpiresAt], "a day after it was made")))
	if t := step.Turn; t != nil {
		fmt.Fprintf(out, "part of the turn of %s%s, behind message %s\n", t.Message, by(t.CreatedBy),
			cmp.Or(step.Head, "none"))
	}
	printRequest(out, &step.Request)
	printResponse(out, step.Response)
	printAttempts(out, step.Attempts)
	fmt.Fprintf(p.options.ErrOut, "[headers and bodies: %s]\n",
		p.options.command("debug", step.ChatRef.Name, "--step", strconv.Itoa(number), "-o", "yaml"))
}

// by says who somebody is, if that is known.
func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + flat(who)
}

func because(fault *v1alpha1.DebugFault) string {
	if fault == nil {
		return ""
	}
	text := " " + string(fault.Reason)
	if fault.StatusCode != 0 {
		text += fmt.Sprintf(" (%d)", fault.StatusCode)
	}
	if fault.Retryable {
		text += ", may succeed later"
	}
	return text
}

func printRequest(out io.Writer, r *v1alpha1.DebugRequest) {
	fmt.Fprintf(out, "\nREQUEST\n  options: %s\n", flat(cmp.Or(r.Options, "none")))
	names := make([]string, 0, len(r.Tools))
	for i := range r.Tools {
		names = append(names, r.Tools[i].Name)
	}
	fmt.Fprintf(out, "  tools: %s%s\n", flat(cmp.Or(strings.Join(names, ", "), "none")), choice(r.ToolChoice))
	if r.OmittedMessages > 0 {
		fmt.Fprintf(out, "  [%d of the oldest messages are left out]\n", r.OmittedMessages)
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		printParts(out, m.Role, m.Parts)
		if m.OmittedParts > 0 {
			fmt.Fprintf(out, "    [%d more parts are left out]\n", m.OmittedParts)
		}
	}
}

func choice(c string) string {
	if c == "" {
		return ""
	}
	return " (choice: " + flat(c) + ")"
}

func printResponse(out io.Writer, r *v1alpha1.DebugResponse) {
	fmt.Fprintln(out, "\nRESPONSE")
	if r == nil {
		fmt.Fprintln(out, "  none")
		return
	}
	u := r.Usage
	fmt.Fprintf(out, "  finished: %s; tokens: %d in, %d from and %d into the cache, %d out, %d of them reasoning\n",
		flat(cmp.Or(r.FinishReason, "no")), u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.OutputTokens,
		u.ReasoningTokens)
	for _, warning := range r.Warnings {
		fmt.Fprintf(out, "  warning: %s\n", flat(warning))
	}
	printParts(out, "assistant", r.Parts)
}

// printParts prints the parts of a message, each text indented below its heading.
func printParts(out io.Writer, role string, parts []v1alpha1.DebugPart) {
	for i := range parts {
		p := &parts[i]
		heading := []string{role, string(p.Type), p.Name, p.ID, p.MediaType}
		if p.Bytes > 0 {
			heading = append(heading, fmt.Sprintf("%d bytes", p.Bytes))
		}
		if p.IsError {
			heading = append(heading, "error")
		}
		fmt.Fprintf(out, "  %s\n", flat(strings.Join(heading, " ")))
		for line := range strings.Lines(p.Text) {
			fmt.Fprintf(out, "    %s\n", strings.TrimRight(line, "\r\n"))
		}
	}
}

func printAttempts(out io.Writer, attempts []v1alpha1.DebugAttempt) {
	fmt.Fprintln(out, "\nATTEMPTS")
	for i := range attempts {
		a := &attempts[i]
		fmt.Fprintf(out, "  %d: %s, %s%s, took %s, by pod %s\n", a.Number, flat(a.Model.Name), a.State, because(a.Error),
			took(a.StartedAt, a.FinishedAt), a.Pod)
		for j := range a.Exchanges {
			e := &a.Exchanges[j]
			answer := "no response"
			if e.StatusCode != 0 {
				answer = fmt.Sprintf("%d after %s, whole after %s", e.StatusCode, milliseconds(e.HeadersMilliseconds),
					milliseconds(e.DurationMilliseconds))
			}
			if e.Failure != "" {
				answer += " (" + string(e.Failure) + ")"
			}
			fmt.Fprintf(out, "     %s %s: %s\n", flat(e.Method), flat(e.URL), answer)
		}
	}
}

func milliseconds(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
