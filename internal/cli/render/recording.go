// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
)

// PrintRecordings lists the recordings of each turn below a line about the turn, all in the same columns.
func PrintRecordings(out io.Writer, steps []v1beta1.ChatDebugStep) error {
	var rows strings.Builder
	table := newTable(&rows, "STEP", "TIME", "ACTION", "MODEL", "STATUS", "REASON", "ATTEMPTS", "TOOK", "TOKENS")
	for i := range steps {
		table.Row(row(i+1, &steps[i].DebugRecording)...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(rows.String()))
	fmt.Fprint(out, lines[0])
	lines = lines[1:]
	for _, t := range byTurn(steps) {
		if heading := t.heading(); heading != "" {
			fmt.Fprintln(out, heading)
		}
		fmt.Fprint(out, strings.Join(lines[:len(t.steps)], ""))
		lines = lines[len(t.steps):]
	}
	return nil
}

func row(number int, r *v1beta1.DebugRecording) []string {
	reason, tokens := "<none>", "<none>"
	if r.Error != nil {
		reason = string(r.Error.Reason)
	}
	if r.Response != nil && r.Response.Usage.TotalTokens > 0 {
		tokens = strconv.FormatInt(r.Response.Usage.TotalTokens, 10)
	}
	return []string{strconv.Itoa(number), r.StartedAt.Local().Format(time.DateTime), string(r.Action),
		flat(r.Model.Name), string(r.State), reason, strconv.Itoa(int(r.Attempt)), took(r.StartedAt, r.FinishedAt), tokens}
}

func took(from metav1.MicroTime, until *metav1.MicroTime) string {
	if until == nil {
		return "<unknown>"
	}
	return until.Sub(from.Time).Round(time.Millisecond).String()
}

// PrintRecording prints a recording without the headers and bodies of its requests.
func PrintRecording(out io.Writer, step *v1beta1.ChatDebugStep) {
	fmt.Fprintf(out, "%s for version %d of chat %s, by %s (%s)\n", step.Action, step.HistoryVersion, step.ChatRef.Name,
		flat(step.Model.Name), flat(step.Model.Provider+", ChatModelConfig "+step.Model.Config))
	fmt.Fprintf(out, "%s%s, attempt %d, begun %s, took %s\n", step.State, because(step.Error), step.Attempt,
		step.StartedAt.Local().Format(time.DateTime), took(step.StartedAt, step.FinishedAt))
	fmt.Fprintf(out, "ChatDebugStep %s, kept until %s\n", step.Name,
		flat(cmp.Or(step.Annotations[v1beta1.AnnotationExpiresAt], "a day after it was made")))
	if t := step.Turn; t != nil {
		fmt.Fprintf(out, "part of the turn of %s%s, behind message %s\n", t.Message, optional(" by %s", t.CreatedBy),
			cmp.Or(step.Head, "none"))
	}
	printRequest(out, &step.Request)
	printResponse(out, step.Response)
	printAttempts(out, step.Attempts)
}

func optional(format, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(format, flat(text))
}

func because(fault *v1beta1.DebugFault) string {
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

func printRequest(out io.Writer, r *v1beta1.DebugRequest) {
	fmt.Fprintf(out, "\nREQUEST\n  options: %s\n", flat(cmp.Or(r.Options, "none")))
	names := make([]string, 0, len(r.Tools))
	for i := range r.Tools {
		names = append(names, r.Tools[i].Name)
	}
	fmt.Fprintf(out, "  tools: %s%s\n", flat(cmp.Or(strings.Join(names, ", "), "none")),
		optional(" (choice: %s)", r.ToolChoice))
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

func printResponse(out io.Writer, r *v1beta1.DebugResponse) {
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
func printParts(out io.Writer, role string, parts []v1beta1.DebugPart) {
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

func printAttempts(out io.Writer, attempts []v1beta1.DebugAttempt) {
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

// recordedTurn are the recordings of one turn, oldest first.
type recordedTurn struct {
	turn  v1beta1.DebugTurn
	steps []v1beta1.ChatDebugStep
}

// byTurn groups recordings by their turn, oldest first. Those without a turn are a group, too.
func byTurn(steps []v1beta1.ChatDebugStep) (turns []recordedTurn) {
	for i := range steps {
		var of v1beta1.DebugTurn
		if t := steps[i].Turn; t != nil {
			of = *t
		}
		at := slices.IndexFunc(turns,
			func(t recordedTurn) bool { return t.turn.Message == of.Message && t.turn.Version == of.Version })
		if at < 0 {
			turns = append(turns, recordedTurn{turn: of})
			at = len(turns) - 1
		}
		if turns[at].turn.CreatedBy == "" {
			turns[at].turn.CreatedBy = of.CreatedBy
		}
		turns[at].steps = append(turns[at].steps, steps[i])
	}
	return turns
}

// InTurns returns the recordings in the order of the list.
func InTurns(steps []v1beta1.ChatDebugStep) (all []v1beta1.ChatDebugStep) {
	for _, t := range byTurn(steps) {
		all = append(all, t.steps...)
	}
	return all
}

// heading is a line about the whole turn; empty for recordings without one.
func (t *recordedTurn) heading() string {
	if t.turn.Message == "" {
		return ""
	}
	return "TURN of " + t.turn.Message + optional(" by %s", t.turn.CreatedBy) + ": " + t.totals()
}

func (t *recordedTurn) totals() string {
	var tokens int64
	var failed int
	var costs []v1beta1.Cost
	for i := range t.steps {
		step := &t.steps[i].DebugRecording
		if step.Response != nil {
			tokens += step.Response.Usage.TotalTokens
		}
		if step.Cost != nil {
			costs = cost.Add(costs, *step.Cost)
		}
		failed += failures(step)
	}
	totals := fmt.Sprintf("%s, %s, %d tokens", Plural(len(t.steps), "model call"), Plural(failed, "error"), tokens)
	if len(costs) > 0 {
		totals += ", " + costsOf(costs)
	}
	return totals
}

func failures(r *v1beta1.DebugRecording) (n int) {
	for i := range r.Attempts {
		if r.Attempts[i].State == v1beta1.DebugError {
			n++
		}
	}
	if n == 0 && r.State == v1beta1.DebugError { // The recording omits its attempts.
		return 1
	}
	return n
}
