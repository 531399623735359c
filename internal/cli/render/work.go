// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley.dev/parley/api/v1alpha1"
)

// maxWorkLines is how many lines of a command's output, or of a diff, are shown at most, the last ones: the whole is in
// the ChatMessage.
const maxWorkLines = 40

// commandOf is the command that a call runs in the workspace; empty if it runs none.
func commandOf(name, input string) string {
	var arguments struct {
		Command string `json:"command"`
	}
	if name != string(v1alpha1.BuiltInExecute) || json.Unmarshal([]byte(input), &arguments) != nil {
		return ""
	}
	return strings.TrimSpace(arguments.Command)
}

// subjectOf is what a call is about, in short: the files of one that reads or writes files, else all its input.
func subjectOf(name, input string) string {
	var arguments struct {
		Path  string `json:"path"`
		Edits []struct {
			Path string `json:"path"`
		} `json:"edits"`
	}
	switch v1alpha1.BuiltInTool(name) {
	case v1alpha1.BuiltInReadFile, v1alpha1.BuiltInWriteFile, v1alpha1.BuiltInEditFiles, v1alpha1.BuiltInAttachFile:
	default:
		return input
	}
	if json.Unmarshal([]byte(input), &arguments) != nil {
		return input
	}
	var paths []string
	for _, edit := range arguments.Edits {
		if len(paths) == 0 || paths[len(paths)-1] != edit.Path {
			paths = append(paths, edit.Path)
		}
	}
	if arguments.Path != "" {
		paths = append(paths, arguments.Path)
	}
	if len(paths) == 0 {
		return input
	}
	return strings.Join(paths, ", ")
}

// ran is what a command has come to, as the model reads it.
type ran struct {
	Output     *string `json:"output"`
	ExitCode   *int    `json:"exit_code"`
	Signal     string  `json:"signal"`
	Error      string  `json:"error"`
	DurationMS int64   `json:"wall_duration_ms"`
	Background string  `json:"background_process_id"`
}

// ranOf reads the result of a command; false if it is none.
func ranOf(name, output string) (r ran, ok bool) {
	if name != string(v1alpha1.BuiltInExecute) || json.Unmarshal([]byte(output), &r) != nil {
		return ran{}, false
	}
	return r, r.Output != nil
}

// ending says how the command ended, if it has.
func (r *ran) ending() string {
	took := (time.Duration(r.DurationMS) * time.Millisecond).String()
	switch {
	case r.Background != "":
		return "it runs on as " + r.Background
	case r.Signal != "":
		return r.Signal + " after " + took
	case r.ExitCode != nil:
		return fmt.Sprintf("exit code %d after %s", *r.ExitCode, took)
	case r.Error != "":
		return OneLine(r.Error)
	}
	return "no exit code after " + took
}

// editedOf is what a call has changed in files, as diffs, and what it has read or written, in words; both empty if the
// result is none of a tool for files.
func editedOf(name, output string) (diffs, words string) {
	var result struct {
		Files []struct {
			Diff string `json:"diff"`
		} `json:"files"`
		Size       *int64 `json:"size"`
		LinesRead  *int64 `json:"lines_read"`
		TotalLines int64  `json:"total_lines"`
	}
	if json.Unmarshal([]byte(output), &result) != nil {
		return "", ""
	}
	switch v1alpha1.BuiltInTool(name) {
	case v1alpha1.BuiltInEditFiles:
		for _, file := range result.Files {
			diffs += strings.TrimRight(file.Diff, "\n") + "\n"
		}
		return diffs, Plural(len(result.Files), "file")
	case v1alpha1.BuiltInWriteFile, v1alpha1.BuiltInAttachFile:
		if result.Size != nil {
			return "", fmt.Sprintf("%d bytes", *result.Size)
		}
	case v1alpha1.BuiltInReadFile:
		if result.LinesRead != nil {
			return "", fmt.Sprintf("%d of %s", *result.LinesRead, Plural(int(result.TotalLines), "line"))
		}
	}
	return "", ""
}

// advice is a result of the advisor, as the model reads it.
type advice struct {
	Type          string `json:"type"`
	Advice        string `json:"advice"`
	Error         string `json:"error"`
	Model         string `json:"advisor_model"`
	RemainingUses int32  `json:"remaining_uses"`
}

// questionOf is what the advisor is asked by a call of a tool; empty if that is no such call.
func questionOf(name, input string) string {
	var arguments struct {
		Question string `json:"question"`
	}
	if name != v1alpha1.ToolAdvisor || json.Unmarshal([]byte(input), &arguments) != nil {
		return ""
	}
	return strings.TrimSpace(arguments.Question)
}

// adviceOf reads the result of a tool; false if it is none of the advisor's.
func adviceOf(name, output string) (a advice, ok bool) {
	if name != v1alpha1.ToolAdvisor || json.Unmarshal([]byte(output), &a) != nil {
		return advice{}, false
	}
	return a, a.Type == "advice" || a.Type == "limit_reached" || a.Type == "error"
}

// heading says what became of the question.
func (a *advice) heading() string {
	switch {
	case a.Type == "limit_reached":
		return "the advisor was not asked: the turn has had all the advice that it may have"
	case a.Type == "error":
		return "the advisor gave no advice: " + OneLine(a.Error)
	case a.Model == "":
		return fmt.Sprintf("advice, %d more may be asked for in this turn:", a.RemainingUses)
	}
	return fmt.Sprintf("advice of %s, %d more may be asked for in this turn:", a.Model, a.RemainingUses)
}
