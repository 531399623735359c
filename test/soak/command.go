// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/modelserver"
)

// commandTime is how long the commands of the questions run, so that manager, gateway and pods change meanwhile.
const commandTime = 15 * time.Second

// templateName is the PodTemplate of the workspaces.
const templateName = "toolbox"

// workspaceTemplate is a pod with a shell.
func workspaceTemplate(meta metav1.ObjectMeta, image string) *corev1.PodTemplate {
	t := &corev1.PodTemplate{ObjectMeta: meta, Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "tools", Image: image}}}}}
	t.Labels = map[string]string{v1beta1.LabelWorkspaceTemplate: "true"}
	return t
}

// isCommand reports whether the model runs a command that takes commandTime.
func (k kind) isCommand() bool { return k == command || k == background }

// shell is the script of a question. It notes that it ran, and writes when it began and ended.
func (k kind) shell(question string) string {
	if k == audit {
		return "cat ran"
	}
	return fmt.Sprintf("echo '%s' >> ran; date +%%s; sleep %d; date +%%s; echo 'done: %[1]s'", question,
		int(commandTime.Seconds()))
}

// callRule makes the model call a tool at a question, after so many results. The arguments are a template.
func callRule(k kind, results int, tool, arguments string) modelserver.Rule {
	raw, _ := json.Marshal(arguments) // As a JSON string, it is a template.
	return modelserver.Rule{
		Name:  string(k) + " " + tool,
		Match: modelserver.Match{LastUserText: string(k) + " question", ToolResults: &results},
		Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call(tool, string(raw))}},
	}
}

// commandRules make the model run the commands of its questions.
func commandRules() []modelserver.Rule {
	const asked = "{{.LastUserText}}"
	execute := func(k kind, options string) modelserver.Rule {
		return callRule(k, 0, "execute", fmt.Sprintf(`{"command":%q,%s}`, k.shell(asked), options))
	}
	return []modelserver.Rule{
		execute(command, `"timeout":600`), execute(audit, `"timeout":600`), execute(background, `"run_in_background":true`),
		callRule(background, 1, "process_output",
			`{"process_id":"{{field "background_process_id" (index .ToolResults 0).Text}}","wait_timeout":600}`),
	}
}

// decodeResult decodes the result of the last call of a turn.
func decodeResult(turn []*v1beta1.ChatMessage, into any) error {
	results := turn[len(turn)-2]
	for _, part := range results.Spec.Parts {
		if part.ToolResult == nil {
			continue
		}
		if err := json.Unmarshal([]byte(part.ToolResult.Output), into); err != nil {
			return fmt.Errorf("its call has the result %s: %w", part.ToolResult.Output, err)
		}
		return nil
	}
	return fmt.Errorf("message %s has no result", results.Name)
}

// written is the output of the command of a turn.
func written(turn []*v1beta1.ChatMessage) (string, error) {
	var result struct {
		Output   string `json:"output"`
		ExitCode *int   `json:"exit_code"`
	}
	if err := decodeResult(turn, &result); err != nil {
		return "", err
	}
	if result.ExitCode == nil || *result.ExitCode != 0 {
		return "", fmt.Errorf("its command failed, or has not ended: it wrote %q", result.Output)
	}
	return result.Output, nil
}

var outputs = regexp.MustCompile(`^(\d+)\n(\d+)\ndone: (.*)\n$`)

// checkResult returns an error if the last call of the turn that answers the question has a wrong result.
func (q *question) checkResult(turn []*v1beta1.ChatMessage, all []*question) error {
	switch q.kind {
	case command, background:
		return q.checkCommand(turn)
	case audit:
		return checkAudit(turn, all)
	case agent:
		return q.checkReport(turn)
	}
	return nil
}

// checkAudit returns an error if a command of the questions ran never or twice.
func checkAudit(turn []*v1beta1.ChatMessage, all []*question) error {
	output, err := written(turn)
	if err != nil {
		return err
	}
	if want := commandsOf(all); output != want {
		return fmt.Errorf("the commands that ran are %q, not %q", output, want)
	}
	return nil
}

// checkCommand returns an error if the output of the question's command is not whole. It notes when the command ran.
func (q *question) checkCommand(turn []*v1beta1.ChatMessage) error {
	output, err := written(turn)
	if err != nil {
		return err
	}
	found := outputs.FindStringSubmatch(output)
	if found == nil || found[3] != q.text() {
		return fmt.Errorf("its command wrote %q", output)
	}
	for i, at := range []*time.Time{&q.began, &q.ended} {
		seconds, _ := strconv.ParseInt(found[i+1], 10, 64) // Digits.
		*at = time.Unix(seconds, 0)
	}
	return nil
}

// commandsOf lists the questions with a command, one a line.
func commandsOf(questions []*question) string {
	var list strings.Builder
	for _, q := range questions {
		if q.kind.isCommand() {
			list.WriteString(q.text() + "\n")
		}
	}
	return list.String()
}

// ranAt reports whether the command of the question ran at the time.
func (q *question) ranAt(t time.Time) bool {
	return q.kind.isCommand() && q.began.Before(t) && q.ended.After(t)
}

// commandsDuring counts the commands that ran while a component was moved: that began before and ended after it began.
func (u *upgrade) commandsDuring(component string, questions []*question) (n int) {
	for _, q := range questions {
		for _, m := range u.done {
			if m.component == component && q.ranAt(m.began) {
				n++
				break
			}
		}
	}
	return n
}
